#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""live.py - 16 processes on emulated ports of 10 MB/s, which sleep between empty polls: two ports against one, put and moe.

  live.py BUILD [--processes N] [--tries N]      exit status 0 where two ports carry at least 1.8 times as much, 1 where not

A rate is never more than the ports', but a machine that is busy with other things may take the time that they need: of several tries
the best of each counts.
"""
import argparse
import json
import os
import subprocess
import sys

LEAST = 1.8
# A put stream of each PE to the next one, and DeepEP's dispatch and combine; one PE a host.
RUNS = {"put": ["put", "--all", "--size", "256K", "--count", "120"],
        "moe": ["moe", "--moe-tokens", "768", "--moe-channels", "2", "--moe-phase", "dispatch-bf16,combine"]}


def mpirun():
    """As root it must be allowed to run, and on few CPUs to start more processes than there are."""
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return ["mpirun", "--oversubscribe"]


def run(braid, processes, arguments):
    fabric = f"nodes={processes},gpus=1,ports=2,rate=80M"
    command = [*mpirun(), "-n", str(processes), braid, "emu", "--fabric", fabric, "--gpus", "--host", "rank", "--", braid, "bench",
               arguments[0], "--fabric", "live", *arguments[1:], "--compare", "braid,release,1;braid,release,2", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=600)
    if done.returncode:
        sys.exit(f"live.py: {' '.join(command)}: status {done.returncode}")
    return json.loads(done.stdout)["runs"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--tries", type=int, default=4)
    options = parser.parse_args()
    braid = os.path.join(os.path.abspath(options.build), "cli", "braid")
    bad = 0
    print(f"{options.processes} processes, ports of 10 MB/s, emulated (real time): MB/s of a PE, the best of up to {options.tries} tries\n"
          f"{'':16s}{'one port':>9s}{'two ports':>11s}{'ratio':>9s}{'wrong bytes':>13s}", flush=True)
    for pattern, arguments in RUNS.items():
        best, wrong = {}, 0
        for _ in range(options.tries):
            for r in run(braid, options.processes, arguments):
                name, ports = r.get("phase", pattern), r["ports"]
                rates = best.setdefault(name, {})
                rates[ports] = max(rates.get(ports, 0), 1e3 * r["gbs"])
                wrong += r["errors"]
            if all(b[2] >= LEAST * b[1] for b in best.values()):
                break
        for name, rates in best.items():
            good = rates[2] >= LEAST * rates[1] and wrong == 0
            bad += not good
            print(f"{name:16s}{rates[1]:9.2f}{rates[2]:11.2f}{rates[2] / rates[1]:8.2f}x{wrong:13d}{'' if good else '   expected 1.8x and 0'}",
                  flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
