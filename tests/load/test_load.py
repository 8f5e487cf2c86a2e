#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_load.py - `braid run` and the module braid_nvshmem bring the one right plugin file into a process, against stand-ins for
the NVSHMEM host library that have DT_RPATH=$ORIGIN and a plugin of NVIDIA's name beside them.

  test_load.py BRAID BUILD LIBDIR        prints TAP; BUILD: this folder's build folder, LIBDIR: below the prefix
"""
import os
import shutil
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, TESTS)
from tap import Tap

BRAID, BUILD, LIBDIR = sys.argv[1:4]
MODULE = os.path.join(TESTS, "..", "python")
TAP = Tap()
check = TAP.holds
RELEASES = {"3.0": 3, "3.1": 3, "3.2": 3, "3.3": 3, "3.4": 3, "3.5": 4, "3.6": 5, "3.7": 6}

# Loads the host library, as an extension would, and lets it open its plugin.
OPEN = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).standin_open())"


def lay_out(top):
    """Folders as on a user's machine: ours/ has our plugins; host-V/ a host library with its decoys; app/ programs."""
    os.makedirs(f"{top}/ours")
    for n in (3, 4, 5, 6):
        shutil.copy(f"{BUILD}/standin_plugin_{n}.so", f"{top}/ours/nvshmem_transport_ibrc.so.{n}")
    for name in os.listdir(BUILD):
        if not name.startswith("standin_host_") or not name.endswith(".so"):
            continue
        folder = f"{top}/host-{name[len('standin_host_'):-3]}"
        os.makedirs(f"{folder}/lib")
        shutil.copy(f"{BUILD}/{name}", f"{folder}/lib/libnvshmem_host.so.3")
        for n in (2, 3, 4, 5, 6, 7):
            shutil.copy(f"{BUILD}/standin_plugin_{n}.so", f"{folder}/lib/nvshmem_transport_ibrc.so.{n}")
    os.makedirs(f"{top}/app")
    os.makedirs(f"{top}/static")
    shutil.copy(f"{BUILD}/standin_app", f"{top}/app/app")
    shutil.copy(f"{BUILD}/standin_static", f"{top}/app/static")
    shutil.copy(f"{BUILD}/standin_plugin_4.so", f"{top}/static/nvshmem_transport_ibrc.so.4")


def run(top, *args, **variables):
    """A command, its environment without anything that names NVSHMEM: (status, stdout, stderr)."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NVSHMEM", "BRAID", "LD_"))}
    env.update(BRAID_PLUGINS=f"{top}/ours", PYTHONPATH=MODULE, PYTHONDONTWRITEBYTECODE="1")
    env.update(variables)
    env = {k: v for k, v in env.items() if v is not None}
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, env=env, timeout=60)
    return done.returncode, done.stdout, done.stderr


def said(seen):
    return f"status {seen[0]}\n{seen[1]}\n{seen[2]}"


def ours(top, n):
    return f"plugin {top}/ours/nvshmem_transport_ibrc.so.{n}\n"


def host(top, release):
    return f"{top}/host-{release}/lib/libnvshmem_host.so.3"


def use(top, release):
    """What app finds by its own search path."""
    link = f"{top}/host"
    if os.path.islink(link):
        os.unlink(link)
    os.symlink(f"{top}/host-{release}/lib", link)


def test_without(top):
    """Without us the decoy is taken; what is known of search paths is so here."""
    use(top, "3.4")
    decoy = f"plugin {top}/app/../host/nvshmem_transport_ibrc.so.3\n"
    seen = run(top, f"{top}/app/app")
    check("alone: the plugin beside the host library", seen[1] == decoy, said(seen))
    seen = run(top, f"{top}/app/app", LD_LIBRARY_PATH=f"{top}/ours")
    check("LD_LIBRARY_PATH does not beat DT_RPATH", seen[1] == decoy, said(seen))
    seen = run(top, f"{top}/app/app", LD_PRELOAD=f"{top}/ours/nvshmem_transport_ibrc.so.4")
    check("another interface's file does not count", seen[1] == decoy, said(seen))


def test_run(top):
    for release, n in RELEASES.items():
        use(top, release)
        seen = run(top, BRAID, "run", "--", f"{top}/app/app")
        check(f"run: {release} takes our .so.{n} before the one beside it", seen == (0, ours(top, n), ""), said(seen))
        seen = run(top, BRAID, "run", "--host-lib", host(top, release), "--", sys.executable, "-c", OPEN, host(top, release))
        check(f"run: {release} by --host-lib", seen == (0, ours(top, n), ""), said(seen))
        seen = run(top, BRAID, "run", sys.executable, "-c", OPEN, host(top, release), NVSHMEM_HOME=f"{top}/host-{release}")
        check(f"run: {release} by NVSHMEM_HOME", seen == (0, ours(top, n), ""), said(seen))
    both = {"NVSHMEM_HOME": f"{top}/host-3.4", "LD_LIBRARY_PATH": f"{top}/host-3.5/lib"}
    seen = run(top, BRAID, "run", "--", sys.executable, "-c", OPEN, host(top, "3.5"), BRAID_HOST_LIB=host(top, "3.5"), **both)
    check("run: BRAID_HOST_LIB decides", seen == (0, ours(top, 4), ""), said(seen))
    use(top, "3.5")
    seen = run(top, BRAID, "run", "--", f"{top}/app/app", NVSHMEM_HOME=f"{top}/host-3.4")
    check("run: what the program itself needs comes before all else", seen == (0, ours(top, 4), ""), said(seen))
    seen = run(top, BRAID, "run", "--show", "--", f"{top}/app/app")
    check("run --show tells and runs nothing", seen[0] == 0 and "NVSHMEM 3.5.19" in seen[1] and "plugin " not in seen[1]
          and f"LD_PRELOAD={top}/ours/nvshmem_transport_ibrc.so.4" in seen[1], said(seen))
    seen = run(top, BRAID, "run", "--show", "--", f"{top}/app/static")
    check("run: a program with NVSHMEM linked in, by the plugin in its search path",
          seen[0] == 0 and "nvshmem_transport_ibrc.so.4" in seen[1], said(seen))


def test_run_real(top):
    """Our real files, where the build has put them."""
    plugins = os.path.realpath(os.path.join(os.path.dirname(BRAID), "..", "plugin", "nvshmem"))
    for release, n in RELEASES.items():
        use(top, release)
        seen = run(top, BRAID, "run", "--", f"{top}/app/app", BRAID_PLUGINS=None)
        check(f"run: {release} takes the .so.{n} that was built",
              seen == (0, f"plugin {plugins}/nvshmem_transport_ibrc.so.{n}\n", ""), said(seen))
    # The same where they are installed: the program finds them from its own place, wherever the prefix is.
    installed = f"{top}/prefix/{LIBDIR}/braid/nvshmem"
    os.makedirs(f"{top}/prefix/bin")
    os.makedirs(installed)
    shutil.copy(BRAID, f"{top}/prefix/bin/braid")
    os.symlink(os.path.realpath(os.path.join(os.path.dirname(BRAID), "..", "src")), f"{top}/prefix/src")
    shutil.copy(f"{plugins}/nvshmem_transport_ibrc.so.6", installed)
    use(top, "3.7")
    seen = run(top, f"{top}/prefix/bin/braid", "run", "--", f"{top}/app/app", BRAID_PLUGINS=None)
    check("run: finds installed plugins", seen == (0, f"plugin {installed}/nvshmem_transport_ibrc.so.6\n", ""), said(seen))
    use(top, "3.4")
    seen = run(top, f"{top}/prefix/bin/braid", "run", "--", f"{top}/app/app", BRAID_PLUGINS=None)
    check("run: a plugin that is not installed is said to be missing", seen[0] == 1 and seen[1] == ""
          and "seen no nvshmem_transport_ibrc.so.3" in seen[2], said(seen))


def test_run_places(top):
    """Where else a host library is found."""
    packages = f"{top}/packages"
    os.makedirs(f"{packages}/nvidia/nvshmem")
    os.symlink(f"{top}/host-3.6/lib", f"{packages}/nvidia/nvshmem/lib")
    script = f"{top}/app/train"
    with open(script, "w", encoding="utf-8") as f:
        f.write(f"#!{sys.executable}\nimport ctypes, sys\nsys.exit(ctypes.CDLL({host(top, '3.6')!r}).standin_open())\n")
    os.chmod(script, 0o755)
    for what, command in (("python", (sys.executable, script)), ("a script", (script,))):
        seen = run(top, BRAID, "run", "--", *command, PYTHONPATH=packages)
        check(f"run: {what}: the host library in Python's packages", seen == (0, ours(top, 5), ""), said(seen))
    for variable, value in (("NVSHMEM_DIR", f"{top}/host-3.6"), ("NVSHMEM_PREFIX", f"{top}/host-3.6"),
                            ("LD_LIBRARY_PATH", f"/nowhere:{top}/host-3.6/lib")):
        seen = run(top, BRAID, "run", "--", script, **{variable: value})
        check(f"run: {variable}", seen == (0, ours(top, 5), ""), said(seen))
    seen = run(top, BRAID, "run", "--", script, NVSHMEM_HOME=f"{top}/host-3.6", LD_LIBRARY_PATH=f"{top}/host-3.6/lib")
    check("run: one library by two ways is one", seen == (0, ours(top, 5), ""), said(seen))
    seen = run(top, BRAID, "run", "--", script, NVSHMEM_HOME=f"{top}/host-3.2", LD_LIBRARY_PATH=f"{top}/host-3.4/lib")
    check("run: two libraries that open the same plugin are no trouble", seen[0] == 0, said(seen))


def test_run_variables(top):
    show = "env | grep -e ^BRAID_ -e ^LD_PRELOAD | sort"
    other = f"{top}/static/nvshmem_transport_ibrc.so.4"
    seen = run(top, BRAID, "run", "--order", "strict", "--ports", "mlx5_0:1,mlx5_1:1", "--rails", "2", "--host-lib",
               host(top, "3.4"), "--", "sh", "-c", show, LD_PRELOAD=other)
    check("run sets BRAID_ORDER, BRAID_PORTS and BRAID_RAILS", seen[0] == 0 and "BRAID_ORDER=strict\n" in seen[1]
          and "BRAID_PORTS=mlx5_0:1,mlx5_1:1\n" in seen[1] and "BRAID_RAILS=2\n" in seen[1], said(seen))
    check("run keeps what LD_PRELOAD had", f"LD_PRELOAD={top}/ours/nvshmem_transport_ibrc.so.3:{other}\n" in seen[1],
          said(seen))
    seen = run(top, BRAID, "run", "--host-lib", host(top, "3.4"), "--", "sh", "-c", "exit 7")
    check("run: the command's exit status", seen[0] == 7, said(seen))


def refused_run(top, what, words, *args, **variables):
    seen = run(top, BRAID, "run", *args, "--", "sh", "-c", "echo it ran", **variables)
    check(f"run: {what}: refused, says why, runs nothing", seen[0] == 1 and seen[1] == "" and all(w in seen[2] for w in words),
          said(seen))


def broken(top):
    """Files that are no host library."""
    os.makedirs(f"{top}/broken/lib", exist_ok=True)
    shutil.copy(f"{BUILD}/standin_plugin_3.so", f"{top}/broken/mute.so")
    with open(f"{top}/broken/lib/libnvshmem_host.so.3", "w", encoding="utf-8") as f:
        f.write("no library\n")


def test_run_refuses(top):
    broken(top)
    refused_run(top, "3.8", ["NVSHMEM 3.8", "interface version 7"], "--host-lib", host(top, "3.8"))
    refused_run(top, "2.11", ["NVSHMEM 2.11", "3.0 to 3.7"], "--host-lib", host(top, "2.11"))
    refused_run(top, "3.8 by NVSHMEM_HOME", ["NVSHMEM 3.8"], NVSHMEM_HOME=f"{top}/host-3.8")
    refused_run(top, "no such file", ["--host-lib", "expected"], "--host-lib", f"{top}/nosuch")
    refused_run(top, "a library that does not tell", ["which release"], "--host-lib", f"{top}/broken/mute.so")
    refused_run(top, "no library", ["cannot be loaded"], NVSHMEM_HOME=f"{top}/broken")
    refused_run(top, "none found", ["seen no libnvshmem_host.so", "--host-lib"])
    refused_run(top, "two that disagree", ["host-3.4", "host-3.5", "so.3", "so.4", "--host-lib"],
                NVSHMEM_HOME=f"{top}/host-3.4", LD_LIBRARY_PATH=f"{top}/host-3.5/lib")
    refused_run(top, "no plugin of ours", ["seen no nvshmem_transport_ibrc.so.3", "BRAID_PLUGINS"], "--host-lib",
                host(top, "3.4"), BRAID_PLUGINS=f"{top}/nosuch")
    for args, words in ((("--order", "loose"), "release, strict or drain"), (("--rails", "0"), "1 to 16"), ((), "no command"),
                        (("--nosuch",), "nosuch")):
        seen = run(top, BRAID, "run", *args, *(("--", "true") if args else ()))
        check(f"run {' '.join(args) or 'with nothing'}: used wrongly", seen[0] == 2 and words in seen[2], said(seen))
    seen = run(top, BRAID, "run", "--", "no-such-program")
    check("run: a command that is not there", seen[0] == 127 and "no-such-program" in seen[2], said(seen))


def python(top, program, *args, **variables):
    return run(top, sys.executable, "-c", program, *args, **variables)


def test_module(top):
    for release, n in RELEASES.items():
        home = {"NVSHMEM_HOME": f"{top}/host-{release}"}
        seen = python(top, "import braid_nvshmem\n" + OPEN, host(top, release), **home)
        check(f"import: {release} takes our .so.{n} before the one beside it", seen == (0, ours(top, n), ""), said(seen))
        seen = run(top, sys.executable, "-m", "braid_nvshmem", **home)
        check(f"python -m: {release}", seen[0] == 0 and f"{top}/ours/nvshmem_transport_ibrc.so.{n}" in seen[1]
              and f"NVSHMEM {release}." in seen[1], said(seen))
    seen = python(top, "import braid_nvshmem\n" + OPEN, host(top, "3.5"), BRAID_HOST_LIB=host(top, "3.5"),
                  NVSHMEM_HOME=f"{top}/host-3.4", LD_LIBRARY_PATH=f"{top}/host-3.5/lib")
    check("import: BRAID_HOST_LIB decides", seen == (0, ours(top, 4), ""), said(seen))
    seen = python(top, OPEN, host(top, "3.4"))
    check("without the import: the one beside it", "host-3.4/lib/nvshmem_transport_ibrc.so.3" in seen[1], said(seen))
    late = "import ctypes, sys; h = ctypes.CDLL(sys.argv[1])\n"
    seen = python(top, late + "import braid_nvshmem; sys.exit(h.standin_open())", host(top, "3.7"),
                  NVSHMEM_HOME=f"{top}/host-3.4")
    check("import: a host library that is loaded already decides", seen == (0, ours(top, 6), ""), said(seen))
    seen = python(top, late + "h.standin_open(); import braid_nvshmem; sys.exit(h.standin_open())", host(top, "3.4"))
    check("import: too late is warned about", seen[0] == 0 and "RuntimeWarning" in seen[2] and "is loaded already" in seen[2]
          and seen[1].count("host-3.4/lib/nvshmem_transport_ibrc.so.3") == 2, said(seen))
    seen = python(top, "import braid_nvshmem as b; print(b.load() == b.loaded())", NVSHMEM_HOME=f"{top}/host-3.4")
    check("import: load() again does nothing", seen[1] == "True\n", said(seen))


def test_module_places(top):
    """nvshmem4py's layout and DeepEP's."""
    program = "import braid_nvshmem; print(braid_nvshmem.loaded())"
    packages = f"{top}/packages"
    seen = python(top, program, PYTHONPATH=f"{MODULE}:{packages}")
    check("import: the host library in Python's packages", seen[1] == f"{top}/ours/nvshmem_transport_ibrc.so.5\n", said(seen))
    os.makedirs(f"{top}/deepep/x")
    shutil.copy(f"{BUILD}/standin_static", f"{top}/deepep/x/deep_ep_cpp.cpython-311-x86_64-linux-gnu.so")
    os.symlink(f"{top}/static", f"{top}/deepep/static")
    seen = python(top, program, PYTHONPATH=f"{MODULE}:{top}/deepep/x")
    check("import: DeepEP's extension with NVSHMEM linked in, by its search path",
          seen[1] == f"{top}/ours/nvshmem_transport_ibrc.so.4\n", said(seen))
    seen = python(top, program, PYTHONPATH=f"{MODULE}:{top}/deepep/x", NVSHMEM_DIR=f"{top}/host-3.2")
    check("import: DeepEP's extension and NVSHMEM_DIR that disagree: refused", seen[0] == 1 and "expected one kind" in seen[2],
          said(seen))
    seen = python(top, program, LD_LIBRARY_PATH=f"{top}/host-3.5/lib")
    check("import: LD_LIBRARY_PATH", seen[1] == f"{top}/ours/nvshmem_transport_ibrc.so.4\n", said(seen))


def test_module_refuses(top):
    broken(top)
    for what, words, variables in (
            ("3.8", ["NVSHMEM 3.8", "interface version 7"], {"NVSHMEM_HOME": f"{top}/host-3.8"}),
            ("2.11", ["NVSHMEM 2.11", "3.0 to 3.7"], {"NVSHMEM_HOME": f"{top}/host-2.11"}),
            ("none found", ["seen no libnvshmem_host.so"], {}),
            ("no library", ["does not say which release"], {"NVSHMEM_HOME": f"{top}/broken"}),
            ("two that disagree", ["host-3.4", "host-3.5", "expected one kind"],
             {"NVSHMEM_HOME": f"{top}/host-3.4", "LD_LIBRARY_PATH": f"{top}/host-3.5/lib"}),
            ("no plugin of ours", ["seen no nvshmem_transport_ibrc.so.3", "BRAID_PLUGINS"],
             {"NVSHMEM_HOME": f"{top}/host-3.4", "BRAID_PLUGINS": f"{top}/nosuch"})):
        seen = python(top, "import braid_nvshmem", **variables)
        check(f"import: {what}: NotLoaded", seen[0] == 1 and "NotLoaded" in seen[2] and all(w in seen[2] for w in words),
              said(seen))
        seen = run(top, sys.executable, "-m", "braid_nvshmem", **variables)
        check(f"python -m: {what}: status 1", seen[0] == 1 and all(w in seen[2] for w in words), said(seen))


def main():
    with tempfile.TemporaryDirectory() as name:
        top = os.path.realpath(name)
        lay_out(top)
        for test in (test_without, test_run, test_run_real, test_run_places, test_run_variables, test_run_refuses, test_module,
                     test_module_places, test_module_refuses):
            test(top)
    TAP.done()


main()
