#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rules_docs.py - what the documentation names exists: targets, files, functions, options, subcommands; its code compiles.

  rules_docs.py SOURCE_ROOT BUILD_ROOT
"""
import glob
import os
import re
import shutil
import tempfile

import rules

DOCS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "man/*.1", "man/*.7.in")

# Variables with our prefix that are no option of the library: for scripts and tests.
OTHER_VARIABLES = {"BRAID_PLUGINS", "BRAID_HOST_LIB", "BRAID_QUICK", "BRAID_NO_INSTALL", "BRAID_EMU_LIB", "BRAID_NAME", "BRAID_EMU", "BRAID_EMU_HOST",
                   "BRAID_EMU_NAME", "BRAID_EMU_STATS", "BRAID_EMU_SYSFS", "BRAID_EMU_GPUS", "BRAID_CASES", "BRAID_TEST_PORTS", "BRAID_TEST_RANK",
                   "BRAID_TEST_MEET"}

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)


def code_of(text):
    """What a Markdown page shows as code: the fenced blocks and the words in backquotes."""
    fenced = [m.group(2) for m in FENCE.finditer(text)]
    return "\n".join(fenced + re.findall(r"`([^`\n]+)`", FENCE.sub("", text)))


def bad_targets(path, text, targets):
    named = set(re.findall(r"(?<![\w-])make ([a-z]+(?:-[a-z]+)*)", code_of(text)))
    return [f"{path}: 'make {t}' is no target of the Makefile" for t in sorted(named - targets)]


def bad_paths(path, text, exists):
    """Files and folders of the tree that a page names, in backquotes or as a link."""
    problems = []
    for name in re.findall(r"`((?:src|emu|cli|bench|tests|scripts|docs|man|include|plugin|\.ci)/[\w./-]*)", text):
        # Examples such as tests/fuzz/fuzz_NAME.c stand for a file to be made.
        if "NAME" not in name and "..." not in name and not exists(name.rstrip("/")):
            problems.append(f"{path}: {name} does not exist")
    for name in re.findall(r"\]\(([^)#:]+)\)", FENCE.sub("", text)):
        if not exists(os.path.normpath(os.path.join(os.path.dirname(path), name))):
            problems.append(f"{path}: link to {name}, which does not exist")
    return problems


def bad_functions(path, text, known):
    """Functions of ours that a page names as name()."""
    named = set(re.findall(r"\b((?:braid|api|plan|rail|verbs|emu|log|options)_\w+)\(\)", text))
    named |= set(re.findall(r"^\.Fn (braid_\w+)", text, re.M))
    return [f"{path}: {n}() is no function of the tree" for n in sorted(named - known)]


def bad_variables(path, text, options):
    """Environment variables; constants of the public header are not meant."""
    named = set(re.findall(r"\bBRAID_[A-Z_]+\b", text))
    return [f"{path}: {n} is no option" for n in sorted(named - options - OTHER_VARIABLES)]


def bad_example(text, library):
    """The C block of a page compiles without a warning and links to libbraid with a main() that calls nothing."""
    blocks = [m.group(2) for m in FENCE.finditer(text) if m.group(1) == "c"]
    if not blocks:
        return ["no C example found"]
    problems = []
    for block in blocks:
        with tempfile.TemporaryDirectory() as folder:
            command = ["gcc", "-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-x", "c", "-", "-I",
                       os.path.join(rules.source_root(), "include"), "-o", os.path.join(folder, "a")]
            status, output = rules.run(command + (["-x", "none", library] if library else ["-c"]),
                                       input=block + "\nint main(void) { return 0; }\n")
            problems += output.splitlines() or ["no message"] if status else []
    return problems


def bad_deviations(table, page):
    """Checks that the conformance list knows to end otherwise on soft-RoCE, and docs/fidelity.md does not name; and the other way round."""
    known = set(re.findall(r'\{"rxe", "(\w+)"', table))
    section = page.split("## Where soft-RoCE differs")[-1].split("\n## ")[0]
    named = set(re.findall(r"`((?!bad_wr|cap|retry_cnt|rnr_retry)[a-z]\w+)`", section))
    return [f"docs/fidelity.md does not name {n}" for n in sorted(known - named)] + \
        [f"docs/fidelity.md names {n}, which is no deviation" for n in sorted(named - known)] + ([] if known else ["no deviation found"])


def pages():
    root = rules.source_root()
    return [(os.path.relpath(p, root), rules.read(os.path.relpath(p, root)))
            for pattern in DOCS for p in sorted(glob.glob(os.path.join(root, pattern)))]


def make_targets(text):
    return set(re.findall(r"^([a-z-]+):", text, re.M))


def self_tests(tap):
    page = "```\nmake test\n```\nRun `make lint`. See `src/plan` and [x](docs/a.md); plan_stripe() and BRAID_PORTS.\n"
    tap.must_flag("a target that does not exist", bad_targets("p", page, {"test"}))
    tap.must_pass("targets that exist", bad_targets("p", page, {"test", "lint"}))
    tap.must_flag("a folder that does not exist", bad_paths("p", page, lambda n: n != "src/plan"))
    tap.must_flag("a link to nothing", bad_paths("p", page, lambda n: n != "docs/a.md"))
    tap.must_pass("paths that exist", bad_paths("p", page, lambda n: True))
    tap.must_flag("a function that does not exist", bad_functions("p", page, {"plan_pair"}))
    tap.must_flag("a variable that is no option", bad_variables("p", page, {"BRAID_ORDER"}))
    tap.must_flag("an example that does not compile",
                  bad_example("```c\n#include <braid/braid.h>\nint f(void) { return braid_close(0); }\n```\n", None))
    tap.must_flag("a page without an example", bad_example("none\n", None))
    deviation = '    {"rxe", "some_check", "why", false},'
    tap.must_flag("a deviation that no page names", bad_deviations(deviation, "## Where soft-RoCE differs\n| `other` |\n"))
    tap.must_pass("a deviation that is named", bad_deviations(deviation, "## Where soft-RoCE differs\n| `some_check` |\n## next"))


def known_functions():
    """Every function defined or declared in the tree."""
    known = set()
    for path in rules.c_files():
        known |= set(re.findall(r"\b(\w+)\s*\(", rules.strip_literals(rules.read(path))))
    return known


def check_pages(tap, options):
    root = rules.source_root()
    all_pages = pages()
    targets = make_targets(rules.read("Makefile"))
    tap.check("make targets that pages name", [p for path, text in all_pages for p in bad_targets(path, text, targets)])
    tap.check("files that pages name", [p for path, text in all_pages for p in
                                        bad_paths(path, text, lambda n: os.path.exists(os.path.join(root, n)))])
    tap.check("soft-RoCE's deviations", bad_deviations(rules.read("tests/emu/conformance_known.c"), rules.read("docs/fidelity.md")))
    known = known_functions()
    tap.check("functions that pages name", [p for path, text in all_pages for p in bad_functions(path, text, known)])
    names = {"BRAID_" + o.upper() for o in options}
    names |= set(re.findall(r"\bBRAID_[A-Z_]+\b", rules.read("include/braid/braid.h")))
    tap.check("variables that pages name", [p for path, text in all_pages for p in bad_variables(path, text, names)])
    commands = re.findall(r"^make (\w+)", FENCE.search(rules.read("README.md")).group(2), re.M)
    tap.check("README opens with make demo and make test",
              [] if commands == ["demo", "test"] else [f"it opens with {commands}"])
    tap.check("the changelog has an Unreleased section",
              [] if "\n## [Unreleased]\n" in rules.read("CHANGELOG.md") else ["it has none"])


def bad_references(path, text, exists):
    """Files of the tree that a comment of a C file names: docs/x.md, src/x/y.c."""
    comments = "\n".join(re.findall(r"/\*.*?\*/", text, re.S))
    return [f"{path}: names {n}, which does not exist"
            for n in sorted(set(re.findall(r"\b((?:docs|src|emu|tests|man)/[\w/]+\.(?:md|[ch]))\b", comments)))
            if not exists(n)]


def check_references(tap):
    root = rules.source_root()
    tap.must_flag("a comment that names no file", bad_references("p", "/* see docs/none.md */", lambda n: False))
    tap.check("files that C comments name", [p for path in rules.c_files() for p in bad_references(
        path, rules.read(path), lambda n: os.path.exists(os.path.join(root, n)))])


def check_version(tap):
    """One version in meson.build, braid.h and the program."""
    header = rules.read("include/braid/braid.h")
    parts = [re.search(rf"BRAID_VERSION_{p} (\d+)", header).group(1) for p in ("MAJOR", "MINOR", "PATCH")]
    meson = re.search(r"version: '([\d.]+)'", rules.read("meson.build")).group(1)
    tap.check("braid.h and meson.build have one version",
              [] if ".".join(parts) == meson else [f"braid.h {'.'.join(parts)}, meson.build {meson}"])


def subcommands(braid):
    """What `braid help` lists: the first word of each row that is indented by two blanks."""
    status, output = rules.run([braid, "help"]) if os.path.exists(braid) else (127, "")
    return sorted(set(re.findall(r"^  (?:braid )?([a-z]+)\b", output, re.M)) - {"braid", "help"}) if status == 0 else []


def check_program(tap, braid):
    """Subcommands against manual pages."""
    found = subcommands(braid)
    tap.check("braid help lists subcommands", [] if "demo" in found else [f"found {found}"])
    page = rules.read("man/braid.1")
    tap.check("braid(1) tells of every subcommand", [f"{c} is missing" for c in found if f".Cm {c}\n" not in page])
    own = sorted(re.search(r"braid-(\w+)\.1$", p).group(1)
                 for p in glob.glob(os.path.join(rules.source_root(), "man/braid-*.1")))
    tap.check("every braid-X(1) is of a subcommand", [f"{c} is none" for c in own if c not in found])
    problems = []
    for command in found:
        status, output = rules.run([braid, command, "--help"])
        if status != 0 or "xample" not in output:
            problems.append(f"braid {command} --help: status {status}, {len(output)} bytes, needs status 0 and an example")
        if command in own:
            text = rules.read(f"man/braid-{command}.1")
            problems += [f"braid-{command}(1): option {o} is missing" for o in sorted(set(re.findall(r"--[a-z][\w-]*", output)))
                         if f".It Fl {o[1:]}" not in text and o != "--help"]
        elif f".It Cm {command}\n" not in page:
            problems.append(f"braid {command}: neither a page of its own nor an entry in braid(1)")
    tap.check("every subcommand has --help with an example, and a manual page", problems)
    if not os.path.exists(braid):
        return
    bad = [f"braid {' '.join(args) or '(nothing)'}: status {rules.run([braid] + args)[0]}, expected 2"
           for args in (["nosuch"], ["--nosuch"], []) if rules.run([braid] + args)[0] != 2]
    tap.check("wrong use ends with status 2", bad)


def demo_rows(text):
    """The table of `braid demo`: (case, column) -> GB/s."""
    rows = re.findall(r"^  (\S.*?\S) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", text, re.M)
    return {(row[0], i): float(gbs) for row in rows for i, gbs in enumerate(row[1:])}


def bad_figures(shown, printed):
    """Figures of a page that are more than 2 % off what the program prints: virtual time is the same on any machine."""
    return ([f"README shows '{t}' at {gbs} GB/s, braid demo prints {printed.get(t)}" for t, gbs in shown.items()
             if abs(printed.get(t, 0) - gbs) > 0.02 * gbs] + ([] if shown else ["README shows no figures"]))


def bad_results(results, by_hand, printed):
    """The page of results is of the CPU cost table that programs have, and ends with the section that is made by hand."""
    table = re.search(r"CPU cost table `(\w+)`", results)
    problems = [] if table and f"cost table {table.group(1)}" in printed else ["docs/results.md is of another cost table: make results"]
    return problems + ([] if results.endswith(by_hand) else ["docs/results.md does not end with docs/results-gpu.md: make results"])


def check_figures(tap, braid):
    tap.must_flag("results of another cost table", bad_results("CPU cost table `ab`\nhand", "hand", "cost table cd"))
    tap.must_flag("results without the section made by hand", bad_results("CPU cost table `ab`\n", "hand", "cost table ab"))
    tap.must_pass("results that are up to date", bad_results("CPU cost table `ab`\nhand", "hand", "cost table ab"))
    tap.must_flag("a figure that is off", bad_figures({"a": 24.5}, {"a": 26.0}))
    tap.must_flag("a figure of nothing", bad_figures({"a": 24.5}, {}))
    _, output = rules.run([braid, "demo"]) if os.path.exists(braid) else (127, "")
    tap.check("README shows what braid demo prints", bad_figures(demo_rows(rules.read("README.md")), demo_rows(output)))
    tap.check("docs/results.md is up to date", bad_results(rules.read("docs/results.md"), rules.read("docs/results-gpu.md"), output))


def manual_options(build):
    """Option names in the generated braid.7."""
    try:
        with open(os.path.join(build, "man/braid.7"), encoding="utf-8") as f:
            text = f.read()
    except OSError:
        return []
    table = text[text.index(".Sh ENVIRONMENT"):]
    return re.findall(r"^\.It Cm (\w+)", table[:table.index(".El")], re.M)


def check_manual(tap, build, options):
    tap.check("braid(7) has the option table", [] if options and "ports" in options else [f"found {options}"])
    if not shutil.which("mandoc"):
        tap.skip("the generated braid(7) is well formed", "no mandoc here")
        return
    status, output = rules.run(["mandoc", "-Tlint", "-Wwarning", os.path.join(build, "man/braid.7")])
    tap.check("the generated braid(7) is well formed", output.splitlines() if status else [])


def check_options(tap, braid, options):
    """braid options prints what the manual holds."""
    status, output = rules.run([braid, "options"]) if os.path.exists(braid) else (127, "")
    tap.check("braid options prints every option",
              [f"{o} is missing" for o in options if not re.search(rf"\b(BRAID_)?{o}\b", output, re.I)]
              + ([] if status == 0 else [f"status {status}"]))


def main():
    tap = rules.Tap()
    self_tests(tap)
    build = rules.build_root()
    options = manual_options(build)
    braid = os.path.join(build, "cli/braid")
    check_pages(tap, options)
    check_references(tap)
    check_version(tap)
    check_manual(tap, build, options)
    check_options(tap, braid, options)
    check_program(tap, braid)
    check_figures(tap, braid)
    tap.check("README's example compiles and links",
              bad_example(rules.read("README.md"), os.path.join(build, "src/libbraid.so")))
    tap.done()


if __name__ == "__main__":
    main()
