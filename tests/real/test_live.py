#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_live.py - `braid bench --fabric live`: PEs that are processes, started by mpirun on an emulated fabric in real time.

  test_live.py BRAID SCHEMA yes|no        prints TAP; the last word: whether braid was built with PMIx
"""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from json_schema import against
from tap import Tap

BRAID, SCHEMA, PMIX = sys.argv[1], sys.argv[2], sys.argv[3] == "yes"
MPIRUN = shutil.which("mpirun") or shutil.which("mpirun", path="/usr/lib64/openmpi/bin")
TAP = Tap()
check = TAP.holds
# As root mpirun wants to be told, and on few CPUs too.
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", BRAID_EMU_NAME=f"live-{os.getpid()}")


def braid(*args):
    done = subprocess.run([BRAID, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
                          env=ENVIRONMENT)
    return done.returncode, done.stdout, done.stderr


def job(n, fabric, command):
    """n processes, each on its host of the fabric: (status, standard output, standard error)."""
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", str(n), BRAID, "emu", "--fabric", fabric, "--gpus", "--host", "rank", "--",
                           *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=120,
                          env=ENVIRONMENT)
    return done.returncode, done.stdout, done.stderr


def bench(n, fabric, *args):
    return job(n, fabric, [BRAID, "bench", args[0], "--fabric", "live", *args[1:]])


def runs(name, answer):
    """The runs of a command that ended well, which keep to the schema; [] where it did not."""
    status, out, err = answer
    try:
        result = json.loads(out)
    except ValueError:
        result = {}
    with open(SCHEMA, encoding="utf-8") as f:
        schema = json.load(f)
    problems = against(result, schema, schema)
    check(f"{name}: ends well, by the schema", status == 0 and not problems, f"status {status}\n" + "\n".join(problems) + err)
    check(f"{name}: says whose clock it was",
          (result.get("label"), result.get("clock"), result.get("cost_table", "")) == ("emulated (real time)", "real", None), out)
    return result.get("runs", []) if not problems else []


def test_streams():
    """One port of a GPU, then both: each carries its part."""
    found = runs("put", bench(4, "nodes=2,gpus=2,ports=2,topo=pxb,rate=800M", "put", "--all", "--size", "256K", "--count", "30", "--compare",
                              "braid,release,1;braid,release,2", "--json"))
    check("put: no wrong byte of those that were sent", len(found) == 2 and
          all(r["errors"] == 0 and r["compared_bytes"] == 4 * 30 * 262144 for r in found), found)
    used = [{(p["host"], p["port"]): p["tx"] for p in r["port_bytes"] if p["tx"]} for r in found]
    check("put: the ports that braid plan means", len(used) == 2 and
          sorted(used[0]) == [(h, f"mlx5_{d}:1") for h in ("h0", "h1") for d in (0, 2)] and
          sorted(used[1]) == [(h, f"mlx5_{d}:1") for h in ("h0", "h1") for d in range(4)], used)
    check("put: all bytes are counted", len(used) == 2 and all(sum(u.values()) == 4 * 30 * 262144 for u in used), used)
    check("put: never more than ports can carry", all(0 < r["fraction"] <= 1.02 for r in found), found)
    found = runs("signal", bench(2, "nodes=2,ports=2,rate=2G,jitter=50us,unkind=all", "signal", "--size", "64K", "--count", "60", "--json"))
    check("signal: no byte behind its signal", len(found) == 1 and found[0]["errors"] == 0 and
          found[0]["compared_bytes"] == 60 * 65536 and found[0]["signal_us"]["count"] == 60, found)


def test_moe():
    arguments = ("--moe-tokens", "128", "--moe-channels", "2", "--json")
    found = runs("moe", bench(4, "nodes=2,gpus=2,ports=2,rate=2G,jitter=50us,unkind=all", "moe", *arguments, "--moe-phase",
                              "dispatch-fp8,combine"))
    check("moe: two phases, no stale read, no wrong byte", len(found) == 2 and
          all(r["stale_reads"] == 0 and r["errors"] == 0 and r["nodes"] == 2 and r["compared_bytes"] > 4 * 128 * 7472 for r in found), found)
    status, out, err = bench(2, "nodes=2,ports=2,rate=2G,jitter=100us,unkind=all", "moe", *arguments, "--moe-phase", "dispatch-bf16", "--fault",
                             "order")
    stale = [r["stale_reads"] for r in json.loads(out or '{"runs": []}')["runs"]]
    check("moe: a run without order is caught", status == 1 and len(stale) == 1 and stale[0] > 0, f"status {status} {stale}\n{err}")


def test_ends():
    """A process that dies takes the job with it, soon; what cannot be run is said."""
    status, _, err = job(2, "nodes=2,ports=2,rate=80M", ["sh", "-c", 'if [ "$PMIX_RANK" = 1 ]; then (sleep 1; kill -9 $$) & fi; '
                         f"exec {BRAID} bench put --fabric live --count 100000 --size 256K"])
    check("a process that is killed ends the job, with a message", status not in (0, 124) and "137" in err, f"status {status}\n{err}")
    status, _, err = bench(2, "nodes=2,ports=2,rate=800M", "put", "--ports", "3")
    check("more ports than there are: says where and how many", status == 1 and "seen 2 ports" in err and "expected 3" in err, err)
    status, _, err = bench(1, "nodes=2,ports=2", "put")
    check("a job of one process is told to be two", status == 2 and "expected two at least" in err, err)
    left = [n for n in os.listdir("/dev/shm") if ENVIRONMENT["BRAID_EMU_NAME"] in n]
    check("no fabric is left behind", not left, left)


def test_use():
    for args, expected in ((["atomic"], "put, get, signal or moe"), (["put", "--engine", "model:nic-rr"], "expected braid"),
                           (["put", "--stock"], "--stock")):
        status, out, err = braid("bench", *args, "--fabric", "live")
        check(f"{' '.join(args)} is refused", status == 2 and expected in err and not out, f"{status} {err}")
    status, _, err = braid("bench", "put", "--nap", "5")
    check("--nap is for real time", status == 2 and "--fabric live" in err, err)
    status, _, err = braid("emu", "--fabric", "nodes=2", "--host", "rank", "--", "true")
    check("--host rank wants a launcher", status == 2 and "mpirun" in err, err)


def main():
    test_use()
    status, _, err = braid("bench", "put", "--fabric", "live")
    if not PMIX:
        check("a program without PMIx says so", status == 1 and "built without PMIx" in err, err)
    else:
        check("a process without a launcher is told so", status == 1 and "mpirun" in err, f"{status} {err}")
    if not PMIX or not MPIRUN:
        TAP.skip("jobs", "no libpmix when this was built" if not PMIX else "no mpirun here")
    else:
        test_streams()
        test_moe()
        test_ends()
    TAP.done()


if __name__ == "__main__":
    main()
