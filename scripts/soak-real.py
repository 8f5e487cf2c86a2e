#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""soak-real.py - runs programs of the real-time suite many times in a row, as TAP: none may fail, hang, or leave a fabric behind.

  scripts/soak-real.py [--runs N] [--limit S] BUILD [PROGRAM ...]

PROGRAM: verbs, braid, gpu, litmus; default: all. Some of their processes are killed on purpose. What is left in /dev/shm under
a name that these programs give their fabrics is a failure.
"""
import argparse
import os
import subprocess
import sys
import time

PROGRAMS = {
    "verbs": ["tests/real/test_real_verbs"],
    "braid": ["tests/real/test_real_braid"],
    "gpu": ["tests/real/test_real_gpu"],
    "litmus": ["tests/litmus/litmus", "--real", "--mode", "release", "--count", "1", "--jobs", "1", "--tap"],
}


def left_over():
    """Fabrics of test programs that have ended: a fabric's name holds the number of the process that named it."""
    prefix, left = f"braid-emu.{os.geteuid()}.", []
    for name in os.listdir("/dev/shm"):
        words = name[len(prefix):].split("-")
        if not name.startswith(prefix) or words[0] not in ("test", "litmus") or len(words) != 3:
            continue
        try:
            os.kill(int(words[1]), 0)
        except ProcessLookupError:
            left.append(name)
    return left


def run_once(build, command, env, limit):
    """Runs a program; returns what is wrong, or None."""
    with subprocess.Popen([os.path.join(build, command[0])] + command[1:], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, start_new_session=True) as p:
        try:
            out, _ = p.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, 9)
            out, _ = p.communicate()
            return f"hung for {limit} s\n{out}"
        if p.returncode != 0 or "not ok" in out:
            return f"exit status {p.returncode}\n{out}"
        left = left_over()
        return f"left in /dev/shm: {left}" if left else None


def soak(build, name, runs, limit):
    """Runs one program so many times; returns what went wrong."""
    emu = os.path.join(build, "emu")
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", LD_LIBRARY_PATH=emu,
               BRAID_EMU_LIB=os.path.join(emu, "libibverbs.so.1"))
    bad = []
    for i in range(runs):
        wrong = run_once(build, PROGRAMS[name], env, limit)
        if wrong:
            bad.append(f"run {i + 1}: {wrong}")
    return bad


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("build")
    parser.add_argument("program", nargs="*")
    args = parser.parse_args()
    names = args.program or list(PROGRAMS)
    failed = False
    print(f"1..{len(names)}")
    for k, name in enumerate(names):
        if name not in PROGRAMS:
            sys.exit(f"soak-real.py: seen {name}, expected one of {', '.join(PROGRAMS)}")
        begin = time.monotonic()
        bad = soak(os.path.abspath(args.build), name, args.runs, args.limit)
        failed |= bool(bad)
        for text in bad:
            print("".join(f"# {line}\n" for line in text.splitlines()), end="")
        print(f"{'not ok' if bad else 'ok'} {k + 1} - {name}: {args.runs} runs, {len(bad)} of them bad, "
              f"{time.monotonic() - begin:.0f} s", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
