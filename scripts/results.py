#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""results.py - runs each rate that braid promises as one `braid bench` command and writes docs/results.md.

  scripts/results.py BUILD [--only WORD] [--print]

--only runs the rows with this word in their title and prints them; --print writes no file. Exit status 1 where a row is
not met. Virtual time: the same commands give the same figures on any machine.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

import results_plugins

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EIGHT = "nodes=9,ports=2"
STALL = "".join(f",at=9ms:stall:h8/mlx5_{p}:1,at=40ms:up:h8/mlx5_{p}:1" for p in (0, 1))


class Row:
    """One line of the table: commands, and what their results must satisfy."""

    def __init__(self, title, wanted, judge, *commands, status=0):
        self.title, self.wanted, self.judge, self.commands, self.status = title, wanted, judge, commands, status


def gbs(run):
    return f"{run['gbs']:.2f} of {run['ceiling_gbs']:.2f} GB/s"


def at_least(fraction):
    """Every run reaches this part of its ceiling."""
    def judge(results):
        runs = [r for result in results for r in result["runs"]]
        text = "; ".join(f"{r['ports']} ports: {r['fraction']:.3f} ({gbs(r)})" for r in runs)
        return all(r["fraction"] >= fraction for r in runs), text
    return judge


def times(factor):
    """The second run is so many times as fast as the first."""
    def judge(results):
        one, two = results[0]["runs"]
        text = (f"{two['gbs'] / one['gbs']:.3f}x: {one['gbs']:.2f} and {two['gbs']:.2f} GB/s; CPU share "
                f"{one['cpu_share']:.2f} and {two['cpu_share']:.2f}")
        return factor is None or two["gbs"] >= factor * one["gbs"], text
    return judge


def delays(run):
    return f"p50 {run['signal_us']['p50']:.1f} us, p99 {run['signal_us']['p99']:.1f} us"


def release_beside_drain(results):
    release, drain = results[0]["runs"]
    return (release["fraction"] >= 0.95,
            f"release {release['fraction']:.3f} ({gbs(release)}), drain {drain['fraction']:.3f} ({drain['gbs']:.2f} GB/s); "
            f"signals: release {delays(release)}, drain {delays(drain)}")


def same_delay(results):
    one, two = (r["latency_us"] for r in results[0]["runs"])
    off = two["p50"] / one["p50"] - 1
    return (abs(off) <= 0.03, f"p50 {one['p50']:.2f} us on 1 port, {two['p50']:.2f} us on 2 ({100 * off:+.1f} %); "
            f"p99 {one['p99']:.2f} and {two['p99']:.2f} us")


def seven(results):
    with_stall, alone = (result["runs"][0] for result in results)
    part = with_stall["gbs"] / alone["gbs"]
    return part >= 0.98, f"{part:.3f}: {with_stall['gbs']:.2f} GB/s beside the stalled one, {alone['gbs']:.2f} without it"


def exact(results):
    run = results[0]["runs"][0]
    rate = 1e3 * run["ops"] / run["wall_ns"]
    return run["errors"] == 0, f"{run['ops']} adds, {run['errors']} lost or repeated; {rate:.2f} million a second"


def lossy(results):
    run = results[0]["runs"][0]
    return run["errors"] > 0, f"{run['ops']} adds, {run['errors']} lost or repeated"


PAIR = "--compare 'braid,release,1;braid,release,2'"
RATES = [
    Row("put stream, 1 MiB, window 16, 1 to 16 ports", ">= 0.97 of the ceiling", at_least(0.97),
        *(f"put --size 1M --window 16 --fabric nodes=2,ports=16 --ports {n}" for n in (1, 2, 4, 8, 16))),
    Row("one put at a time, 1 MiB, tail off", ">= 1.78x", times(1.78), f"put --size 1M --window 1 --tail off {PAIR}"),
    Row("one put at a time, 1 MiB, tail on", ">= 1.60x", times(1.60), f"put --size 1M --window 1 --tail on {PAIR}"),
    *(Row(f"stream of {1 << k} KiB, window {1024 >> k}", ">= 1.8x", times(1.8), f"put --size {1 << k}K --window {1024 >> k} {PAIR}")
      for k in (3, 4, 5, 6)),
    Row("stream of 4 KiB, window 256", "printed", times(None), f"put --size 4K --window 256 {PAIR}"),
    *(Row(f"stream of {1 << k} KiB, a signal after every 16", ">= 1.8x", times(1.8),
          f"put --size {1 << k}K --window {1024 >> k} --signal-every 16 {PAIR}") for k in (3, 4, 5, 6)),
    Row("stream of 4 KiB, a signal after every 16", "printed", times(None), f"put --size 4K --window 256 --signal-every 16 {PAIR}"),
    Row("rates 400:200:100", ">= 0.95", at_least(0.95), "put --fabric nodes=2,ports=3,rate=400G:200G:100G --count 300"),
    Row("a port slowed to half mid-run", ">= 0.93 of what is left", at_least(0.93),
        "put --fabric nodes=2,ports=2,at=12ms:slow:h0/mlx5_1:1:0.5 --count 200"),
    Row("one stalled peer among eight", "the other seven lose <= 2 %", seven,
        f"put --peers 8 --except 8 --count 60 --fabric {EIGHT}{STALL}", f"put --peers 7 --count 60 --fabric {EIGHT}"),
    *(Row(f"448 KiB + signal, window 4, {n} peer{'s' if n > 1 else ''}", "release >= 0.95", release_beside_drain,
          f"signal --size 448K --window 4 --peers {n} --fabric nodes=4,ports=2 --compare 'braid,release,2;braid,drain,2'")
      for n in (1, 3)),
    Row("8-byte put + signal, 2 ports against 1", "p50 within 3 %", same_delay, f"signal --size 8 --window 1 --count 2000 {PAIR}"),
    Row("8 PEs, 10^6 adds to one word over 4 ports", "exact", exact, "atomic --all --fabric nodes=8,ports=4 --count 1000000"),
    Row("the same, 2 of the PEs do not reach the home rail", "exact", exact,
        "atomic --all --fabric nodes=8,ports=4,topo=rail --unreachable 2 --count 1000000"),
    Row("the same with the home rule off", "loses updates", lossy,
        "atomic --all --fabric nodes=8,ports=4 --fault home --count 100000", status=1),
]

HEAD = """# Results

Made by `make results`: each row is what the command says, on the emulated fabric. **Label of all figures but the
last section's: emulated (virtual time).** Nothing here was measured on RDMA hardware. Seed {seed}, CPU cost table `{table}` (`emu/emu_cost.c`); 200 Gb/s ports and 2.5 us one
way unless the command says otherwise. Fractions are of what the ports in use can carry with headers off; `braid bench` prints
how that is worked out. Receivers compared every byte.

A port that is slowed while a run goes on counts with its rate at each moment: the ceiling of that row is the mean over the run.
The row of the stalled peer compares what the other seven get beside it with what seven get when there is no eighth. CPU share
is the part of the time in which the sender was inside libbraid and the calls below it.

Order, visibility and deadlocks have a table of their own: `make litmus`.

| what | wanted | | figures | command: `braid bench` ... |
|---|---|---|---|---|
"""

TAIL = """
DeepEP's dispatch and combine have a page of their own: [results-moe.md](results-moe.md).

`gbs` is `payload_bytes / wall_ns` in every row, and the ports carried those bytes within 1 % from 4 KiB up: `tests/cli/test_bench.py`.

## Sizes and ports

`braid bench put --sweep --fabric nodes=2,ports=8 --ports 1,2,4,8`

![GB/s of put streams by size, for 1, 2, 4 and 8 ports](img/put-sweep.svg)
"""


def bench(braid, command, status):
    done = subprocess.run([braid, "bench", *shlex.split(command), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode != status:
        sys.exit(f"results: braid bench {command}: status {done.returncode}, expected {status}\n{done.stdout[-500:]}{done.stderr}")
    return json.loads(done.stdout)


def line(row, met, text):
    commands = "<br>".join(f"`{c}`".replace("|", "\\|") for c in row.commands)
    return f"| {row.title} | {row.wanted} | {'' if row.wanted == 'printed' else 'met' if met else '**not met**'} | {text} | {commands} |"


def sweep(braid, folder):
    """The figure, drawn apart and moved there when it is whole."""
    with tempfile.TemporaryDirectory() as scratch:
        svg = os.path.join(scratch, "sweep.svg")
        done = subprocess.run([braid, "bench", "put", "--sweep", "--fabric", "nodes=2,ports=8", "--ports", "1,2,4,8", "--svg", svg],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"results: the sweep: status {done.returncode}\n{done.stderr}")
        os.makedirs(folder, exist_ok=True)
        with open(svg, encoding="utf-8") as f, open(os.path.join(folder, "put-sweep.svg"), "w", encoding="utf-8") as to:
            to.write("".join(text.rstrip() + "\n" for text in f))


def by_hand():
    """What needs a GPU, and was made by tests/gpu/run.sh where one was."""
    with open(os.path.join(ROOT, "docs/results-gpu.md"), encoding="utf-8") as f:
        return "\n" + f.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--only", default="")
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    braid = os.path.join(options.build, "cli/braid")
    lines, failed, head = [], [], None
    for row in RATES:
        if options.only not in row.title:
            continue
        results = [bench(braid, c, row.status) for c in row.commands]
        met, text = row.judge(results)
        head = head or results[0]
        failed += [] if met else [row.title]
        lines.append(line(row, met, text))
        print(f"{'met    ' if met else 'NOT MET'} {row.title} ({row.wanted}): {text}", flush=True)
    plugins, wrong = results_plugins.section(options.build) if not options.only else ("", [])
    failed += wrong
    if not options.only and not options.print:
        sweep(braid, os.path.join(ROOT, "docs/img"))
        with open(os.path.join(ROOT, "docs/results.md"), "w", encoding="utf-8") as f:
            f.write(HEAD.format(seed=head["seed"], table=head["cost_table"]) + "\n".join(lines) + "\n" + TAIL + plugins + by_hand())
    print(f"{len(lines) + (0 if options.only else len(results_plugins.ROWS)) - len(failed)} met, {len(failed)} not met" + "".join(f"\n  not met: {t}" for t in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
