#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_run.py - tests/gpu/run.sh without a GPU: a compiler that makes a script of ours, in which each row goes as a case wants.
What is looked at: the table, what is called wrong, the exit status.

  test_run.py RUN_SH BUILD HOST_LIB        prints TAP; HOST_LIB: a stand-in for the host library
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Tap

RUN, BUILD, HOST = sys.argv[1:4]
TAP = Tap()
check = TAP.holds

NVCC = """#!/bin/bash
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
case $out in *.o) : >"$out" ;; *) cp "$MOCK/program" "$out" && chmod +x "$out" ;; esac
"""
SMI = """#!/bin/bash
case "$*" in *compute_cap*) echo 9.0 ;; -L) echo "GPU 0: none" ;; esac
"""
# As gpu_test prints. $engine is whose plugin is preloaded.
PROGRAM = """#!/bin/bash
while [ $# -gt 0 ]; do
    case $1 in
    --list) printf 'stream x\\np x\\nfetch x\\nfetch4 x\\nbits x\\nmoe x\\nrate x\\n' && exit ;;
    --library) library=$2 && shift ;;
    --info) echo 'GPU 0: none' && exit ;;
    --rows) rows=$2 && shift ;;
    --pe) pe=$2 && shift ;;
    --ports) ports=$2 && shift ;;
    esac
    shift
done
case $LD_PRELOAD in *nvshmem_transport_ibrc*) engine=braid ;; *) engine=stock ;; esac
[ "$CASE" != nostart ] || [ $engine = stock ] || { echo '# nvshmemx_init_attr failed' && exit 1; }
echo "init pe $pe 0.1"
if [ -n "$library" ]; then
    [ "$CASE,$NCCL_NET_GDR_LEVEL" != ncclhost,SYS ] || exit 3
    echo "row nccl_rate pe $pe ok 0.1 mbs=77.0 wrong=0" && exit
fi
for row in ${rows//,/ }; do
    good=ok note=''
    case $row in
    moe) note="mbs=50.0 tokens=9 stale=0" && [ "$CASE,$engine,$pe" != stale,braid,1 ] || good=WRONG note="mbs=50.0 tokens=9 stale=3" ;;
    fetch*) [ $engine = braid ] || { echo 'not implemented' && exit 255; } ;;
    rate) note=mbs=49.0 && [ $engine = stock ] || note=mbs=${SECOND:-95.0} ;;
    esac
    case $CASE,$engine,$row,$pe in
    wrong,braid,p,1 | stockwrong,stock,p,1) good=WRONG ;;
    dies,braid,p,1) exit 9 ;;
    hangs,braid,p,1) sleep 60 ;;
    esac
    echo "row $row pe $pe $good 0.1 $note"
done
echo "end pe $pe 0.5"
[ "$CASE,$engine" != badend,braid ]
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)


def lay_out(top):
    for folder in ("bin", "nvshmem/include", "nvshmem/lib"):
        os.makedirs(f"{top}/{folder}")
    write(f"{top}/bin/nvcc", NVCC)
    write(f"{top}/bin/nvidia-smi", SMI)
    write(f"{top}/program", PROGRAM)
    write(f"{top}/nvshmem/include/nvshmemx.h", "")
    write(f"{top}/nvshmem/lib/libnvshmem_device.a", "")
    shutil.copy(HOST, f"{top}/nvshmem/lib/libnvshmem_host.so.3")


def run(top, case, *args, second="95.0"):
    """run.sh with rows that go as the case says: (status, output, table as rows of cells)."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NVSHMEM", "BRAID", "LD_"))}
    env.update(PATH=f"{top}/bin:{env['PATH']}", MOCK=top, CASE=case, SECOND=second, NVSHMEM_HOME=f"{top}/nvshmem")
    done = subprocess.run([RUN, "--prebuilt", BUILD, "--nvshmem", f"{top}/nvshmem", "--work", f"{top}/made", "--ports", "2",
                           "--budget", "100",
                           *([] if "--nccl" in args else ["--nccl", "none"]), *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env=env, timeout=120)
    table = {}
    try:
        with open(f"{top}/made/out/table.txt", encoding="utf-8") as f:
            for line in f.read().splitlines()[2:]:
                table[line[:14].strip()] = [line[14:28].strip(), line[28:42].strip()]
    except OSError:
        pass
    return done.returncode, done.stdout, table


def main():
    with tempfile.TemporaryDirectory() as top:
        lay_out(top)
        status, out, table = run(top, "good")
        check("all good: status 0", status == 0, out)
        check("all good: both engines in the table, with rates", table.get("stream") == ["ok", "ok"]
              and table.get("rate") == ["ok 49.0", "ok 95.0"], out)
        check("stock that ends at fetch atomics is shown and is no fault", table.get("fetch") == ["ended (255)", "ok"], out)
        check("two ports against one, with its label", "95.0 / 49.0 MB/s = 1.94 (emulated cap)" in out, out)
        check("our rates against stock's, and what was stale", "moe, 2 port(s), ours against stock: 50.0 / 50.0 MB/s = 1.00" in out
              and "moe, braid, 2 port(s): 0 stale words" in out, out)
        status, out, table = run(top, "stale")
        check("stale words: counted, and status 1", status == 1 and "moe, braid, 2 port(s): 3 stale words" in out
              and table.get("moe", ["", ""])[1] == "WRONG", out)
        for case, level in (("good", "SYS"), ("ncclhost", "LOC")):
            status, out, table = run(top, case, "--nccl", f"{top}/nvshmem/lib/libnvshmem_host.so.3")
            check(f"NCCL beside them ({case})", status == 0 and "NCCL, 2 port(s), NCCL_NET_GDR_LEVEL=" + level
                  + ": row nccl_rate pe 1 ok 0.1 mbs=77.0" in out, out)
        for case, row, cell, words in (("wrong", "p", "WRONG", "braid, 2 port(s), p: WRONG"),
                                       ("dies", "p", "ended (9)", "braid, 2 port(s), p: ended (9)"),
                                       ("hangs", "p", "ended (124)", "braid, 2 port(s), p: ended (124)"),
                                       ("nostart", "stream", "no start", "braid, 2 port(s), bits: missing")):
            status, out, table = run(top, case, "--stall", "3")
            check(f"{case}: status 1, and named", status == 1 and words in out and table.get(row, ["", ""])[1] == cell, out)
            if case in ("dies", "hangs"):
                check(f"{case}: the rows behind it run all the same", table.get("rate") == ["ok 49.0", "ok 95.0"], out)
        status, out, table = run(top, "stockwrong")
        check("a wrong byte of stock's counts too", status == 1 and "stock, 2 port(s), p: WRONG" in out, out)
        status, out, table = run(top, "badend")
        check("all rows right, then a bad end: status 1", status == 1 and "braid, 2 port(s), the end: " in out, out)
        status, out, table = run(top, "good", second="80.0")
        check("below 1.8 times stock: status 1", status == 1 and "below 1.8: two ports" in out, out)
        status, out, table = run(top, "good", "--nosuch")
        check("used wrongly: status 2", status == 2 and "--nosuch" in out, out)
        for part in ("cli/braid", "emu/libibverbs.so.1", "emu/emu_sysfs.so", "plugin", "src"):
            os.makedirs(os.path.dirname(f"{top}/part/{part}"), exist_ok=True)
            os.symlink(f"{os.path.realpath(BUILD)}/{part}", f"{top}/part/{part}")
        status, out, table = run(top, "good", "--prebuilt", f"{top}/part")
        check("a folder without the emulator's shorter name is given it", status == 0 and os.path.samefile(
            f"{top}/part/emu/libibverbs.so", f"{top}/part/emu/libibverbs.so.1"), out)
    TAP.done()


main()
