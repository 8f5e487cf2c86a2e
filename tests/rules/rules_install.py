#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rules_install.py - what `make install` leaves behind is enough to build and run a program, and holds no libibverbs.

  rules_install.py SOURCE_ROOT BUILD_ROOT
"""
import os
import re
import tempfile

import rules

PROGRAM = """
#include <braid/braid.h>
#include <stdio.h>
int main(void)
{
    struct braid *b = NULL;
    const char *settings[] = {"nosuch=1", NULL};
    struct braid_options options = BRAID_OPTIONS_INIT;
    options.settings = settings;
    puts(braid_version());
    return braid_open(&options, &b) < 0 && b == NULL ? 0 : 1;
}
"""


def installed(folder):
    return sorted(os.path.relpath(os.path.join(where, n), folder) for where, _, names in os.walk(folder) for n in names)


def missing(files):
    """What a user needs and did not get."""
    wanted = (r"include/braid/braid\.h$", r"/libbraid\.so$", r"/libbraid\.so\.\d+$", r"pkgconfig/braid\.pc$", r"bin/braid$",
              r"man1/braid\.1$", r"man7/braid\.7$", r"lib/braid/emu/libibverbs\.so\.1$")
    wanted += tuple(rf"/braid/nvshmem/nvshmem_transport_ibrc\.so\.{major}$" for major in (3, 4, 5, 6))
    return [f"nothing installed matches {w}" for w in wanted if not any(re.search(w, f) for f in files)]


def unwanted(files):
    """What would get in the way of the real libibverbs, or belongs to the tests. The emulator has a folder of its own."""
    return [f"{f} is installed" for f in files
            if re.search(r"ibverbs|emu_sim|conformance|/test_", f) and not re.search(r"/lib/braid/emu/libibverbs\.so", f)]


def build_and_run(tap, folder, files):
    """With pkg-config's flags, found through the sysroot that the folder is."""
    pc = next(f for f in files if f.endswith("braid.pc"))
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(folder, os.path.dirname(pc)), PKG_CONFIG_SYSROOT_DIR=folder)
    status, flags = rules.run(["pkg-config", "--cflags", "--libs", "braid"], env=env)
    tap.check("pkg-config finds braid", [] if status == 0 else flags.splitlines())
    program = os.path.join(folder, "program")
    status, output = rules.run(["gcc", "-std=c99", "-Wall", "-Werror", "-x", "c", "-", "-x", "none", "-o", program]
                               + flags.split(), input=PROGRAM)
    tap.check("a program builds against the installed copy", [] if status == 0 else output.splitlines())
    if status:
        return
    library = os.path.dirname(next(f for f in files if re.search(r"/libbraid\.so\.\d+$", f)))
    status, output = rules.run([program], env=dict(os.environ, LD_LIBRARY_PATH=os.path.join(folder, library)))
    version = re.search(r"version: '([\d.]+)'", rules.read("meson.build")).group(1)
    tap.check("and runs, with the version of meson.build",
              [] if status == 0 and version in output.split() else [f"status {status}"] + output.splitlines())


def run_demo(tap, folder, files):
    """The installed program finds the installed emulator."""
    program = os.path.join(folder, next(f for f in files if f.endswith("bin/braid")))
    library = os.path.join(folder, os.path.dirname(next(f for f in files if re.search(r"/libbraid\.so\.\d+$", f))))
    env = {k: v for k, v in os.environ.items() if k != "BRAID_EMU_LIB"}
    status, output = rules.run([program, "demo", "--count", "4"], env=dict(env, LD_LIBRARY_PATH=library))
    tap.check("the installed demo runs", [] if status == 0 and "GB/s" in output else [f"status {status}"] + output.splitlines())


def main():
    tap = rules.Tap()
    tap.must_flag("an installation without the header", missing(["usr/lib/libbraid.so", "usr/bin/braid"]))
    tap.must_flag("an installed libibverbs", unwanted(["usr/lib/libibverbs.so.1"]))
    with tempfile.TemporaryDirectory() as folder:
        status, output = rules.run(["meson", "install", "-C", rules.build_root(), "--no-rebuild", "--destdir", folder])
        tap.check("meson install", [] if status == 0 else output.splitlines()[-20:])
        files = installed(folder)
        tap.check("what a user needs is installed", missing(files))
        tap.check("nothing else is", unwanted(files))
        if not missing(files):
            build_and_run(tap, folder, files)
            run_demo(tap, folder, files)
    tap.done()


if __name__ == "__main__":
    main()
