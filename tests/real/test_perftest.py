#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_perftest.py - what perftest measures on the emulator in real time, beside what the fabric was told: rates of ports, one-way latency.

  test_perftest.py BRAID [--all]     prints TAP; --all: every mode, two message sizes

Rates and latencies are such that a busy machine can keep them: an idle CPU is needed now and then only. A port never carries more than
its rate; that it carries no less, and is no later, may need a second attempt.
"""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from programs import Fabric
from tap import Tap

RATE = 0.4         # Gb/s
LATENCY_US = 5000  # one way
ATTEMPTS = 5
SIZES = {65536: 200, 1 << 20: 20}

# (tool, what is added, times the rate of a port)
BANDWIDTH = [
    ("ib_write_bw", [], 1), ("ib_read_bw", [], 1), ("ib_send_bw", [], 1), ("ib_write_bw", ["-b"], 2), ("ib_read_bw", ["-b"], 2),
    ("ib_send_bw", ["-b"], 2), ("ib_write_bw", ["-q", "4"], 1), ("ib_send_bw", ["-e"], 1),
    ("ib_send_bw", ["-r", "64"], 1), ("ib_write_bw", ["--use_old_post_send"], 1), ("ib_read_bw", ["--use_old_post_send"], 1),
    ("ib_send_bw", ["--use_old_post_send"], 1), ("ib_write_bw", ["-l", "4"], 1)]
# (tool, what is added, how often a message crosses the fabric in what the tool prints)
LATENCY = [("ib_write_lat", [], 1), ("ib_read_lat", [], 2), ("ib_send_lat", [], 1), ("ib_atomic_lat", [], 2), ("ib_write_lat", ["-I", "60"], 1),
           ("ib_send_lat", ["-e"], 1), ("ib_write_lat", ["-s", "65536"], 1)]
QUICK = {("ib_write_bw", ()), ("ib_read_bw", ()), ("ib_write_lat", ()), ("ib_read_lat", ())}


def row(said):
    """The numbers of the line below the header, as perftest prints it; [] where there is none."""
    lines = said.splitlines()
    at = [i for i, line in enumerate(lines) if line.lstrip().startswith("#bytes")]
    return [float(n) for n in re.findall(r"[\d.]+", lines[at[0] + 1])] if at and at[0] + 1 < len(lines) else []


def measure(tap, name, run, low, high, too_good):
    """run(): (a figure or None, what was said). Once it is from low to high, and never too_good(figure)."""
    seen, said, ok = [], "", False
    while not ok and len(seen) < ATTEMPTS:
        figure, said = run()
        if figure is None:
            break
        seen.append(figure)
        if too_good(figure):
            break
        ok = low <= figure <= high
    tap.check(f"{name}: {seen[-1] if seen else 'nothing'}, expected {low:.5g} to {high:.5g}",
              [] if ok else [f"seen {seen}"] + said.splitlines()[-15:])


def bandwidth(tap, fabric, tool, extra, times, size):
    def run():
        good, said = fabric.perftest(tool, "-F", "-s", str(size), "-n", str(SIZES[size]), "--report_gbits", *extra)
        figures = row(said)
        return (figures[3], said) if good and len(figures) > 3 else (None, said)

    most = RATE * times
    measure(tap, f"{' '.join([tool, *extra])}, {size} bytes, Gb/s", run, 0.9 * most, most, lambda figure: figure > most)


def latency(tap, fabric, tool, extra, times):
    def run():
        good, said = fabric.perftest(tool, "-F", "-n", "40", *extra)
        figures = row(said)
        return (figures[4], said) if good and len(figures) > 4 else (None, said)  # the typical one

    wire_us = 65536 * 8 / (RATE * 1000) if "65536" in extra else 0
    expected = LATENCY_US * times + wire_us
    least = 0.99 * expected
    measure(tap, f"{' '.join([tool, *extra])}, us", run, least, 1.1 * expected, lambda figure: figure < least)


def main():
    every = "--all" in sys.argv[2:]
    tap = Tap()
    if not shutil.which("ib_write_bw"):
        tap.skip("perftest", "not installed")
        tap.done()
    fabric = Fabric(sys.argv[1], f"nodes=2,ports=1,rate={RATE * 1000:.0f}M,latency=100us")
    for tool, extra, times in BANDWIDTH:
        for size in SIZES if every else [65536]:
            if every or (tool, tuple(extra)) in QUICK:
                bandwidth(tap, fabric, tool, extra, times, size)
    fabric = Fabric(sys.argv[1], f"nodes=2,ports=1,rate={RATE * 1000:.0f}M,latency={LATENCY_US}us")
    for tool, extra, times in LATENCY:
        if every or (tool, tuple(extra)) in QUICK:
            latency(tap, fabric, tool, extra, times)
    tap.holds("nothing is left in shared memory", not fabric.left_behind(), str(fabric.left_behind()))
    tap.done()


if __name__ == "__main__":
    main()
