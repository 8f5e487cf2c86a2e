#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rules_layers.py - who may include whom: read from the text, and tried with each layer's own compiler flags.

  rules_layers.py SOURCE_ROOT BUILD_ROOT
"""
import json
import os
import re
import shlex
import sys

import rules

# The one table of layers. Own headers are always allowed. "system" names further system headers besides libc's.
# Longest prefix wins; a C file below none of them is a problem of its own.
LAYERS = {
    "include/braid": {"may": []},
    "src/common": {"may": []},
    "src/plan": {"may": ["src/common", "src/topo/topo_host.h"]},
    "src/topo": {"may": ["src/common"]},
    "src/gpu": {"may": ["src/common"]},
    "src/verbs": {"may": ["src/common"], "system": r"infiniband/"},
    "src/rail": {"may": ["src/common", "src/verbs"]},
    "src/api": {"may": ["src/common", "src/plan", "src/topo", "src/gpu", "src/verbs", "src/rail", "include/braid"]},
    "bench": {"may": ["include/braid", "emu/include/emu_sim.h", "bench/host", "bench/live", "plugin/nvshmem/nvshmem_abi.h"]},
    "bench/live": {"may": ["emu/include/emu_sim.h"], "system": r"pmix\.h"},
    "bench/host": {"may": ["emu/include/emu_sim.h", "plugin/nvshmem/nvshmem_abi.h", "plugin/nvshmem/nvshmem_clock.h"]},
    "cli": {"may": ["include/braid", "emu/include/emu_sim.h", "bench", "src/topo", "src/common", "src/plan/plan_ports.h",
                    "src/plan/plan_lag.h", "cli/import"]},
    "cli/import": {"may": ["src/topo/topo_host.h", "src/common"], "system": r"hwloc\.h|libxml/|jansson\.h"},
    "plugin/nvshmem": {"may": ["include/braid"]},
    "man": {"may": ["include/braid"]},
    "emu": {"may": [], "system": r"infiniband/|sanitizer/|valgrind/"},
    "tests": {"may": [""], "system": r".*"},
}

# What every layer may ask the system for: headers of libc and of the kernel's user interface.
LIBC = re.compile(r"[a-z0-9_]+\.h$|(sys|arpa|netinet|net|linux|bits)/[a-z0-9_]+\.h$")
NOT_LIBC = re.compile(r"(cmocka|cuda|nvshmem|nccl|numa|hwloc|valgrind|verbs)")

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"]+)[>\"]", re.M)


def layer_of(path):
    """The longest layer that this file lies in, or None."""
    return max((name for name in LAYERS if path.startswith(name + "/")), key=len, default=None)


def resolve(path, name, tree):
    """The file of the tree that an include of name in path means, or None. The own folder comes first."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    if beside in tree:
        return beside
    found = [p for p in tree if p.endswith("/" + name)]
    return found[0] if len(found) == 1 else None


def bad_includes(path, text, tree):
    """What this file includes and may not."""
    layer = layer_of(path)
    if layer is None:
        return [f"{path}: lies in no layer of the table in tests/rules/rules_layers.py"]
    allowed = LAYERS[layer]
    problems = []
    # Comments go, literals stay: the name is one.
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)
    for m in INCLUDE.finditer(text):
        kind, name = m.groups()
        where = f"{path}:{text.count(chr(10), 0, m.start()) + 1}"
        target = resolve(path, name, tree)
        if ".." in name.split("/"):
            problems.append(f"{where}: {name}: no '..' in an include")
        elif target is not None:
            if layer_of(target) != layer and not any(target.startswith(p) for p in allowed["may"]):
                problems.append(f"{where}: {layer} may not include {target}")
        elif kind == '"':
            problems.append(f"{where}: \"{name}\" is no header of the tree, or of more than one folder")
        elif not (LIBC.match(name) and not NOT_LIBC.search(name)) and not re.match(allowed.get("system", "$^"), name):
            problems.append(f"{where}: {layer} may not include <{name}>")
    return problems


def flags_of_layers(build):
    """For each layer, the compiler and flags that the build really uses for its C files (from compile_commands.json)."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    found = {}
    for entry in commands:
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), os.path.realpath(rules.source_root()))
        layer = layer_of(path)
        if layer is None or layer == "tests" or layer in found:
            continue
        words = shlex.split(entry["command"])
        keep, i = [words[0]], 1
        while i < len(words):
            if words[i] in ("-o", "-c", "-MF", "-MQ", "-include"):
                i += 2
                continue
            if words[i] not in ("-MD",):
                keep.append(words[i])
            i += 1
        # A compiler wrapper such as ccache comes before the compiler; both are kept.
        found[layer] = (keep, entry["directory"])
    return found


def compiles(flags, directory, text):
    status, output = rules.run(flags + ["-fsyntax-only", "-w", "-Wno-error", "-x", "c", "-"], cwd=directory, input=text)
    return status == 0, output


def found_names(flags, directory, names):
    """Those of the names that an #include would find under these flags (one run of the preprocessor)."""
    text = "".join(f'#if __has_include("{n}")\nFOUND {n}\n#endif\n' for n in names)
    status, output = rules.run(flags + ["-E", "-P", "-w", "-x", "c", "-"], cwd=directory, input=text)
    if status != 0:
        return None
    return {line[6:] for line in output.splitlines() if line.startswith("FOUND ")}


def try_layer(layer, flags, directory, tree):
    """What is wrong with the include folders of a layer: a foreign header found, or an own one not."""
    headers = [p for p in tree if p.endswith(".h") and layer_of(p) not in ("tests", None)]
    # By its name, by its folder and its name, and from the root.
    names = {p: {os.path.basename(p), "/".join(p.split("/")[-2:]), p} for p in headers}
    found = found_names(flags, directory, sorted(set().union(*names.values())))
    if found is None:
        return [f"{layer}: the preprocessor does not take the flags {flags}"]
    problems, refused, accepted = [], [], 0
    # Beside a single file that may be included lie others that no include folder can hide: the include graph watches those.
    beside = {os.path.dirname(m) for m in LAYERS[layer]["may"] if m.endswith(".h")}
    headers = [p for p in headers if os.path.dirname(p) not in beside or p in LAYERS[layer]["may"]]
    mine = {p for p in headers if layer_of(p) == layer or any(p.startswith(m) for m in LAYERS[layer]["may"])}
    known = set().union(*(names[p] for p in mine), set())
    for path in headers:
        hits = names[path] & found
        if path in mine:
            accepted += bool(hits)
        elif hits - known:
            problems.append(f"{layer}: #include \"{min(hits - known)}\" is found, and must not be ({path})")
        else:
            refused.append(path)
    if mine and not accepted:
        problems.append(f"{layer}: not even its own headers are found, so nothing was tried")
    if not refused and layer != "src/api":
        problems.append(f"{layer}: nothing was refused, so nothing was tried")
    # And one of them for real, with a control that does compile.
    if not compiles(flags, directory, "#include <stdio.h>\n")[0]:
        problems.append(f"{layer}: not even <stdio.h> compiles")
    if refused and compiles(flags, directory, f'#include "{os.path.basename(refused[0])}"\n')[0]:
        problems.append(f"{layer}: #include \"{os.path.basename(refused[0])}\" compiles")
    return problems


def self_tests(tap):
    tree = ["include/braid/braid.h", "src/common/log.h", "src/plan/plan.h", "src/verbs/verbs.h", "src/rail/rail.h",
            "emu/emu.h", "emu/include/emu_sim.h", "bench/bench.h", "cli/cli.h"]
    bad = (("src/plan/plan_x.c", '#include "verbs.h"'), ("src/plan/plan_x.c", "#include <infiniband/verbs.h>"),
           ("src/plan/plan_x.c", '#include "../common/log.h"'), ("src/common/log.c", '#include "plan.h"'),
           ("src/rail/rail_x.c", "#include <infiniband/verbs.h>"), ("src/rail/rail_x.c", '#include "plan.h"'),
           ("src/api/api_x.c", "#include <cuda_runtime.h>"), ("src/plan/plan_x.c", "# include <braid/braid.h>"),
           ("emu/emu_x.c", '#include "log.h"'), ("emu/emu_x.c", "#include <braid/braid.h>"),
           ("cli/cli_x.c", '#include "emu.h"'), ("bench/bench_x.c", '#include "cli.h"'),
           ("bench/host/host_x.c", '#include "bench.h"'), ("bench/host/host_x.c", "#include <braid/braid.h>"),
           ("plugin/nvshmem/nvs.c", '#include "emu_sim.h"'), ("plugin/nvshmem/nvs.c", "#include <nvshmem.h>"),
           ("include/braid/braid.h", '#include "log.h"'), ("new/x.c", "#include <stdio.h>"),
           ("src/api/api_x.c", '#include "nosuch.h"'), ("src/verbs/verbs_x.c", "#include <cmocka.h>"))
    for path, line in bad:
        tap.must_flag(f"{line[1:].strip()} in {path}", bad_includes(path, line + "\n", tree))
    good = (("src/verbs/verbs_x.c", "#include <infiniband/verbs.h>"), ("src/rail/rail_x.c", '#include "verbs.h"'),
            ("src/api/api_x.c", '#include "braid/braid.h"'), ("cli/cli_x.c", '#include "emu_sim.h"'),
            ("src/plan/plan_x.c", '#include "log.h"\n#include <sys/types.h>\n/* #include "verbs.h" */'))
    for path, line in good:
        tap.must_pass(f"{line.splitlines()[0][1:]} in {path}", bad_includes(path, line + "\n", tree))


def main():
    tap = rules.Tap()
    self_tests(tap)
    tree = rules.c_files()
    tap.check("include graph", [p for path in tree for p in bad_includes(path, rules.read(path), tree)])
    flags = flags_of_layers(rules.build_root())
    for layer in [name for name in LAYERS if name not in ("tests", "include/braid")]:
        if not any(path.startswith(layer + "/") and path.endswith(".c") for path in tree):
            continue
        name = f"a forbidden include does not compile in {layer}"
        if layer not in flags:
            tap.check(name, [f"no C file of {layer} is compiled by this build"])
            continue
        tap.check(name, try_layer(layer, *flags[layer], tree))
    tap.done()


if __name__ == "__main__":
    sys.exit(main())
