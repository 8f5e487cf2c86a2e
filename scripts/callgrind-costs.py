#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""callgrind-costs.py - what libbraid's own code costs, counted by callgrind, beside what the cost table charges for it.

  scripts/callgrind-costs.py BUILD [--only WORD] [--save FILE | --counts FILE] [--write]

Runs `braid bench` workloads under callgrind, each with two counts, so that set-up drops out, and takes the instructions
that were executed in libbraid (with what it calls in libc, without the emulator and the generator). The same runs say
how much of each kind of work libbraid did (field "work" of the JSON). A fit over all workloads gives instructions a row,
and 3 instructions are a ns. Rows that only ever grow together are split as the table splits them, or known (KNOWN).

Prints: for each row the table's ns and the fitted ns; for each workload what was executed, what the table charges and what the
fit would. --write puts that into docs/costs.md; --save keeps what was counted, --counts takes it from there, to look at another
table. A command
for whoever changes emu/emu_cost.c or the data path; not a test, since compilers differ. Needs valgrind.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PER_NS = 3.0
# Rows that grow together in nearly every run, so that a fit gives one of them what is another's: in ns, by the functions that do
# the work (callgrind_annotate): braid_put(); rail_next(); what a list does; of a pass that finds nothing, what is there once a rail;
# of a flush, its post, its end, and the entries that are forgotten after it; of a word that waits, what it costs more than one that need not.
KNOWN = {"braid_put": 51.0, "braid_list": 50.0, "braid_retired": 12.0, "braid_poll": 20.0, "braid_pass": 26.0, "braid_flush": 300.0}

# name, arguments of braid bench, two counts
WORKLOADS = (
    ("put 8K, 1 port", "put --size 8K --window 128 --ports 1", 400, 1000),
    ("put 8K, 2 ports", "put --size 8K --window 128", 600, 1800),
    ("put 16K, 2 ports", "put --size 16K --window 64", 400, 1200),
    ("put 64K, 2 ports", "put --size 64K --window 16", 200, 600),
    ("put 64K, 8 peers", "put --size 64K --window 8 --peers 8 --fabric nodes=9", 30, 90),
    ("put 256K, 4 ports", "put --size 256K --window 16 --fabric ports=4", 60, 180),
    ("put 1M, 2 ports", "put --size 1M", 20, 60),
    ("put 1M, 8 ports", "put --size 1M --fabric ports=8", 30, 80),
    ("put 1M, 16 ports", "put --size 1M --fabric ports=16", 40, 100),
    ("put 1M one at a time", "put --size 1M --window 1", 20, 60),
    ("put 1M, tail on", "put --size 1M --window 1 --tail on", 20, 60),
    ("put 4K one at a time", "put --size 4K --window 1", 500, 1500),
    ("put 8 B", "put --size 8 --window 16", 600, 1800),
    ("put 8 B, 8 ports", "put --size 8 --window 1 --fabric ports=8", 500, 1500),
    ("put 8K, signal every 16", "put --size 8K --window 128 --signal-every 16", 600, 1800),
    ("signal 448K", "signal --size 448K", 40, 120),
    ("signal 64K, 4 ports", "signal --size 64K --window 8 --fabric ports=4", 200, 600),
    ("signal 8 B", "signal --size 8 --window 1", 500, 1500),
    ("get 64K", "get --size 64K", 200, 600),
    ("atomic add", "atomic --fabric nodes=4", 1000, 3000),
    ("atomic xor, by the target", "atomic --op xor --fabric nodes=4", 400, 1200),
    ("DeepEP, FP8, a token", "moe --moe-phase dispatch-fp8", 2048, 4096),
    ("DeepEP, 4 nodes, a token", "moe --moe-phase combine --fabric nodes=4", 2048, 4096),
)


def objects(path):
    """Instructions in libbraid itself, and in what it calls of libc, out of a callgrind file."""
    names, here, there, calls, total, counting = {}, "", "", False, 0, True

    def name(text): # "(12) rest" the first time, "(12)" from then on
        number, _, rest = text.partition(" ")
        if rest:
            names[number] = rest
        return names.get(number, number)

    with open(path, encoding="utf-8") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("ob="):
                here = name(line[3:])
            elif line.startswith("cob="):
                there = name(line[4:])
            elif line.startswith("fn="):
                # The generator asks for the counters; a program would not.
                there, counting = here, "braid_channel_stats_at" not in name("fn" + line[3:])
            elif line.startswith("cfn="):
                name("fn" + line[4:])
            elif line.startswith("calls="):
                calls = True
            elif line[:1] in "+-*0123456789" and line:
                cost = int(line.split()[1]) if len(line.split()) > 1 else 0
                mine = counting and "libbraid.so" in here
                if mine and (not calls or ("libc.so" in there)):
                    total += cost
                if calls:
                    calls, there = False, here
    return total


def measure(braid, arguments, count, folder):
    """One run: instructions, and the work that was done."""
    handle, out = tempfile.mkstemp(dir=folder)
    os.close(handle)
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", braid, "bench", *arguments.split(),
                           "--moe-tokens" if arguments.startswith("moe") else "--count", str(count), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"callgrind-costs: {arguments}: status {done.returncode}\n{done.stderr[-2000:]}")
    return objects(out), json.loads(done.stdout)["runs"][0]["work"]


def solve(a, b):
    """Gauss with pivots; a is square."""
    n = len(b)
    m = [row[:] + [b[i]] for i, row in enumerate(a)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(m[r][i]))
        m[i], m[pivot] = m[pivot], m[i]
        for r in range(n):
            if r != i and m[i][i]:
                f = m[r][i] / m[i][i]
                m[r] = [x - f * y for x, y in zip(m[r], m[i])]
    return [m[i][n] / m[i][i] if m[i][i] else 0.0 for i in range(n)]


def fit(rows, work, seen, table):
    """Nanoseconds a row that explain what was seen best, relative errors counting; never below 0; near the table where free."""
    fixed = {r: KNOWN[r] for r in rows if r in KNOWN}
    free = [r for r in rows if r not in fixed]
    while True:
        a = [[0.0] * len(free) for _ in free]
        b = [0.0] * len(free)
        for w, s in zip(work, seen):
            left = s - sum(fixed[r] * w[r] for r in fixed)
            for i, r in enumerate(free):
                b[i] += left * w[r] / s / s
                for k, q in enumerate(free):
                    a[i][k] += w[r] * w[q] / s / s
        scale = max(max(row) for row in a) * 1e-9 + 1e-12
        for i, r in enumerate(free):
            weight = max(a[i][i] * 1e-3, scale)
            a[i][i] += weight
            b[i] += weight * table[r]
        found = dict(zip(free, solve(a, b)))
        below = [r for r in free if found[r] < 0]
        if not below:
            return {**fixed, **found}
        fixed[below[0]] = 0.0
        free.remove(below[0])


def count_all(braid, only):
    """Runs the workloads; for each its name, ops, instructions in ns, and the work that was done."""
    chosen = [w for w in WORKLOADS if only in w[0]]
    counts = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [(w, [pool.submit(measure, braid, w[1], n, folder) for n in w[2:]]) for w in chosen]
        for (name, _, low, high), both in runs:
            (few, before), (many, after) = (r.result() for r in both)
            work = {k: after[k] - before[k] for k in after if k != "ns"}
            counts.append({"name": name, "ops": high - low, "ns": (many - few) / PER_NS, "work": work})
            print(f"{name}: {counts[-1]['ns'] / (high - low):.1f} ns an op", file=sys.stderr, flush=True)
    return counts


def report(counts, table):
    """The lines that say how table and counts agree."""
    rows = [r for r in counts[0]["work"] if any(c["work"][r] for c in counts)]
    found = fit(rows, [c["work"] for c in counts], [c["ns"] for c in counts], table)
    yield f"{'row':16} {'table ns':>9} {'fitted ns':>10} {'instructions':>13}"
    for r in rows:
        yield f"{r:16} {table[r]:9.0f} {found[r]:10.1f} {found[r] * PER_NS:13.0f}"
    yield ""
    yield f"{'workload':28} {'executed':>10} {'charged':>10} {'by':>8} {'the fit by':>11}   ns an op, {PER_NS:.0f} instructions a ns"
    for c in counts:
        charged, fitted = (sum(t[r] * c["work"][r] for r in rows) for t in (table, found))
        yield (f"{c['name']:28} {c['ns'] / c['ops']:10.1f} {charged / c['ops']:10.1f} {100 * charged / c['ns'] - 100:+7.1f}% "
               f"{100 * fitted / c['ns'] - 100:+10.1f}%")


HEAD = """# What libbraid's own code costs

Made by `make costs`: instructions that callgrind counts in libbraid, and in what it calls in libc, while `braid bench` runs, and what the cost
table (`emu/emu_cost.c`) charges for the same work. 3 instructions are taken as a nanosecond: a model, not a measurement. Device and
verbs calls have rows of their own, which are not fitted.

```text
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--only", default="", help="workloads with this word in their name")
    parser.add_argument("--save", help="file for what was counted")
    parser.add_argument("--counts", help="such a file: nothing is run")
    parser.add_argument("--write", action="store_true", help="write docs/costs.md")
    options = parser.parse_args()
    if options.counts:
        with open(options.counts, encoding="utf-8") as f:
            counts = json.load(f)
    else:
        counts = count_all(os.path.join(options.build, "cli/braid"), options.only)
    if options.save:
        with open(options.save, "w", encoding="utf-8") as f:
            json.dump(counts, f)
    text = "\n".join(report(counts, table_of(counts[0]["work"]))) + "\n"
    print(text, end="")
    if options.write:
        with open(os.path.join(ROOT, "docs/costs.md"), "w", encoding="utf-8") as f:
            f.write(HEAD + text + "```\n")


def table_of(rows):
    """The cost table, out of its source: the one place where it is."""
    path = os.path.join(ROOT, "emu/emu_cost.c")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    found = {}
    for row in rows:
        at = text.find(f'{{"{row}", ')
        found[row] = float(text[at:].split(", ")[1].split("}")[0]) if at >= 0 else 0.0
    return found


if __name__ == "__main__":
    main()
