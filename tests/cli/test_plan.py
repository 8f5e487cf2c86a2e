#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_plan.py - `braid plan` over machines of the field (tests/golden): their tables, what is said, how it ends.

  test_plan.py BRAID       prints TAP

With BRAID_CASES=DIR the same tables are asked of the files of that folder too, of which some are not in the tree.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from plan_cases import CASES, HOSTS, ports_of
from tap import Tap

BRAID = sys.argv[1]
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
TAP = Tap()
check = TAP.holds


def plan(*args, text=None):
    """Runs `braid plan`: (status, stdout, stderr)."""
    done = subprocess.run([BRAID, "plan", *args], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def table(out):
    """GPU -> list of ports, of the JSON form."""
    return {g["gpu"]: [p["port"] for p in g["ports"]] for g in json.loads(out)["gpus"]}


def is_case(name, case, folder, where):
    files = [os.path.join(folder, f) for f in case["files"]]
    status, out, err = plan(*files, "--json", *case.get("args", []))
    said = f"status {status}\n{out}{err}"
    check(f"{name} {where}: exit status {case['status']}", status == case["status"], said)
    if status > 1:
        return
    got, answer = table(out), json.loads(out)
    expected = ports_of(case["ports"])
    check(f"{name} {where}: the table", got == expected, f"expected {expected}\n{said}")
    classes = {g["gpu"]: {p["class"] for p in g["ports"]} for g in answer["gpus"]}
    for gpu, near in case.get("class", {}).items():
        check(f"{name} {where}: {gpu} is {near}", classes.get(gpu) == {near}, said)
    for port in case.get("unused", "").split():
        check(f"{name} {where}: {port} is left, with a reason",
              any(u["port"] == port and u["why"] for u in answer["unused"]), said)
    for text in case.get("notes", []):
        check(f"{name} {where}: says {text!r}", any(text in n for n in answer["notes"]), said)


def test_cases():
    others = os.environ.get("BRAID_CASES")
    for name, case in CASES.items():
        if all(os.path.exists(os.path.join(HERE, f)) for f in case["files"]):
            is_case(name, case, HERE, "here")
        elif not others:
            TAP.skip(f"{name}", "its files are not ours: BRAID_CASES=DIR")
        if others:
            is_case(name, case, others, "in BRAID_CASES")


def test_hosts():
    """Made-up hosts, as JSON: what the field's reports say of the choice."""
    for name, case in HOSTS.items():
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump(dict(case["host"], schema="braid.host/1"), f)
            f.flush()
            is_case(name, dict(case, files=[f.name]), "", "made up")


def main():
    test_cases()
    test_hosts()
    TAP.done()


if __name__ == "__main__":
    main()
