#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""man-options.py - puts the option table into a manual page, in place of the line @OPTIONS@.

  scripts/man-options.py PROGRAM IN OUT      PROGRAM prints the rows (man/man_options.c)
"""
import subprocess
import sys


def main():
    program, source, target = sys.argv[1:]
    rows = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    with open(source, encoding="utf-8") as f:
        text = f.read()
    if text.count("\n@OPTIONS@\n") != 1 or not rows:
        sys.exit(f"{source}: needs the line @OPTIONS@ once, and {program} must print rows")
    # The remark about the replacement is for readers of the source only.
    lines = [line for line in text.replace("@OPTIONS@\n", rows).split("\n") if "man_options.c" not in line]
    with open(target, "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


if __name__ == "__main__":
    main()
