#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_cli.py - the `braid` program as a user meets it: what it prints, how it ends, what it says to wrong use.

  test_cli.py BRAID        prints TAP
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Tap

BRAID = sys.argv[1]
TAP = Tap()
check = TAP.holds


def braid(*args, **environment):
    """Runs the program: (status, stdout, stderr)."""
    env = dict(os.environ, **environment)
    done = subprocess.run([BRAID, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, env=env)
    return done.returncode, done.stdout, done.stderr


def rows(text):
    """The demo's table: case -> GB/s of one port, drain, braid, and what the ports allow."""
    found = re.findall(r"^  (\S.*?\S) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", text, re.M)
    return {row[0]: [float(v) for v in row[1:]] for row in found}


def test_demo():
    status, out, err = braid("demo", "--count", "96")
    said = f"status {status}\n{out}\n{err}"
    found = rows(out)
    check("demo ends well", status == 0, said)
    check("demo shows three cases", len(found) == 3, said)
    check("demo checks all data", "all data right" in out and "WRONG" not in out, said)
    for case, (one, drain, both, most) in found.items():
        check(f"{case}: two ports carry at least 1.6 times what one does", both >= 1.6 * one > 0, said)
        check(f"{case}: blocking at each signal is slower than not", drain < both, said)
        check(f"{case}: nothing is faster than the ports allow", 0 < max(one, drain, both) <= most, said)
    check("demo shows bars", len(re.findall(r"h0/mlx5_[01]:1 +#+", out)) >= 5, said)
    check("demo is one screen", len(out.splitlines()) <= 24 and max(map(len, out.splitlines()), default=0) <= 100, said)
    check("demo has no escape sequences where it is no terminal", "\033" not in out, said)
    check("demo says that its figures are emulated, and the seed", "emulated" in out and "seed 1" in out, said)
    check("demo repeats to the letter", braid("demo", "--count", "96")[1] == out, said)
    check("another seed is named", "seed 7" in braid("demo", "--count", "12", "--seed", "7")[1])


def test_environment():
    """Options of libbraid in the user's environment are for the user's programs: they must not change the demo's figures."""
    plain = braid("demo", "--count", "12")
    for name, value in (("BRAID_RAILS", "1"), ("BRAID_RAILS", "2"), ("BRAID_MTU", "256"), ("BRAID_ORDER", "drain"),
                        ("BRAID_PORTS", "nosuch:1"), ("BRAID_SEED", "77")):
        seen = braid("demo", "--count", "12", **{name: value})
        check(f"demo is the same under {name}={value}", seen[:2] == plain[:2], seen[1] + seen[2])


def test_full_disk():
    with open("/dev/full", "wb") as full:
        for args in (["options"], ["--help"], ["demo", "--count", "4"]):
            done = subprocess.run([BRAID, *args], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            check(f"braid {' '.join(args)} onto a full disk fails", done.returncode == 1 and "space" in done.stderr.lower(),
                  f"status {done.returncode}\n{done.stderr}")


def test_wrong_use():
    for args in (["nosuch"], [], ["demo", "--count", "0"], ["demo", "--count", "x"], ["demo", "--count"], ["demo", "--seed", "-1"],
                 ["demo", "--nosuch"], ["demo", "more"], ["demo", "--window", "99999999999999999999"], ["options", "more"]):
        status, out, err = braid(*args)
        check(f"braid {' '.join(args)}: status 2 and a reason", status == 2 and "braid" in err and not out.strip(),
              f"status {status}\n{out}\n{err}")


def test_no_emulator():
    """A path that is none, and a library that is another."""
    with tempfile.NamedTemporaryFile(suffix=".so") as empty:
        for path in ("/nosuch/libibverbs.so.1", empty.name):
            status, out, err = braid("demo", BRAID_EMU_LIB=path)
            check(f"demo without a usable emulator ({'none' if 'nosuch' in path else 'empty file'}) says so",
                  status == 1 and "emulator" in err and not out.strip(), f"status {status}\n{out}\n{err}")


def test_rest():
    status, out, _ = braid("--version")
    check("--version", status == 0 and re.match(r"braid \d+\.\d+\.\d+\n$", out), out)
    status, out, _ = braid("--help")
    check("--help", status == 0 and "demo" in out and "options" in out, out)
    status, out, _ = braid("options")
    lines = out.splitlines()
    check("options: one row each, none empty",
          status == 0 and len(lines) > 10 and all(re.match(r"BRAID_[A-Z_]+ +\S+ +\S", line) for line in lines), out)


def main():
    test_demo()
    test_environment()
    test_full_disk()
    test_wrong_use()
    test_no_emulator()
    test_rest()
    TAP.done()


if __name__ == "__main__":
    main()
