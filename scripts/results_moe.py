#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""results_moe.py - DeepEP's dispatch and combine by every engine, and writes docs/results-moe.md. Called by `make results`, after results.py.

  results_moe.py BUILD [--quick] [--big] [--print]

--quick: two nodes only, braid alone; --big: 64 nodes x 8 GPUs too (minutes, 8 GB), whose row is else kept from the page that is there;
--print writes no file. NVIDIA's plugin is left out where it cannot be had, and the page says so. Exit status 1 where a row is not met.
"""
import argparse
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import results_plugins

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs/results-moe.md")
WANTED = {"dispatch-bf16": 0.95, "dispatch-fp8": 0.92, "combine": 0.95}
SHAPES = [(2, "pix"), (2, "pxb"), (2, "mixed"), (4, "pix"), (4, "pxb"), (8, "pix"), (8, "pxb"), (16, "pix"), (16, "pxb")]
ENGINES = ["braid,release,2", "braid,release,1", "braid,drain,2", "braid,strict,2", "$OURS,release,2", "$PEER,release,2", "model:nic-rr,release,2"]
FEW = ENGINES[:3]  # where many nodes make it slow, and another shape has shown the rest
BIG = "--moe-phase dispatch-bf16 --fabric nodes=64,gpus=8"

HEAD = """# Results: DeepEP's dispatch and combine

Made by `make results` (`scripts/results_moe.py`). **Label of all figures: emulated (virtual time).** Nothing here was measured on RDMA hardware or
with a GPU: kernels are ideal, so only transport, order, credit and the proxy count. Seed 1, CPU cost table `{table}` (`emu/emu_cost.c`),
200 Gb/s ports, 2.5 us one way, two ports a GPU, 4096 tokens a rank, DeepEP's default chunks, rings and channels; see MOE in braid-bench(1).

GB/s are logical, as DeepEP prints them: the bytes to the own node are in. *max* is what two ports carry, times the logical by the remote bytes of
the busiest PE; fractions are of that, for one port too. Behind braid's fraction: what its wires waited for most. *no CPU* is the same with `cpu=off`, where
calls cost nothing: order and wire alone; it does not count. *single*, *drain* and *strict* are libbraid on one port and in its other order modes; *drain* is
the old method on two ports. *plugin* is braid's NVSHMEM plugin and *NVIDIA* theirs of {peer}, under the minihost: 150 ns a request for the proxy (a guess),
instructions not charged. *model* is `model:nic-rr`, a **model of published behaviour** of host transports with several NICs.
One of a node's GPUs takes part, of `pxb` and `mixed` a pair: jobs of different GPU indices share nothing but switch buffers and, in a pair, four ports, of
which each has two.
Every slot was compared when its tail said that it was there; stale reads: {stale}.

| nodes | phase | max | braid | wanted | | no CPU | single | drain | strict | plugin | NVIDIA | model |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""


class Bench:
    """Runs `braid bench moe`, and remembers what was wrong."""

    def __init__(self, build):
        self.braid = os.path.join(build, "cli/braid")
        self.ours = "plugin:" + os.path.join(build, "plugin/nvshmem/nvshmem_transport_ibrc.so.3")
        theirs, self.missing = results_plugins.peer()
        self.theirs = theirs and f"plugin:{theirs}"
        self.stale, self.table, self.failed = 0, None, []

    def run(self, args, status=0):
        args = args.replace("$OURS", self.ours).replace("$PEER", self.theirs or "")
        done = subprocess.run([self.braid, "bench", "moe", *shlex.split(args), "--json"], capture_output=True, text=True, check=False)
        if done.returncode != status:
            sys.exit(f"results: braid bench moe {args}: status {done.returncode}, expected {status}\n{done.stderr}")
        result = json.loads(done.stdout)
        self.table = result["cost_table"]
        if status == 0:
            self.stale += sum(r["stale_reads"] for r in result["runs"])
        return result["runs"]

    def judge(self, met, title):
        print(f"{'met    ' if met else 'NOT MET'} {title}", flush=True)
        self.failed += [] if met else [title]
        return "met" if met else "**not met**"


def waits(run):
    """What the wires of a run waited for most."""
    where = {k: v for k, v in run["moe"]["where_us"].items() if k != "wire"}
    most = max(where, key=where.get)
    return f"{most} {100 * where[most] * 1e3 / run['wall_ns']:.0f} %"


def cell(run, most):
    return f"{run['gbs']:.1f} ({run['gbs'] / most:.2f})" if run else "-"


def shape_rows(b, nodes, topo, engines):
    """A shape's three rows."""
    fabric = f"--fabric nodes={nodes},gpus={1 if topo == 'pix' else 2},topo={topo}"
    have = [e for e in engines if b.theirs or "$PEER" not in e]
    runs = b.run(f"{fabric} --compare '{';'.join(have)}'")
    free = b.run(f"{fabric},cpu=off")
    for phase, wanted in WANTED.items():
        of = dict(zip(have, (r for r in runs if r["phase"] == phase)))
        braid, ideal = of["braid,release,2"], next(r for r in free if r["phase"] == phase)
        most = braid["ceiling_gbs"]
        verdict = b.judge(braid["fraction"] >= wanted and braid["errors"] == 0,
                          f"{nodes} nodes {topo}, {phase}: {braid['gbs']:.2f} of {most:.2f} GB/s, {braid['fraction']:.3f}, {waits(braid)}")
        yield (f"| {nodes} {topo} | {phase} | {most:.1f} | **{braid['gbs']:.1f} ({braid['fraction']:.3f})** {waits(braid)} | >= {wanted} | {verdict} | "
               f"{cell(ideal, most)} | " + " | ".join(cell(of.get(e), most) for e in ENGINES[1:]) + " |")


def pairs(run, way):
    """The least that a port carried beside the other port of its PE."""
    worst = 1.0
    for host in {p["host"] for p in run["port_bytes"]}:
        sent = [p[way] for p in run["port_bytes"] if p["host"] == host]
        worst = min([worst] + [min(pair) / max(max(pair), 1) for pair in zip(sent[::2], sent[1::2])])
    return worst


def incast(b):
    """Four full nodes, buffers that pause and buffers that drop."""
    for fabric, wanted in (("nodes=4,gpus=8", 0.90), ("nodes=4,gpus=8,loss=tail", None)):
        for r in b.run(f"--fabric {fabric}"):
            text = f"{r['gbs']:.1f} of {r['ceiling_gbs']:.1f} GB/s, {r['fraction']:.3f}; {waits(r)}"
            met = wanted is None or r["fraction"] >= wanted
            verdict = b.judge(met, f"{fabric} {r['phase']}: {text}")
            yield f"| {r['phase']}, 16 MiB buffers, {'lossless' if wanted else 'loss=tail'} | {f'>= {wanted}' if wanted else 'printed'} | {verdict if wanted else ''} | {text} | `--fabric {fabric}` |"


def skewed(b):
    for phase in ("dispatch-bf16", "combine"):
        args = f"--moe-phase {phase} --fabric nodes=4,gpus=2 --moe-skew 1"
        r = b.run(args)[0]
        worst = min(pairs(r, "tx"), pairs(r, "rx"))
        text = f"{worst:.3f}; {r['gbs']:.1f} of {r['ceiling_gbs']:.1f} GB/s, {r['fraction']:.3f}"
        yield f"| {phase}, experts popular as 1/k | no port below 0.8 of the other | {b.judge(worst >= 0.8, f'skewed {phase}: {text}')} | {text} | `{args}` |"


def faults(b):
    args = "--moe-phase dispatch-bf16 --moe-tokens 1024 --fault order"
    r = b.run(args, status=1)[0]
    text = f"{r['stale_reads']} stale slots"
    yield f"| order switched off | stale reads are seen | {b.judge(r['stale_reads'] > 0, f'--fault order: {text}')} | {text} | `{args}` |"
    args = "--fabric nodes=4,gpus=2,topo=mixed,jitter=3us,unkind=all --compare 'braid,release,2;braid,strict,2'"
    runs = b.run(args)
    stale = sum(r["stale_reads"] for r in runs)
    yield f"| release and strict, nothing kept that devices do not promise | 0 stale | {b.judge(stale == 0, f'unkind: {stale} stale slots')} | {stale} of {sum(r['compared_bytes'] // r['size'] for r in runs)} slots | `{args}` |"


def big(b, wanted):
    """64 nodes x 8 GPUs, every packet; or the row of the page that is there."""
    if not wanted:
        try:
            with open(PAGE, encoding="utf-8") as f:
                return re.findall(r"^\| 64 nodes x 8 GPUs.*$", f.read(), re.M)
        except OSError:
            return []
    began, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    r = b.run(BIG)[0]
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    took, gib = time.time() - began, usage.ru_maxrss / (1 << 20)
    cpu = usage.ru_utime + usage.ru_stime - before.ru_utime - before.ru_stime
    text = f"{cpu:.0f} s of CPU on one core, {took:.0f} s by the clock, {gib:.1f} GiB at most; {r['gbs']:.1f} of {r['ceiling_gbs']:.1f} GB/s, {r['fraction']:.3f}; {r['compared_bytes'] // r['size']} slots compared, {r['stale_reads']} stale"
    met = took < 600 and gib < 12 and r["errors"] == 0
    return [f"| 64 nodes x 8 GPUs, a BF16 dispatch, every packet | < 10 minutes on two cores, < 12 GiB | {b.judge(met, f'64 x 8: {text}')} | {text} | `{BIG}` |"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build")
    for option in ("--quick", "--big", "--print"):
        parser.add_argument(option, action="store_true")
    o = parser.parse_args()
    b = Bench(o.build)
    shapes = SHAPES[:3] if o.quick else SHAPES
    with ThreadPoolExecutor(os.cpu_count()) as pool: # the long ones first
        rows = pool.map(lambda s: list(shape_rows(b, *s, ENGINES[:1] if o.quick else FEW if s[1] == "pxb" and s[0] > 4 else ENGINES)), shapes[::-1])
        lines = sum(reversed(list(rows)), [])
    more = [] if o.quick else [*incast(b), *skewed(b), *faults(b), *big(b, o.big)]
    if not o.quick and not o.print:
        text = (HEAD.format(table=b.table, peer=results_plugins.PEER, stale=b.stale) + "\n".join(lines) + "\n"
                + "\nEach shape: `braid bench moe --fabric nodes=N,gpus=G,topo=T --compare '" + ";".join(ENGINES).replace("$", "plugin:$") + "'`.\n"
                + (f"NVIDIA's plugin is left out: {b.missing}.\n" if b.missing else "")
                + "\n| what | wanted | | figures | command: `braid bench moe` ... |\n|---|---|---|---|---|\n" + "\n".join(more) + "\n")
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(text)
    print(f"{len(b.failed)} not met" + "".join(f"\n  not met: {t}" for t in b.failed))
    return 1 if b.failed or b.stale else 0


if __name__ == "__main__":
    sys.exit(main())
