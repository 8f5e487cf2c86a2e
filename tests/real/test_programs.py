#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_programs.py - `braid emu` as a user meets it, and programs that know nothing of it: perftest, UCX, ibv_devinfo.

  test_programs.py BRAID        prints TAP
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from programs import Fabric, free_port
from tap import Tap

TOOLS = ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw", "ib_write_lat", "ib_read_lat", "ib_send_lat",
         "ib_atomic_lat")
FABRIC = Fabric(sys.argv[1], "nodes=2,ports=2,rate=10G")
NAME = FABRIC.name
emu, inside, start, perftest, ucx = FABRIC.emu, FABRIC.inside, FABRIC.start, FABRIC.perftest, FABRIC.ucx
TAP = Tap()
check = TAP.holds


def test_command():
    status, said = emu(*inside("h0", "sh", "-c", "echo out; exit 7"))
    check("the command's output and exit status are passed on", status == 7 and "out" in said, said)
    status, said = emu(*inside("h0", "sh", "-c", "kill -9 $$"))
    check("a signal that ends it gives 128 and more", status == 137, f"{status} {said}")
    status, said = emu(*inside("h0", "/nonexistent/program"))
    check("a command that is not there gives 127", status == 127 and "/nonexistent" in said, said)
    status, said = emu("--fabric", "nodes=x", "--", "true")
    check("a bad SPEC is refused", status == 2 and "nodes" in said, said)
    status, said = emu("ctl", "--name", NAME, "port", "h0/mlx5_0:1", "down")
    check("ctl without a fabric says so", status == 1, f"{status} {said}")


def test_names():
    """A program may load libibverbs by either name; both are the emulator, and a folder that has one only is told of."""
    script = ("import ctypes, sys; at = [ctypes.cast(ctypes.CDLL(n).ibv_get_device_list, ctypes.c_void_p).value "
              "for n in ('libibverbs.so', 'libibverbs.so.1')]; print('same' if at[0] == at[1] else at)")
    status, said = emu(*inside("h0", sys.executable, "-c", script))
    check("libibverbs.so and libibverbs.so.1 are one library", status == 0 and "same" in said, said)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("libibverbs.so.1", "emu_sysfs.so"):
            shutil.copy(f"{os.path.dirname(sys.argv[1])}/../emu/{name}", folder)
        os.environ["BRAID_EMU_LIB"] = f"{folder}/libibverbs.so.1"
        status, said = emu(*inside("h0", "true"))
        del os.environ["BRAID_EMU_LIB"]
        check("without the shorter name: said", status == 0 and f"seen no {folder}/libibverbs.so, expected a link" in said, said)


def test_sysfs():
    script = ("cat /sys/class/infiniband/mlx5_1/ports/1/rate /sys/class/infiniband/mlx5_1/ports/1/state; "
              "ls /sys/class/infiniband; readlink -f /sys/class/infiniband/mlx5_1/device; echo $BRAID_EMU_SYSFS")
    status, said = emu(*inside("h1", "sh", "-c", script))
    lines = said.split("\n")
    check("/sys shows the devices", status == 0 and lines[:4] == ["10 Gb/sec (4X)", "4: ACTIVE", "mlx5_0", "mlx5_1"], said)
    check("with a PCI path below /sys/devices", lines[4].startswith("/sys/devices/pci"), said)
    check("the tree is gone afterwards", lines[5].startswith("/") and not os.path.exists(lines[5]), said)
    status, said = emu("--no-sysfs", *inside("h1", "sh", "-c", "echo tree=$BRAID_EMU_SYSFS"))
    check("unless it was not wanted", status == 0 and "tree=\n" in said, said)


def may_mount():
    try:
        return subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/sys/class"], check=False,
                              stderr=subprocess.DEVNULL).returncode == 0
    except FileNotFoundError:
        return False


def test_namespace():
    status, said = emu("--namespace", "--no-sysfs", "--", "true")
    check("--namespace and --no-sysfs together are refused", status == 2 and "--namespace" in said, said)
    if not may_mount():
        status, said = emu("--namespace", *inside("h1", "true"))
        check("--namespace without the right to mount says what is missing", status == 126 and "CAP_SYS_ADMIN" in said, said)
        return
    before = sorted(os.listdir("/sys/class"))
    script = ("unset LD_PRELOAD; cat /sys/class/infiniband/mlx5_1/ports/1/rate; ls /sys/class/infiniband; "
              "readlink -f /sys/class/infiniband/mlx5_1/device; echo tree=$BRAID_EMU_SYSFS; ls /sys/class; echo ---; "
              "ls /sys/devices; readlink -f /sys/class/net/lo")
    status, said = emu("--namespace", *inside("h1", "sh", "-c", script))
    lines = said.split("\n")
    check("--namespace shows the devices to programs without the preloaded object",
          status == 0 and lines[:3] == ["10 Gb/sec (4X)", "mlx5_0", "mlx5_1"] and lines[3].startswith("/sys/devices/pci0000:b0/")
          and lines[4] == "tree=", said)
    seen, devices = said.split("---\n")[0].split("\n")[5:-1], said.split("---\n")[1].split("\n")
    check("beside what was there", sorted(seen) == sorted(set(before) | {"infiniband", "infiniband_verbs"}) and
          set(os.listdir("/sys/devices")) <= set(devices) and "/sys/devices/virtual/net/lo" in devices, said)
    check("and nobody else sees them", sorted(os.listdir("/sys/class")) == before and
          not [line for line in open("/proc/mounts", encoding="utf-8") if "braid-emu" in line])


def test_devinfo():
    if not shutil.which("ibv_devinfo"):
        TAP.skip("ibv_devinfo lists the devices", "not installed")
        return
    status, said = emu(*inside("h1", "ibv_devinfo"))
    good = status == 0 and all(w in said for w in ("mlx5_0", "mlx5_1", "PORT_ACTIVE")) and "mlx5_2" not in said
    check("ibv_devinfo lists the devices", good, said)


def test_perftest():
    for tool in TOOLS:
        if not shutil.which(tool):
            TAP.skip(f"{tool} runs", "not installed")
            continue
        good, said = perftest(tool, "-n", "100")
        check(f"{tool} runs", good, said)
    if shutil.which("ib_write_bw"):
        good, said = perftest("ib_write_bw", "-n", "100", "-b", "-q", "2", "--use_old_post_send")
        check("ib_write_bw, both ways on two queue pairs by the old calls", good, said)
        good, said = perftest("ib_send_bw", "-n", "100", "-e")
        check("ib_send_bw by events", good, said)
        good, said = perftest("ib_send_bw", "-n", "100", "-c", "UD")
        check("ib_send_bw by datagrams", good, said)


UCX_TESTS = {"tag_bw": "65536", "ucp_put_bw": "65536", "ucp_get": "65536", "ucp_fadd": "8"}


def test_ucx():
    for test, size in UCX_TESTS.items():
        if shutil.which("ucx_perftest"):
            good, said = ucx(test, size)
            check(f"ucx_perftest {test} runs over rc_verbs", good, said)
        else:
            TAP.skip(f"ucx_perftest {test} runs over rc_verbs", "not installed")


def counters(text):
    """{port: (state, Gb/s, sent, received)}"""
    rows = [line.split() for line in text.splitlines()[1:]]
    return {r[0]: (r[1], float(r[2]), int(r[3]), int(r[4])) for r in rows}


def test_ctl():
    if not shutil.which("ib_write_bw"):
        TAP.skip("ports and ctl", "perftest is not installed")
        return
    common = ["ib_write_bw", "-d", "mlx5_0", "-p", free_port(), "-D", "8"]
    server = start("h0", *common)
    time.sleep(1)
    client = start("h1", *common, "localhost")
    time.sleep(2)
    status, said = emu("ports", "--name", NAME)
    seen = counters(said)
    check("ports shows what was carried", status == 0 and seen["h1/mlx5_0:1"][2] > 0 and seen["h0/mlx5_0:1"][3] > 0, said)
    check("and nothing where nothing was", seen["h1/mlx5_1:1"][2] == 0, said)
    status, said = emu("ctl", "--name", NAME, "port", "h1/mlx5_0:1", "slow", "0.01")
    check("ctl slow", status == 0, said)
    first = counters(emu("ports", "--name", NAME)[1])["h1/mlx5_0:1"]
    time.sleep(1)
    then = counters(emu("ports", "--name", NAME)[1])["h1/mlx5_0:1"]
    check("a port at a hundredth of its rate carries no more", first[1] == 0.1 and then[2] - first[2] < 5e7, f"{first} {then}")
    status, said = emu("ctl", "--name", NAME, "port", "h9/mlx5_0:1", "down")
    check("ctl of a port that is not there is refused", status == 2 and "h9" in said, said)
    for process in (server, client):
        process.send_signal(signal.SIGTERM)
    for process in (server, client):
        process.communicate(timeout=60)
    status, said = emu("ctl", "--name", NAME, "port", "h1/mlx5_0:1", "up")
    check("the fabric is gone with its processes", status == 1 and not FABRIC.left_behind(), said)


test_command()
test_names()
test_sysfs()
test_namespace()
test_devinfo()
test_perftest()
test_ucx()
test_ctl()
check("nothing is left in shared memory", not FABRIC.left_behind(), str(FABRIC.left_behind()))
TAP.done()
