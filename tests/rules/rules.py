# SPDX-License-Identifier: Apache-2.0
"""rules.py - what the rule tests share: the list of source files, and a small C scanner.

Each rule is a function from file text to a list of problems, so that a test can first feed it a bad sample (and must get
a problem back) and then the tree. Nothing here knows a single rule; the tests beside it do.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Tap  # the rule tests say rules.Tap

C_FOLDERS = ("include", "src", "emu", "bench", "cli", "plugin", "man", "tests")


def source_root():
    return sys.argv[1]


def build_root():
    return sys.argv[2]


def read(path):
    """Text of a file, named relative to the source root."""
    with open(os.path.join(source_root(), path), encoding="utf-8") as f:
        return f.read()


def c_files():
    """All .c and .h files of the tree, relative to the source root, sorted; generated and build files are not in."""
    found = []
    for folder in C_FOLDERS:
        for where, _, names in os.walk(os.path.join(source_root(), folder)):
            found += [os.path.relpath(os.path.join(where, n), source_root()) for n in names if n.endswith((".c", ".h"))]
    return sorted(found)


def _blank(match):
    """Replaces a comment or literal by spaces of the same shape, so that offsets and line numbers stay."""
    text = match.group(0)
    if text.startswith("/"):
        return re.sub(r"[^\n]", " ", text)
    return text[0] + re.sub(r"[^\n]", "_", text[1:-1]) + text[-1]


LITERALS = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)


def strip_literals(text):
    """The text with comments blanked and the inside of string and character literals replaced."""
    return LITERALS.sub(_blank, text)


def macros(text):
    """Yields (line number, name, body) of every #define, continuation lines joined."""
    lines = strip_literals(text).split("\n")
    i = 0
    while i < len(lines):
        start, line = i, lines[i]
        while line.endswith("\\") and i + 1 < len(lines):
            i += 1
            line = line[:-1] + " " + lines[i]
        m = re.match(r"\s*#\s*define\s+(\w+)(\([^)]*\))?(.*)", line)
        if m:
            yield start + 1, m.group(1), m.group(3)
        i += 1


def strip_preprocessor(text):
    """Blanks preprocessor lines. Of #if ... #else both branches stay, which is why braces must balance in each."""
    out, joined = [], False
    for line in text.split("\n"):
        directive = joined or re.match(r"\s*#", line)
        joined = bool(directive) and line.rstrip().endswith("\\")
        out.append("" if directive else line)
    return "\n".join(out)


class Function:
    """One function definition: name, is static, first line of its head, lines of '{' and '}', text of the head."""

    def __init__(self, name, static, head_line, open_line, close_line, head):
        self.name, self.static = name, static
        self.head_line, self.open_line, self.close_line, self.head = head_line, open_line, close_line, head

    def lines(self):
        return self.close_line - self.open_line + 1


def _function_name(head):
    """The name of the function whose head (text before '{') this is, or None for a struct, enum, array or the like."""
    head = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|_Alignas\s*\([^)]*\)", " ", head).strip()
    if not head.endswith(")") or re.search(r"(^|[^=!<>])=([^=]|$)", head):
        return None
    depth = 0
    for i in range(len(head) - 1, -1, -1):
        depth += (head[i] == ")") - (head[i] == "(")
        if depth == 0:
            m = re.search(r"(\w+)\s*$", head[:i])
            if m:
                return m.group(1)
            # A function that returns a function pointer: the name is in the parentheses before.
            m = re.search(r"\(\s*\*\s*(\w+)\s*\(", head)
            return m.group(1) if m else None
    return None


def functions(text):
    """Every function definition of a C file. Raises ValueError where braces do not balance."""
    clean = strip_preprocessor(strip_literals(text))
    clean = re.sub(r'extern\s+"_"\s*\{', lambda m: " " * len(m.group(0)), clean)
    found, depth, head_start, current = [], 0, 0, None
    for i, char in enumerate(clean):
        if char == "{":
            if depth == 0:
                head = clean[head_start:i]
                name = _function_name(head)
                if name:
                    first = head_start + len(head) - len(head.lstrip())
                    current = (name, bool(re.search(r"\bstatic\b", head)), clean.count("\n", 0, first) + 1,
                               clean.count("\n", 0, i) + 1, " ".join(head.split()))
            depth += 1
        elif char == "}":
            depth -= 1
            if depth < 0:
                # What closes the blanked extern "C".
                depth = 0
                head_start = i + 1
                continue
            if depth == 0:
                if current:
                    found.append(Function(*current[:4], clean.count("\n", 0, i) + 1, current[4]))
                    current = None
                head_start = i + 1
        elif char == ";" and depth == 0:
            head_start = i + 1
    if depth != 0:
        raise ValueError(f"braces do not balance ({depth} left open): the scanner cannot read this file")
    return found


def run(command, **more):
    """Runs a program; returns (status, stdout and stderr together)."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    return done.returncode, done.stdout
