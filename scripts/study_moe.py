#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""study_moe.py - the figures of docs/why-four-nodes.md: one constant is fitted to one measurement of the field, the others are predicted.

  study_moe.py BUILD [--print]

Replaces what is between the two marks in the page; --print writes no file. Needs NVIDIA's plugin (scripts/fetch-nvshmem.sh).
"""
import json
import os
import shlex
import subprocess
import sys

import results_plugins

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs/why-four-nodes.md")
MARKS = ("<!-- figures by scripts/study_moe.py -->\n", "<!-- end of figures -->\n")
SEEDS = (1, 2, 3)
FIELD = 44.0  # GB/s: one port, PIX, two nodes
SEE = "2us"
SINGLE, DRAIN, OURS = "--engine $PEER --ports 1", "--engine $OURS --order drain", "--engine $OURS"

# What, the field's figure (low, high), the command.
HELD_OUT = [
    ("one port, PXB, 2 nodes", (23.3, 23.3), "--engine $PEER --stock --fabric nodes=2,gpus=2,topo=pxb"),
    ("drain on two ports, PIX, 2 nodes", (51.3, 51.3), f"{DRAIN} --fabric nodes=2"),
    ("drain on two ports, PXB, 2 nodes", (52.3, 52.3), f"{DRAIN} --fabric nodes=2,gpus=2,topo=pxb"),
    ("drain, one node PXB and one PIX", (49.0, 50.0), f"{DRAIN} --fabric nodes=2,gpus=2,topo=mixed"),
    ("drain on two ports, 4 nodes", (20.0, 21.0), f"{DRAIN} --fabric nodes=4"),
    ("one 400G port, 2 nodes (another cluster)", (44.4, 44.4), f"{SINGLE} --fabric nodes=2,ports=1,rate=400G"),
    ("one 400G port, 4 nodes (that cluster)", (12.5, 12.5), f"{SINGLE} --fabric nodes=4,ports=1,rate=400G"),
]
BESIDE = [("braid's plugin on two ports, 2 nodes", f"{OURS} --fabric nodes=2"),
          ("braid's plugin on two ports, 4 nodes", f"{OURS} --fabric nodes=4"),
          ("libbraid, its instructions charged, drain, 2 nodes", "--order drain --fabric nodes=2"),
          ("libbraid, its instructions charged, drain, 4 nodes", "--order drain --fabric nodes=4"),
          ("libbraid, its instructions charged, 4 nodes", "--fabric nodes=4")]
WHAT_IF = [(name, how, f"{how} --fabric nodes=4{more}")
           for name, more in (("as above", ""), ("packets up to 5 us late", ",jitter=5us"), ("up to 10 us late", ",jitter=10us"),
                              ("up to 20 us late", ",jitter=20us"), ("10 us one way", ",latency=10us"), ("1 of 10000 packets lost", ",loss=0.0001"),
                              ("buffers of 2 MiB that drop", ",buffer=2M,loss=tail"))
           for how in (DRAIN, SINGLE)]


class Study:
    def __init__(self, build):
        self.braid = os.path.join(build, "cli/braid")
        theirs, why = results_plugins.peer()
        if not theirs:
            sys.exit(f"study: {why}")
        self.names = {"$PEER": f"plugin:{theirs}", "$OURS": "plugin:" + os.path.join(build, "plugin/nvshmem/nvshmem_transport_ibrc.so.3")}
        self.forward, self.table = 0, ""

    def gbs(self, args, phase="dispatch-bf16"):
        """The mean over seeds; their least and greatest; what wires waited for most."""
        for name, path in self.names.items():
            args = args.replace(name, path)
        runs = []
        for seed in SEEDS:
            command = [self.braid, "bench", "moe", "--json", "--seed", str(seed), "--moe-phase", phase, "--moe-gpu", f"0:{self.forward}:{SEE}",
                       *shlex.split(args)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"study: {' '.join(command)}: status {done.returncode}\n{done.stderr}")
            result = json.loads(done.stdout)
            self.table = result["cost_table"]
            runs += result["runs"]
        where = {k: sum(r["moe"]["where_us"][k] for r in runs) for k in runs[0]["moe"]["where_us"] if k != "wire"}
        most = max(where, key=where.get)
        wall = sum(r["wall_ns"] for r in runs) / 1e3
        all_gbs = [r["gbs"] for r in runs]
        return sum(all_gbs) / len(runs), min(all_gbs), max(all_gbs), f"{most} {100 * where[most] / wall:.0f} %"

    def fit(self):
        """GB/s at which a channel's kernels forward, so that one PIX port on two nodes gives what the field saw."""
        low, high = 15.0, 60.0
        while high - low > 0.5:
            self.forward = (low + high) / 2
            low, high = (self.forward, high) if self.gbs(SINGLE)[0] < FIELD else (low, self.forward)
        self.forward = round((low + high) / 2, 1)


def shown(text):
    return "`" + text.replace("$", "plugin:$") + "`"


def both(s, command):
    """Dispatch and combine, as cells."""
    dispatch, combine = s.gbs(command), s.gbs(command, "combine")
    return dispatch, f"{dispatch[0]:.1f} ({dispatch[1]:.1f} to {dispatch[2]:.1f}) | {combine[0]:.1f} | {dispatch[3]}"


def figures(s):
    s.fit()
    _, cells = both(s, SINGLE)
    yield f"Cost table `{s.table}`. Fitted: a channel's kernels forward {s.forward} GB/s over NVLink. `--moe-gpu 0:{s.forward}:{SEE}` in every command; seeds 1 to {SEEDS[-1]}."
    yield "\n| case | field | BF16 dispatch (over seeds) | combine | wires waited for | | command: `braid bench moe` ... |\n|---|---|---|---|---|---|---|"
    yield f"| one port, PIX, 2 nodes | {FIELD} | {cells} | fitted | {shown(SINGLE)} |"
    for what, (low, high), command in HELD_OUT:
        dispatch, cells = both(s, command)
        met = 0.9 * low <= dispatch[0] <= 1.1 * high
        field = f"{low}" if low == high else f"{low} to {high}"
        print(f"{what}: {field}: {cells}", file=sys.stderr, flush=True)
        yield f"| {what} | {field} | {cells} | {'within 10 %' if met else '**off**'} | {shown(command)} |"
    for what, command in BESIDE:
        yield f"| {what} | - | {both(s, command)[1]} | | {shown(command)} |"
    yield "\nFour nodes, and one thing changed each time:\n\n| what | drain on two ports | waited for | one port | waited for |\n|---|---|---|---|---|"
    for (name, _, drain), (_, _, single) in zip(WHAT_IF[::2], WHAT_IF[1::2]):
        d, o = s.gbs(drain), s.gbs(single)
        yield f"| {name}: `{drain.rsplit(' ', 1)[1]}` | {d[0]:.1f} | {d[3]} | {o[0]:.1f} | {o[3]} |"


def main():
    s = Study(sys.argv[1])
    text = "\n".join(figures(s)) + "\n"
    print(text)
    if "--print" in sys.argv:
        return
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    before, after = page.index(MARKS[0]) + len(MARKS[0]), page.index(MARKS[1])
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(page[:before] + text + page[after:])


if __name__ == "__main__":
    main()
