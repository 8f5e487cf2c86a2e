#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""results_plugins.py - NVSHMEM plugins side by side under the minihost, as a section of docs/results.md. Called by results.py;
alone it prints the section.

  results_plugins.py BUILD

NVIDIA's plugin of 3.4.5 is taken from where scripts/fetch-nvshmem.sh puts it; where it cannot be had, its rows are left out,
and the section says why.
"""
import json
import os
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEER = "3.4.5"

HEAD = f"""
## NVSHMEM plugins

The same streams as NVSHMEM's proxy thread would send them: `braid bench` drives each plugin by its interface (`bench/host`), a put has
ended when a quiet has. `$PEER` is NVIDIA's own plugin of {PEER} (`scripts/fetch-nvshmem.sh {PEER}`), `$OURS` the one in `build/plugin/nvshmem`.
`model:nic-rr` is a **model of published behaviour** of host transports with several NICs (whole ops round robin, a fence waits for all
NICs), not a measurement of any. 150 ns a request for the proxy is a guess; instructions of plugins are not charged.
Windows end in a quiet, which costs a round trip each.

| what | wanted | | figures | command: `braid bench` ... |
|---|---|---|---|---|
"""


def share(run):
    """How a run's payload was spread over the sender's ports, percent."""
    tx = [p["tx"] for p in run["port_bytes"] if p["host"] == "h0"]
    return "/".join(f"{100 * t / max(sum(tx), 1):.0f}" for t in tx)


def name(run):
    if run["engine_label"].startswith("another"):
        return f"NVIDIA {PEER}"
    if run["engine_label"].startswith("braid's"):
        return "braid's plugin"
    return run["engine"]


def show(runs):
    first = runs[0]["gbs"]
    return "; ".join(f"{name(r)}, {r['ports']} port{'s' if r['ports'] > 1 else ''}: {r['gbs']:.2f} GB/s, {r['gbs'] / first:.3f}x, payload "
                     f"by port {share(r)} %" for r in runs)


def right(runs):
    return all(r["errors"] == 0 and r["compared_bytes"] > 0 for r in runs)


def printed(runs):
    return right(runs), show(runs)


def stock_and_ours(runs):
    stock, ours = runs[0], runs[1]
    one = sum(p["tx"] > 0.01 * stock["payload_bytes"] for p in stock["port_bytes"] if p["host"] == "h0")
    return right(runs) and one == 1 and ours["gbs"] >= 1.9 * stock["gbs"], show(runs)


BOTH = "--compare '$PEER,release,2;$OURS,release,2;model:nic-rr,release,2'"
ONE_TWO = "--compare '$OURS,release,1;$OURS,release,2;model:nic-rr,release,1;model:nic-rr,release,2'"
ROWS = [
    ("1 MiB puts, window 16, 2 ports", "NVIDIA's uses one port; ours >= 1.9x", stock_and_ours, f"put --size 1M --window 16 {BOTH}"),
    ("one put of 1 MiB and its quiet", "printed", printed, f"put --size 1M --window 1 {ONE_TWO}"),
    ("448 KiB put + fence + signal add, window 16", "printed", printed, f"signal --size 448K --window 16 {BOTH}"),
    ("64 KiB put + fence + signal add, window 64", "printed", printed, f"signal --size 64K --window 64 {BOTH}"),
    ("448 KiB put + signal add, window 16, to 3 peers", "printed", printed,
     f"signal --size 448K --window 16 --peers 3 --fabric nodes=4,ports=2 {BOTH}"),
]


def peer():
    """NVIDIA's plugin, or None and why not. A registry that answers has to have it."""
    fetch = os.path.join(ROOT, "scripts/fetch-nvshmem.sh")
    done = subprocess.run([fetch, PEER], capture_output=True, text=True, check=False)
    if done.returncode == 3:
        return None, done.stderr.strip()
    if done.returncode != 0:
        sys.exit(f"results: {done.stderr.strip()}")
    where = subprocess.run([fetch, "--where"], capture_output=True, text=True, check=True).stdout.strip()
    return os.path.join(where, PEER, "nvshmem_transport_ibrc.so.3"), None


def section(build):
    """The section's text, and the titles of rows that are not met."""
    theirs, why = peer()
    ours = os.path.join(build, "plugin/nvshmem/nvshmem_transport_ibrc.so.3")
    lines, failed = [], []
    for title, wanted, judge, command in ROWS:
        shown = command.replace("$PEER", "plugin:$PEER").replace("$OURS", "plugin:$OURS")
        if theirs is None and "$PEER" in command:
            if judge is not printed:
                continue
            command = command.replace("$PEER,release,2;", "")
            shown = shown.replace("plugin:$PEER,release,2;", "")
        command = command.replace("$PEER", f"plugin:{theirs}").replace("$OURS", f"plugin:{ours}")
        done = subprocess.run([os.path.join(build, "cli/braid"), "bench", *shlex.split(command), "--json"], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"results: braid bench {command}: status {done.returncode}\n{done.stderr}")
        met, text = judge(json.loads(done.stdout)["runs"])
        failed += [] if met else [title]
        verdict = "" if wanted == "printed" and met else "met" if met else "**not met**"
        lines.append(f"| {title} | {wanted} | {verdict} | {text} | `{shown}` |")
        print(f"{'met    ' if met else 'NOT MET'} {title} ({wanted}): {text}", file=sys.stderr, flush=True)
    missing = f"\nNVIDIA's plugin is left out: {why}.\n" if why else ""
    return HEAD + "\n".join(lines) + "\n" + missing, failed


if __name__ == "__main__":
    text, wrong = section(sys.argv[1])
    print(text)
    sys.exit(1 if wrong else 0)
