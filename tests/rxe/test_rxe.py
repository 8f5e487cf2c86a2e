#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_rxe.py - tests on the kernel's verbs: boots an emulated VM with soft-RoCE devices, runs programs in it, makes one TAP of theirs.

  test_rxe.py BUILD PART...      parts are functions of parts.sh; all run in one VM, one after the other
  test_rxe.py BUILD --two PART   the part runs in each of two VMs, which two links join; left out with BRAID_QUICK=1

Prints TAP; everything is skipped, with the reason, where the VM cannot be made. Called by Meson (suite rxe); next: rig.sh.
BRAID_QUICK=1 makes parts that repeat a check do so less often.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from tap import Tap

RIG = os.path.join(HERE, "rig.sh")
MISSING = 77  # rig.sh's exit status where something is not there
LIMIT_S = 1500
POINT = re.compile(r"^(not )?ok\b *\d* *-? *(.*)$")
PLAN = re.compile(r"^1\.\.(\d+)")
COMPLAINTS = re.compile(r"\b(BUG|WARNING|Oops|Kernel panic)\b")


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def points_of(text):
    """[(good, name, notes)] of a TAP text, its plan (None: there is none), and the lines that belong to no point."""
    points, plan, rest = [], None, []
    for line in text.splitlines():
        point = POINT.match(line)
        if PLAN.match(line):
            plan = int(PLAN.match(line).group(1))
        elif point:
            points.append((not point.group(1), point.group(2), []))
        elif points and line.startswith("#"):
            points[-1][2].append(line)
        else:
            rest.append(line)
    return points, plan, rest


def add_program(tap, name, text, status):
    """Adds one program's points, and one for its end."""
    points, plan, rest = points_of(text)
    print("".join(f"{line}\n" for line in rest if line.startswith("#")), end="")
    for good, what, notes in points:
        directive = re.search(r"# (SKIP|TODO)\b", what, re.I)
        tap.count += 1
        tap.bad += not good and not directive
        print(f"{'ok' if good else 'not ok'} {tap.count} - {name}: {what}")
        print("".join(note + "\n" for note in notes), end="")
    problems = []
    if plan != len(points) or not points:
        problems.append(f"{len(points)} checks seen, the plan says {plan}")
    failed = any(not good and not re.search(r"# (SKIP|TODO)\b", what, re.I) for good, what, _ in points)
    if status != "0" and not failed:
        problems.append(f"exit status {status or 'unknown: it was still running when the VM ended'}")
    tap.check(f"{name}: came to its end", problems + (rest[-10:] if problems else []))


def run_parts(tap, build, parts, folder, vms):
    """Boots one VM or two, and adds what the programs in them said."""
    command = f"build={build} QUICK={os.environ.get('BRAID_QUICK', '')}\n. {HERE}/guest.sh\n. {HERE}/parts.sh\n" + "\n".join(parts)
    links = "2" if len(vms) > 1 else "0"
    ran = subprocess.run([RIG, "run", folder, links, *[command for _ in vms]], check=False, timeout=LIMIT_S, stdout=subprocess.DEVNULL,
                         env={**os.environ, "LIMIT": str(LIMIT_S - 10), "CPUS": str(2 // len(vms))})
    for vm in vms:
        for name in read(f"{folder}/{vm}.programs").split():
            add_program(tap, name.removeprefix("a.") if len(vms) == 1 else name, read(f"{folder}/{name}.out"),
                        read(f"{folder}/{name}.rc").strip())
        console = read(f"{folder}/{vm}.console").splitlines()
        problems = []
        if ran.returncode != 0:
            problems = [f"exit status {ran.returncode}"] + read(f"{folder}/{vm}.log").splitlines()[-20:] + console[-20:]
            problems += read(f"{folder}/{vm}.qemu").splitlines()[-5:]
        tap.check(f"VM {vm} came to its end", problems)
        tap.check(f"the kernel of VM {vm} complained of nothing", [line for line in console if COMPLAINTS.search(line)])


def self_tests(tap):
    points, plan, rest = points_of("1..2\n# head\nok 1 - a\nnot ok 2 - b # TODO x\n# why\n")
    tap.must_pass("TAP of a program is understood", [] if (plan, len(points), rest) == (2, 2, ["# head"]) and points[0][0] and not
                  points[1][0] and points[1][2] == ["# why"] else [str((points, plan, rest))])


def main():
    build, parts = os.path.abspath(sys.argv[1]), sys.argv[2:]
    vms = ["a", "b"] if parts[0] == "--two" else ["a"]
    if len(vms) > 1 and os.environ.get("BRAID_QUICK"):
        print("1..0 # SKIP two VMs are not part of the quick form")
        sys.exit(0)
    made = subprocess.run([RIG, "build"], stderr=subprocess.PIPE, text=True, check=False)
    if made.returncode == MISSING:
        print(f"1..0 # SKIP {made.stderr.strip().splitlines()[-1]}")
        sys.exit(0)
    tap = Tap()
    self_tests(tap)
    tap.check("kernel and initramfs", [] if made.returncode == 0 else made.stderr.splitlines())
    folder = tempfile.mkdtemp(prefix="braid-rxe-")  # a short path: it has sockets in it
    try:
        if made.returncode == 0:
            run_parts(tap, build, parts[len(vms) - 1:], folder, vms)
    finally:
        shutil.rmtree(folder)
    tap.done()


if __name__ == "__main__":
    main()
