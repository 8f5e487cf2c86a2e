#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rules_header.py - the installed header compiles alone, in every language version and compiler that we promise.

  rules_header.py SOURCE_ROOT BUILD_ROOT
"""
import os
import shutil

import rules

WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Wundef", "-Werror"]
# -Wshadow is for C only: in C++ it also flags a function named like a struct, as stat(2) and struct stat are.
C_FLAGS = WARN + ["-Wshadow", "-Wstrict-prototypes", "-Wc++-compat"]

# compiler, language, standard, flags
PROMISED = (
    ("gcc", "c", "c99", C_FLAGS), ("gcc", "c", "c11", C_FLAGS), ("gcc", "c", "c17", C_FLAGS),
    ("clang", "c", "c99", C_FLAGS), ("clang", "c", "c17", C_FLAGS),
    ("g++", "c++", "c++11", WARN), ("g++", "c++", "c++17", WARN),
    ("clang++", "c++", "c++11", WARN), ("clang++", "c++", "c++17", WARN),
)

USE = """
struct braid_options options = BRAID_OPTIONS_INIT;
struct braid_options *use(void);
struct braid_options *use(void) { return &options; }
"""


def errors(compiler, language, standard, flags, text, include):
    status, output = rules.run([compiler, "-x", language, f"-std={standard}", "-fsyntax-only", "-I", include] + flags
                               + ["-"], input=text)
    return output.splitlines() or ["no message"] if status else []


def main():
    tap = rules.Tap()
    include = os.path.join(rules.source_root(), "include")
    tap.must_flag("a header that needs another first",
                  errors("gcc", "c", "c99", C_FLAGS, "size_t f(void);\n", include))
    tap.must_flag("a C17 header under C99 rules",
                  errors("gcc", "c", "c99", C_FLAGS, "struct a { union { int x; int y; }; };\n", include))
    tap.must_flag("a C++ keyword as a name", errors("gcc", "c", "c99", C_FLAGS, "struct a { int class; };\n", include))
    for compiler, language, standard, flags in PROMISED:
        name = f"braid.h compiles alone and twice: {compiler} -std={standard}"
        if not shutil.which(compiler):
            tap.skip(name, f"no {compiler} here")
            continue
        text = "#include <braid/braid.h>\n#include <braid/braid.h>\n" + USE
        tap.check(name, errors(compiler, language, standard, flags, text, include))
    tap.done()


if __name__ == "__main__":
    main()
