#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run-tests.py - runs Meson's tests of one build folder and counts the single checks inside them.

  scripts/run-tests.py [--suite S] [--no-suite S] [--jobs N] [--slower F] BUILD

Meson counts programs; this counts checks: each TAP line is one, a program that speaks no TAP is one. Failed checks are
named. The last line is "N passed, N failed"; the exit status is 0 only if nothing failed and something ran. A program
that crashes, times out, or ends before its TAP plan is complete is a failure of its own, whatever it had passed.

Programs that run by the machine's clock (suites real and load) and fail, without a sanitizer's report, are run once more, alone: others
may have kept them from a CPU. A line "again:" says so for each, and what failed; what counts is the second time.
"""
import argparse
import json
import os
import re
import subprocess
import sys

BY_THE_CLOCK = re.compile(r"^[^:]*:(real|load)\b")
REPORTS = ("Sanitizer", "runtime error:")
GOOD = {"OK", "EXPECTEDFAIL", "SKIP"}
POINT = re.compile(r"^(not )?ok\b *(\d+)?(?: *-)? *(.*)$")
PLAN = re.compile(r"^1\.\.(\d+)(?: *# *(SKIP.*))?$", re.I)


class Tally:
    """What was counted so far."""

    def __init__(self):
        self.passed = 0
        self.skipped = []
        self.failed = []

    def fail(self, text):
        self.failed.append(text)


def count_tap(name, lines, tally):
    """Counts the TAP points of one program; returns how many there were, or None if it speaks no TAP."""
    plan, points, noting = None, 0, False
    for line in lines:
        if noting and line.startswith("#"):
            tally.failed[-1] += f"\n    {line}"
            continue
        noting = False
        m = PLAN.match(line)
        if m:
            if plan is not None:
                tally.fail(f"{name}: more than one TAP plan, so the count cannot be trusted")
            plan = int(m.group(1))
            if plan == 0:
                tally.skipped.append(f"{name} ({m.group(2) or 'an empty plan'})")
            continue
        m = POINT.match(line)
        if not m:
            continue
        points += 1
        what, _, directive = m.group(3).partition("#")
        label = f"{name}: {what.strip() or 'check ' + str(points)}"
        directive = directive.strip().upper()
        if m.group(1) and not directive.startswith("TODO"):
            tally.fail(label)
            noting = True
        elif directive.startswith("SKIP"):
            tally.skipped.append(label)
        elif not m.group(1):
            tally.passed += 1
    if plan is None and points == 0:
        return None
    if plan is None:
        tally.fail(f"{name}: ended without a TAP plan, after {points} checks")
    elif plan != points:
        tally.fail(f"{name}: ended after {points} of {plan} checks")
    return points


def count_program(entry, tally):
    """Adds one program of Meson's log to the tally."""
    name, result, code = entry.get("name", "?"), entry.get("result", "?"), entry.get("returncode", 0)
    before = len(tally.failed)
    tap = count_tap(name, (entry.get("stdout") or "").splitlines(), tally)
    bad = result not in GOOD or (code != 0 and result not in ("EXPECTEDFAIL", "SKIP"))
    if bad and len(tally.failed) == before:
        tally.fail(f"{name}: {result.lower()}, exit status {code}")
    elif bad and code < 0:
        tally.fail(f"{name}: killed by signal {-code}")
    elif tap is None and not bad:
        if result == "SKIP":
            tally.skipped.append(name)
        else:
            tally.passed += 1


def read_log(path):
    """Entries of Meson's testlog.json (one JSON object a line)."""
    with open(path, encoding="utf-8") as log:
        return [json.loads(line) for line in log if line.strip()]


def count_entries(entries):
    """The tally of some programs."""
    tally = Tally()
    for entry in entries:
        count_program(entry, tally)
    return tally


def count_log(path, again=None):
    """Counts a log; again(entry), where it is given, has a second look at what failed and returns the entry that counts."""
    tally = Tally()
    try:
        entries = read_log(path)
    except OSError as err:
        tally.fail(f"no test log: {err}")
        return tally
    except ValueError as err:
        tally.fail(f"{path}: broken line: {err}")
        return tally
    if not entries:
        tally.fail("no test ran: the suite name or the build folder is wrong")
        return tally
    return count_entries([again(entry) if again else entry for entry in entries])


def may_run_again(entry):
    """Whether a program failed that depends on the machine's clock, and no sanitizer has said anything."""
    text = (entry.get("stdout") or "") + (entry.get("stderr") or "")
    return bool(count_entries([entry]).failed and BY_THE_CLOCK.match(entry.get("name", ""))
                and not any(report in text for report in REPORTS))


def run_again(entry, command, build):
    """Runs a program that may be once more, alone; the entry that counts."""
    if not may_run_again(entry):
        return entry
    name = entry["name"].split(" / ")[-1]
    subprocess.call(command + ["--num-processes", "1", "--logbase", "again", name])
    try:
        second = read_log(os.path.join(build, "meson-logs", "again.json"))
    except (OSError, ValueError):
        second = []
    if len(second) != 1:
        return entry
    print(f"again: {count_entries([entry]).failed[0].splitlines()[0]}; alone: {second[0].get('result', '?').lower()}")
    return second[0]


def report(tally, meson_rc):
    """Prints names and totals; returns the exit status."""
    if meson_rc != 0 and not tally.failed:
        tally.fail(f"meson test ended with status {meson_rc}, though no failed check is in its log")
    for name in tally.skipped:
        print(f"skipped: {name}")
    for name in tally.failed:
        print(f"FAILED: {name}")
    if tally.skipped:
        print(f"{len(tally.skipped)} skipped")
    if tally.passed == 0 and not tally.failed:
        tally.fail("everything was skipped")
        print("FAILED: everything was skipped")
    print(f"{tally.passed} passed, {len(tally.failed)} failed", flush=True)
    return 1 if tally.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", help="a configured Meson build folder")
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--no-suite", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--slower", type=int, default=1, help="multiplies every test's time limit")
    parser.add_argument("--count", action="store_true", help="only count BUILD/meson-logs/testlog.json")
    args = parser.parse_args()
    log = os.path.join(args.build, "meson-logs", "testlog.json")
    if args.count:
        return report(count_log(log), 0)
    if os.path.exists(log):
        os.unlink(log)
    rc = subprocess.call(["ninja", "-C", args.build, "-j", str(args.jobs), "--quiet"])
    if rc != 0:
        print("FAILED: the build")
        print("0 passed, 1 failed", flush=True)
        return 1
    base = ["meson", "test", "-C", args.build, "--no-rebuild", "--print-errorlogs", "--timeout-multiplier", str(args.slower)]
    command = base + ["--num-processes", str(args.jobs)]
    for suite in args.suite:
        command += ["--suite", suite]
    for suite in args.no_suite:
        command += ["--no-suite", suite]
    sys.stdout.flush()
    rc = subprocess.call(command)
    once = count_log(log)
    tally = count_log(log, lambda entry: run_again(entry, base, args.build))
    return report(tally, 0 if once.failed and not tally.failed else rc)


if __name__ == "__main__":
    sys.exit(main())
