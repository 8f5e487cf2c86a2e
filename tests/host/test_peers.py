#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_peers.py - NVIDIA's own plugins under the minihost: they prove that it calls as NVSHMEM does.

  test_peers.py HOST_SUITE FETCH_SCRIPT virtual|real

Release 3.4.5 is fetched where it is missing, and has to be there; others are tried where they have been fetched
(scripts/fetch-nvshmem.sh --all). Where the package registry does not answer, or BRAID_NO_INSTALL=1 forbids to ask it, the
checks are skipped with that reason.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Tap

REQUIRED = "3.4.5"
# The interface that each release speaks, and what it is not tried with.
PEERS = {
    "3.2.5": ("3", "3a"), "3.3.20": ("3", "3b"), "3.4.5": ("3", "3b"), "3.5.21": ("4", "4"), "3.6.5": ("5", "5"),
    "3.7.2": ("6", "6"),
}
NEEDS_CUDA = {"3.7.2"}


def fetched(fetch):
    """The cache, and why there is nothing in it (None: there is)."""
    cache = subprocess.run([fetch, "--where"], capture_output=True, text=True, check=True).stdout.strip()
    if os.path.isdir(os.path.join(cache, REQUIRED)):
        return cache, None, 0
    if os.environ.get("BRAID_NO_INSTALL") == "1":
        return cache, "BRAID_NO_INSTALL=1, and nothing was fetched before", 3
    ran = subprocess.run([fetch, REQUIRED], capture_output=True, text=True)
    return cache, ran.stderr.strip() or None, ran.returncode


def has_cuda():
    return os.path.exists("/dev/nvidiactl")


def suite(tap, program, plugin, version, clock, caller, ports, pes):
    name = f"{os.path.basename(os.path.dirname(plugin))}, {clock} time, called from {caller}, {ports} ports, {pes} PEs"
    command = [program, "--plugin", plugin, "--as", version, "--peer", "--clock", clock, "--caller", caller, "--ports", ports,
               "--pes", pes]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=400)
    except subprocess.TimeoutExpired:
        tap.check(name, ["not done in 400 s"])
        return
    lines = ran.stdout.splitlines()
    good = [line for line in lines if line.startswith("ok ") and "# SKIP" not in line]
    wrong = [line for i, line in enumerate(lines) if line.startswith("not ok") or (i and lines[i - 1].startswith("not ok"))]
    if ran.returncode != 0 or not good:
        wrong += [f"exit status {ran.returncode}, {len(good)} good; {' '.join(command)}"] + ran.stderr.splitlines()[-3:]
    tap.check(f"{name}: {len(good)} checks", wrong)


def main():
    program, fetch, clock = sys.argv[1:4]
    tap = Tap()
    cache, why, status = fetched(fetch)
    if status == 3:
        tap.skip("NVIDIA's plugins under the minihost", why)
        tap.done()
    tap.check(f"NVIDIA's plugin of {REQUIRED} is in the cache", [] if status == 0 else [str(why)])
    for release, (major, version) in PEERS.items():
        plugin = os.path.join(cache, release, "nvshmem_transport_ibrc.so." + major)
        if not os.path.exists(plugin):
            if release != REQUIRED:
                tap.skip(release, "not fetched: scripts/fetch-nvshmem.sh " + release)
        elif release in NEEDS_CUDA and not has_cuda():
            tap.skip(release, "it refuses memory where there is no CUDA driver")
        elif release == REQUIRED:
            suite(tap, program, plugin, version, clock, "c", "1,2", "2,4" if clock == "virtual" else "2")
            suite(tap, program, plugin, version, clock, "c++", "1", "3")
        else:
            suite(tap, program, plugin, version, clock, "c++", "1", "2")
    tap.done()


if __name__ == "__main__":
    main()
