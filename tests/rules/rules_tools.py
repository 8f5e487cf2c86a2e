#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rules_tools.py - the scripts that judge: each must say "failed" when something did.

  rules_tools.py SOURCE_ROOT BUILD_ROOT
"""
import contextlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import rules

sys.dont_write_bytecode = True


def entry(stdout, result="OK", code=0):
    return {"name": "t", "stdout": stdout, "result": result, "returncode": code}


# name, entries of Meson's log, last line expected, exit status expected
COUNTS = (
    ("two good checks", [entry("1..2\nok 1 - a\nok 2 - b\n")], "2 passed, 0 failed", 0),
    ("a plan at the end", [entry("ok 1 - a\nok 2 - b\n1..2\n")], "2 passed, 0 failed", 0),
    ("one bad check", [entry("1..2\nok 1 - a\nnot ok 2 - b\n", "FAIL", 1)], "1 passed, 1 failed", 1),
    ("a bad check in a program that claims success", [entry("1..1\nnot ok 1 - a\n")], "0 passed, 1 failed", 1),
    ("a crash between two checks", [entry("1..3\nok 1 - a\n", "ERROR", -11)], "1 passed, 2 failed", 1),
    ("an early end with status 0", [entry("1..3\nok 1 - a\n")], "1 passed, 1 failed", 1),
    ("a crash after the last check", [entry("1..1\nok 1 - a\n", "ERROR", -6)], "1 passed, 1 failed", 1),
    ("a failed check, then a crash", [entry("1..2\nnot ok 1 - a\nok 2 - b\n", "ERROR", -11)], "1 passed, 2 failed", 1),
    ("no plan at all", [entry("ok 1 - a\n")], "1 passed, 1 failed", 1),
    ("a time-out", [entry("1..2\nok 1 - a\nok 2 - b\n", "TIMEOUT", 0)], "2 passed, 1 failed", 1),
    ("a plain program", [entry("hello\n")], "1 passed, 0 failed", 0),
    ("a plain program that fails", [entry("hello\n", "FAIL", 3)], "0 passed, 1 failed", 1),
    ("nothing ran", [], "0 passed, 1 failed", 1),
    ("all skipped", [entry("1..1\nok 1 - a # SKIP no device\n")], "0 passed, 1 failed", 1),
    ("one skipped", [entry("1..2\nok 1 - a # SKIP no device\nok 2 - b\n")], "1 passed, 0 failed", 0),
    ("two programs", [entry("1..1\nok 1 - a\n"), entry("1..1\nnot ok 1 - a\n", "FAIL", 1)], "1 passed, 1 failed", 1),
)


def check_counts(tap, root, folder):
    logs = os.path.join(folder, "meson-logs")
    os.makedirs(logs)
    for name, entries, want, want_status in COUNTS:
        with open(os.path.join(logs, "testlog.json"), "w", encoding="utf-8") as log:
            log.writelines(json.dumps(e) + "\n" for e in entries)
        status, output = rules.run([os.path.join(root, "scripts/run-tests.py"), "--count", folder])
        last = output.splitlines()[-1] if output else ""
        tap.check(f"run-tests: {name}", [] if (last, status) == (want, want_status)
                  else [f"'{last}', status {status}; expected '{want}', status {want_status}"])


def check_again(tap, root, folder):
    """What failed by the clock is run once more, and that counts; what a sanitizer has reported, and all else, is not."""
    os.makedirs(os.path.join(folder, "meson-logs"))
    spec = importlib.util.spec_from_file_location("run_tests", os.path.join(root, "scripts/run-tests.py"))
    run_tests = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run_tests)
    bad = "1..1\nnot ok 1 - a\n"
    late = dict(entry(bad, "FAIL", 1), name="braid:real / late")
    rows = ((late, True), (dict(late, name="braid:load / late"), True), (dict(late, name="braid:unit / late"), False),
            (dict(late, name="braid:unit / real"), False), (dict(late, stderr="WARNING: ThreadSanitizer: data race"), False),
            (dict(late, stdout=bad + "x.c:1: runtime error: y"), False), (dict(entry("1..1\nok 1 - a\n"), name="braid:real / good"), False))
    tap.check("run-tests: what is run again", [f"{e['name']}: {not want}" for e, want in rows if run_tests.may_run_again(e) != want])
    for result, code in (("OK", 0), ("FAIL", 1)):
        second = dict(late, result=result, returncode=code, stdout="1..1\nok 1 - a\n" if code == 0 else bad)
        fake = os.path.join(folder, "fake.py")
        with open(fake, "w", encoding="utf-8") as f:
            f.write(f"import sys\nopen({os.path.join(folder, 'meson-logs', 'again.json')!r}, 'w').write({json.dumps(second)!r})\n"
                    "sys.exit(sys.argv[-1] != 'late')\n")
        with contextlib.redirect_stdout(io.StringIO()) as said:
            counts = run_tests.run_again(late, [sys.executable, fake], folder)
        tap.check(f"run-tests: the second time counts: {result}", [] if counts == second and "again: " in said.getvalue()
                  else [f"{counts}, said '{said.getvalue()}'"])


def check_lint(tap, root, folder):
    """lint.sh on a small tree with one fault each."""
    if not shutil.which("git"):
        tap.skip("lint flags what it must", "no git here")
        return
    # Not written out, or lint would find them here.
    place, mark = "/wo" + "rk/x", "FIX" + "ME"
    head = "/* SPDX-License-Identifier: Apache-2.0 */\n"
    faults = (("words", "a.md", f"see {place}\n"), ("words", "a.c", f"/* {mark} */\n"), ("spdx", "b.c", "int x;\n"),
              ("whitespace", "c.c", head + "int x; \n"), ("whitespace", "d.c", head + "\tint x;\n"),
              ("whitespace", "e.md", "no end"), ("whitespace", "f.md", "dos\r\n"))
    os.makedirs(os.path.join(folder, "scripts"))
    shutil.copy(os.path.join(root, "scripts/lint.sh"), os.path.join(folder, "scripts"))
    lint = ["scripts/lint.sh", "build"]
    tap.must_flag("lint without a list of files",
                  ["flagged"] if rules.run(lint + ["words"], cwd=folder)[0] != 0 else [])
    subprocess.run(["git", "init", "-q", folder], check=True)
    clean = rules.run(lint + ["words", "spdx", "whitespace"], cwd=folder)
    tap.must_pass("lint on a clean tree", [] if clean[0] == 0 else clean[1].splitlines())
    for check, name, text in faults:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(text)
        status, output = rules.run(lint + [check], cwd=folder)
        tap.must_flag(f"lint {check} on {name}",
                      ["flagged"] if status == 1 and name in output and "0 passed, 1 failed" in output else [])
        os.unlink(path)


CI_STAGES = (
    # command of the stage, budget, last line, exit status
    ("echo '3 passed, 0 failed'", 5, "3 passed, 0 failed", 0),
    ("true", 5, "1 passed, 0 failed", 0),
    ("false", 5, "0 passed, 1 failed", 1),
    ("echo '3 passed, 0 failed'; false", 5, "3 passed, 1 failed", 1),
    ("echo '3 passed, 2 failed'; false", 5, "3 passed, 2 failed", 1),
    ("echo '3 passed, 2 failed'", 5, "3 passed, 2 failed", 1),
    ("sleep 5", 1, "0 passed, 1 failed", 1),
)


def check_ci(tap, root, folder):
    """.ci/run with other stages in its table."""
    text = rules.read(".ci/run")
    os.makedirs(os.path.join(folder, ".ci"))
    path = os.path.join(folder, ".ci/run")
    for command, budget, want, want_status in CI_STAGES:
        table = f"\nstage {budget} {command}\n".replace("'", "'\\''")
        changed, count = re.subn(r"^STAGES='\n.*?^'\n", lambda m: f"STAGES='{table}'\n", text, flags=re.S | re.M)
        with open(path, "w", encoding="utf-8") as f:
            f.write(changed)
        status, output = rules.run(["bash", path])
        last = output.splitlines()[-1] if output else ""
        tap.check(f"ci: a stage '{command}'", [] if count == 1 and (last, status) == (want, want_status)
                  else [f"'{last}', status {status}; expected '{want}', status {want_status}"])


def check_deps(tap, root):
    deps = os.path.join(root, "scripts/deps.sh")
    status, output = rules.run([deps, "--list", "all"])
    rows = [line.split("|") for line in output.splitlines()]
    tap.check("deps: every need has an apt and a dnf name",
              [f"row {row}" for row in rows if len(row) != 3 or not all(row)] + ([] if len(rows) > 10 else ["no rows"])
              + ([] if status == 0 else [f"status {status}"]))
    status, _ = rules.run([deps, "nosuch"])
    tap.must_flag("deps with an unknown kind", ["flagged"] if status == 2 else [])
    # A machine that has the shell's tools and nothing else: it must say what is missing, and install nothing.
    with tempfile.TemporaryDirectory() as bare:
        for name in ("sh", "sed", "cut", "tr", "sort", "cat"):
            os.symlink(shutil.which(name), os.path.join(bare, name))
        status, output = rules.run([os.path.join(bare, "sh"), deps, "build"],
                                   env={"PATH": bare, "BRAID_NO_INSTALL": "1"})
        tap.must_flag("deps on a bare machine", ["flagged"] if status == 1 and "cmd:meson" in output else [])
        status, output = rules.run([os.path.join(bare, "sh"), deps, "build"], env={"PATH": bare})
        tap.must_flag("deps without a package manager", ["flagged"] if status == 1 and "by hand" in output else [])
        # A package manager, but neither root nor sudo.
        for name, text in (("apt-get", "exit 1"), ("id", "echo 1000"), ("dpkg-query", "exit 1")):
            with open(os.path.join(bare, name), "w", encoding="utf-8") as f:
                f.write(f"#!{shutil.which('sh')}\n{text}\n")
            os.chmod(os.path.join(bare, name), 0o755)
        status, output = rules.run([os.path.join(bare, "sh"), deps, "build"], env={"PATH": bare})
        tap.must_flag("deps without root or sudo", ["flagged"] if status == 1 and "no sudo" in output else [])


def main():
    tap = rules.Tap()
    root = rules.source_root()
    for part in (check_counts, check_again, check_lint, check_ci):
        with tempfile.TemporaryDirectory() as folder:
            part(tap, root, folder)
    check_deps(tap, root)
    tap.done()


if __name__ == "__main__":
    main()
