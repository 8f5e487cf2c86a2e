#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rules_size.py - the shape of C files: length of files and functions, macros, heads, comments, names.

  rules_size.py SOURCE_ROOT BUILD_ROOT
"""
import os
import re

import rules

FILE_LINES = 600
FUNCTION_LINES = 60


def long_file(path, text):
    count = text.count("\n")
    return [f"{path}: {count} lines, at most {FILE_LINES} allowed: split it"] if count > FILE_LINES else []


def long_functions(path, text):
    try:
        found = rules.functions(text)
    except ValueError as err:
        return [f"{path}: {err}"]
    return [f"{path}:{f.open_line}: {f.name} has {f.lines()} lines, at most {FUNCTION_LINES} allowed"
            for f in found if f.lines() > FUNCTION_LINES]


def jumping_macros(path, text):
    return [f"{path}:{line}: macro {name} holds '{m.group(1)}': write a static inline function"
            for line, name, body in rules.macros(text)
            for m in [re.search(r"\b(return|goto|break|continue|longjmp)\b", body)] if m]


def type_names(path, text):
    """Structs, unions and enums keep their word; a typedef may name a function pointer, or a handle nobody looks into."""
    text = rules.strip_literals(text)
    problems = []
    for m in re.finditer(r"^[ \t]*typedef\b([^;{]*)(\{)?", text, re.M):
        body, opens = m.groups()
        function = re.search(r"\(\s*\*?\s*\w+\s*\)\s*\(", body)
        handle = re.match(r"\s*struct\s+\w+\s*\*\s*\w+\s*$", body)
        if opens or not (function or handle):
            problems.append(f"{path}:{text.count(chr(10), 0, m.start()) + 1}: typedef: only for function pointers and "
                            "opaque handles; write struct, union or enum out")
    return problems


def bad_head(path, text):
    """First the licence line, then a comment of at least two lines that says what the file is."""
    lines = text.split("\n")
    if lines[0] != "/* SPDX-License-Identifier: Apache-2.0 */":
        return [f"{path}:1: the first line is not the SPDX line"]
    head = re.match(r"\s*/\*(.*?)\*/", "\n".join(lines[1:]), re.S)
    words = len(re.findall(r"[A-Za-z]{2,}", head.group(1))) if head else 0
    if words < 8:
        return [f"{path}:2: no comment under the SPDX line that says what the file is, may not do, and who calls it"]
    return []


def prefixes(path):
    """Prefixes that a non-static function of this file may have, or None where no rule is laid down."""
    folder, name = os.path.split(path)
    stem = name.rsplit(".", 1)[0]
    if folder == "src/api":
        return ("braid_", "api_")
    if folder == "src/common":
        return (stem.split("_")[0] + "_",)
    if folder.startswith("src/"):
        return (os.path.basename(folder) + "_",)
    if folder == "emu":
        return ("emu_", "ibv_", "_ibv_", "__ibv_", "mlx5dv_")
    if folder == "bench/host":
        return ("host_", "braid_plugin_clock")
    if folder in ("cli", "bench"):
        return (folder + "_", "main")
    if folder == "plugin/nvshmem":
        return ("nvs_", "nvshmemt_init")  # nvshmem_ itself is how the host's own functions are called
    return None


def bad_names(path, text):
    """Folder, file prefix and function prefix are one word."""
    allowed = prefixes(path)
    if allowed is None:
        return []
    folder, name = os.path.split(path)
    problems = []
    layer = os.path.basename(folder)
    if folder not in ("src/common", "cli", "bench") and not name.startswith((layer + "_", layer + ".")):
        problems.append(f"{path}: the file's name does not start with '{layer}_'")
    try:
        found = rules.functions(text)
    except ValueError as err:
        return problems + [f"{path}: {err}"]
    for f in found:
        if not f.static and not any(f.name == p or f.name.startswith(p) for p in allowed):
            problems.append(f"{path}:{f.head_line}: {f.name} starts with none of {', '.join(allowed)}")
    return problems


def commented_names(text):
    """Names of functions that a comment stands above: directly, or above their run of declarations without a blank line."""
    names = set()
    for m in re.finditer(r"\*/\n((?:[^\n{]+\n)*(?:[^\n]*\{)?)", text):
        run = rules.strip_literals(m.group(1))
        for part in re.split(r"[;{]", run):
            name = re.search(r"(\w+)\s*\(", part)
            if name:
                names.add(name.group(1))
                names |= set(re.findall(r"\(\s*\*\s*(\w+)\s*\(", part))
    return names


def undocumented(files):
    """Non-static functions without a comment at either their declaration or their definition."""
    documented = set()
    for _, text in files:
        documented |= commented_names(text)
    problems = []
    for path, text in files:
        if path.startswith("tests/") or not path.endswith(".c"):
            continue
        try:
            found = rules.functions(text)
        except ValueError as err:
            problems.append(f"{path}: {err}")
            continue
        problems += [f"{path}:{f.head_line}: {f.name} has no comment, neither here nor in a header"
                     for f in found if not f.static and f.name not in documented and f.name != "main"
                     and not re.match(r"_*ibv_|mlx5dv_", f.name)]
    return problems


GOOD = """/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_x.c - a sample that keeps every rule. It may not do any I/O, and nobody calls it. { "
 */
#include <stddef.h>
#define PLAN_TWICE(x) ((x) * 2)
#define PLAN_DO(x)                                                                                                     \\
    do {                                                                                                               \\
        (x)++;                                                                                                         \\
    } while (0)

struct plan_pair {
    int a; /* return */
};
static const struct plan_pair table[] = {{1}, {2}};

/** Adds "}" and '{'. */
int plan_add(int a, int b)
{
    for (int i = 0; i < 2; i++) {
        a += table[i].a;
    }
    return a + b;
}

/** Gives a function. */
int (*plan_pick(int n))(int, int)
{
    return n ? plan_add : NULL;
}
"""


def self_tests(tap):
    body = "".join(f"    a += {i};\n" for i in range(FUNCTION_LINES - 1))
    long_one = GOOD + "/** Long. */\nint plan_long(int a)\n{\n" + body + "}\n"
    tap.must_flag("a file of 601 lines", long_file("x.c", "\n" * 601))
    tap.must_pass("a file of 600 lines", long_file("x.c", "\n" * 600))
    tap.must_flag("a function of 61 lines", long_functions("x.c", long_one))
    tap.must_pass("a function of 60 lines", long_functions("x.c", long_one.replace("    a += 7;\n", "")))
    tap.must_flag("a long function, badly laid out",
                  long_functions("x.c", "int f(int a) {" + "\n a++;" * 70 + "\n return a; }\n"))
    tap.must_flag("braces that do not balance", long_functions("x.c", "int f(void)\n{\n"))
    names = [f.name for f in rules.functions(GOOD)]
    tap.must_pass("the scanner finds the functions and nothing else",
                  [] if names == ["plan_add", "plan_pick"] else [f"found {names}"])
    for word in ("return -1", "goto out", "break", "continue"):
        tap.must_flag(f"a macro with {word}",
                      jumping_macros("x.c", f"#define TRY(x) \\\n    do {{ if (x) \\\n {word}; }} while (0)\n"))
    for bad in ("typedef struct { int a; } plan_t;", "typedef struct plan_pair plan_pair_t;",
                "typedef enum { A } plan_e;", "typedef union {\n    int a;\n} plan_u;", "typedef unsigned plan_n;"):
        tap.must_flag(f"{bad.split('{')[0].strip()}", type_names("x.c", GOOD + bad + "\n"))
    tap.must_pass("a function pointer's name", type_names("x.c", "typedef int (*plan_fn)(void *arg, int n);\n"))
    tap.must_pass("a handle's name", type_names("x.h", "typedef struct plan_hidden *plan_handle;\n"))
    tap.must_flag("no SPDX line", bad_head("x.c", GOOD.split("\n", 1)[1]))
    tap.must_flag("no head comment", bad_head("x.c", GOOD.split("\n")[0] + "\n#include <stddef.h>\n"))
    tap.must_flag("a foreign prefix", bad_names("src/plan/plan_x.c", GOOD.replace("plan_add", "rail_add")))
    tap.must_flag("a foreign file name", bad_names("src/plan/stripe.c", GOOD))
    tap.must_flag("a function without a comment",
                  undocumented([("src/plan/plan_x.c", GOOD.replace("/** Gives a function. */", ""))]))
    tap.must_pass("one comment over a run of declarations", undocumented([
        ("src/plan/plan.h", "/** Both. */\nint plan_add(int a,\n             int b);\nint (*plan_pick(int n))(int, int);\n"),
        ("src/plan/plan_x.c", re.sub(r"/\*\*.*?\*/\n", "", GOOD))]))
    tap.must_flag("a blank line ends such a run", undocumented([
        ("src/plan/plan.h", "/** One. */\nint plan_add(int a, int b);\n\nint (*plan_pick(int n))(int, int);\n"),
        ("src/plan/plan_x.c", re.sub(r"/\*\*.*?\*/\n", "", GOOD))]))
    tap.must_pass("the good sample", long_file("x.c", GOOD) + long_functions("x.c", GOOD) + jumping_macros("x.c", GOOD)
                  + type_names("x.c", GOOD) + bad_head("x.c", GOOD) + bad_names("src/plan/plan_x.c", GOOD)
                  + undocumented([("src/plan/plan_x.c", GOOD)]))


def main():
    tap = rules.Tap()
    self_tests(tap)
    files = [(path, rules.read(path)) for path in rules.c_files()]
    tap.check("there are C files", [] if len(files) > 1 else ["none found under the source root"])
    for name, rule in (("no file over 600 lines", long_file), ("no function over 60 lines", long_functions),
                       ("no macro that returns or jumps", jumping_macros),
                       ("no typedef but for function pointers and handles", type_names),
                       ("each file says what it is", bad_head),
                       ("folder, file prefix and function prefix are one word", bad_names)):
        tap.check(name, [problem for path, text in files for problem in rule(path, text)])
    tap.check("every non-static function has a comment", undocumented(files))
    tap.done()


if __name__ == "__main__":
    main()
