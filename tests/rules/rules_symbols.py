#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rules_symbols.py - what the shared objects export, need and are called.

  rules_symbols.py SOURCE_ROOT BUILD_ROOT
"""
import glob
import os
import re

import rules

# Shared objects that glibc itself brings; libgcc_s only holds compiler helpers, and nothing here may need it.
GLIBC = re.compile(r"(libc|libdl|libpthread|librt|libm)\.so\.\d+$|ld-linux[\w-]*\.so\.\d+$")
FOREIGN = re.compile(r"^_*(cu[A-Z]|cuda|nvml|nvshmem|nccl|ibv_|mlx5dv_|rdma_|numa_|hwloc_)")
# Weak references that every object has; they may stay undefined.
OPTIONAL = {"__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize"}


def tool(*command):
    status, output = rules.run(list(command))
    if status != 0:
        raise RuntimeError(f"{' '.join(command)}: {output.strip()}")
    return output


def dynamic(path):
    """(SONAME or "", list of DT_NEEDED)"""
    text = tool("readelf", "-dW", path)
    soname = re.search(r"\(SONAME\).*\[(.*)\]", text)
    return (soname.group(1) if soname else ""), re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def symbols(path):
    """(defined, undefined) dynamic symbols; defined as {name: version}, undefined as {name: version or ""}."""
    defined, undefined = {}, {}
    for line in tool("readelf", "--dyn-syms", "-W", path).splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit():
            continue
        name, _, version = fields[7].partition("@")
        if not name:
            continue
        if fields[6] == "UND":
            undefined[name] = version.strip("@")
        elif fields[4] in ("GLOBAL", "WEAK") and fields[6] != "ABS":
            defined[name] = version.strip("@")
    return defined, undefined


def map_symbols(text):
    """Names that a version script lists as global, wildcards included."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    names = set()
    for node in re.findall(r"\{(.*?)\}", text, re.S):
        for part in re.findall(r"global\s*:(.*?)(?=local\s*:|$)", node, re.S):
            names |= {n.strip() for n in part.split(";") if n.strip()}
    return names


def declared(header):
    """Names of the functions that a header declares."""
    text = rules.strip_preprocessor(rules.strip_literals(header))
    return set(re.findall(r"^[A-Za-z_][\w \*]*?\b(braid_\w+)\s*\([^;{]*?\);", text, re.M | re.S))


def differ(what, left, right):
    return ([f"{name}: {what[0]}, but not {what[1]}" for name in sorted(left - right)]
            + [f"{name}: {what[1]}, but not {what[0]}" for name in sorted(right - left)])


def bad_needed(path, needed):
    return [f"{path} needs {name}, which is not glibc's" for name in needed if not GLIBC.match(name)]


def bad_undefined(path, undefined):
    """Undefined symbols must come from glibc, which versions every symbol it exports."""
    problems = []
    for name, version in undefined.items():
        if FOREIGN.match(name):
            problems.append(f"{path}: undefined {name}: must be looked up at run time")
        elif not version.startswith("GLIBC_") and name not in OPTIONAL:
            problems.append(f"{path}: undefined {name}, version '{version}': not glibc's")
    return problems


def built(pattern):
    """The real file (no link) that a pattern below the build folder means."""
    found = {os.path.realpath(p) for p in glob.glob(os.path.join(rules.build_root(), pattern))
             if re.search(r"\.so(\.\d+)*$", p)}
    if len(found) != 1:
        raise RuntimeError(f"{pattern}: expected one built file, found {sorted(found)}")
    return found.pop()


def self_tests(tap):
    tap.must_flag("a library that is not glibc's", bad_needed("x", ["libc.so.6", "libibverbs.so.1"]))
    tap.must_flag("an undefined verbs symbol", bad_undefined("x", {"ibv_open_device": "IBVERBS_1.1"}))
    tap.must_flag("an undefined CUDA symbol", bad_undefined("x", {"cuInit": ""}))
    tap.must_flag("an undefined symbol of nobody", bad_undefined("x", {"helper": ""}))
    tap.must_pass("glibc's symbols", bad_undefined("x", {"malloc": "GLIBC_2.2.5", "__gmon_start__": ""}))
    header = "/** x(); */\nint braid_a(int x,\n            int y);\nvoid *braid_b(void);\nstruct s { int (*f)(int); };\n"
    names = declared(header)
    tap.must_pass("declarations are found", differ(("found", "expected"), names, {"braid_a", "braid_b"}))
    tap.must_flag("a symbol that is not declared", differ(("exported", "declared"), {"braid_a", "braid_c"}, names))
    listed = map_symbols("X_1 { global: a; b_*; local: *; };\nX_2 { global: c; } X_1;\n")
    tap.must_pass("the map is read", differ(("found", "expected"), listed, {"a", "b_*", "c"}))


def libbraid(tap):
    path = built("src/libbraid.so*")
    soname, needed = dynamic(path)
    defined, undefined = symbols(path)
    # A version node shows up as a symbol of its own name with no type; it is ABS and was left out above.
    listed, api = map_symbols(rules.read("src/libbraid.map")), declared(rules.read("include/braid/braid.h"))
    tap.check("libbraid's SONAME", [] if re.match(r"libbraid\.so\.\d+$", soname) else [f"it is '{soname}'"])
    tap.check("src/libbraid.map lists what braid.h declares, name by name", differ(("in the map", "declared"), listed, api))
    tap.check("libbraid exports what braid.h declares", differ(("exported", "declared"), set(defined), api))
    tap.check("every exported symbol of libbraid has a version",
              [f"{n} has none" for n, v in defined.items() if not v])
    tap.check("libbraid needs glibc alone", bad_needed("libbraid.so", needed))
    tap.check("libbraid has no undefined symbol but glibc's", bad_undefined("libbraid.so", undefined))


def emulator(tap):
    path = built("emu/libibverbs.so*")
    soname, needed = dynamic(path)
    defined, undefined = symbols(path)
    tap.check("the emulator's SONAME", [] if soname == "libibverbs.so.1" else [f"it is '{soname}'"])
    tap.check("the emulator needs glibc alone", bad_needed("libibverbs.so.1", needed))
    tap.check("the emulator has no undefined symbol but glibc's", bad_undefined("libibverbs.so.1", undefined))
    verbs = [n for n in defined if n.startswith("ibv_")]
    tap.check("the emulator exports verbs, each under a version of the real library's",
              [f"{n} has version '{defined[n]}'" for n in verbs if not re.match(r"IBVERBS_(1\.\d+|PRIVATE_34)$", defined[n])]
              + ([] if len(verbs) >= 24 else [f"only {len(verbs)} ibv_ symbols"]))
    tap.check("the emulator exports emu_sim_api", [] if "emu_sim_api" in defined else ["it does not"])
    tap.check("the emulator exports nothing but verbs and emu_sim_api",
              [n for n in defined if n != "emu_sim_api" and not re.match(r"_*(ibv|mlx5dv|rdma)_|verbs_", n)
               and defined[n] != "IBVERBS_PRIVATE_34"])  # what libibverbs keeps for its drivers


PLUGIN_MAJORS = (3, 4, 5, 6)


def bad_plugin(path, name, soname, needed, defined, undefined):
    """What the host would trip over: it looks for one name, one symbol, and has libraries of its own."""
    return ([f"{path}: its SONAME is '{soname}', expected {name}"] if soname != name else []) \
        + [f"{path}: exports {n}" for n in sorted(set(defined) - {"nvshmemt_init"})] \
        + ([] if "nvshmemt_init" in defined else [f"{path}: does not export nvshmemt_init"]) \
        + bad_needed(path, needed) + bad_undefined(path, undefined)


def plugin(tap):
    folder = os.path.join(rules.build_root(), "plugin/nvshmem")
    for major in PLUGIN_MAJORS:
        name = f"nvshmem_transport_ibrc.so.{major}"
        path = os.path.join(folder, name)
        soname, needed = dynamic(path)
        tap.check(f"{name}: its SONAME, its one export, glibc alone",
                  bad_plugin(name, name, soname, needed, *symbols(path)))
    found = {n for n in os.listdir(folder) if n.startswith("nvshmem_transport_")}
    tap.check("there is no file for another interface version",
              [f"{n} is built" for n in sorted(found - {f"nvshmem_transport_ibrc.so.{m}" for m in PLUGIN_MAJORS})])


def plugin_self_tests(tap):
    good = ("x.so.3", "x.so.3", ["libc.so.6"], {"nvshmemt_init": ""}, {})
    tap.must_pass("a transport file", bad_plugin("x", *good))
    tap.must_flag("a transport file of another name", bad_plugin("x", "x.so.4", *good[1:]))
    tap.must_flag("a transport file that exports more",
                  bad_plugin("x", *good[:3], {"nvshmemt_init": "", "braid_put": ""}, {}))
    tap.must_flag("a transport file without its function", bad_plugin("x", *good[:3], {}, {}))
    tap.must_flag("a transport file that needs CUDA", bad_plugin("x", *good[:2], ["libcuda.so.1"], *good[3:]))


def main():
    tap = rules.Tap()
    self_tests(tap)
    plugin_self_tests(tap)
    for name, part in (("libbraid", libbraid), ("the emulator", emulator), ("the plugin", plugin)):
        try:
            part(tap)
        except (RuntimeError, OSError) as err:
            tap.check(f"{name} can be read", [str(err)])
    tap.done()


if __name__ == "__main__":
    main()
