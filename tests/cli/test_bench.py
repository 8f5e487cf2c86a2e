#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_bench.py - `braid bench` as a user meets it: figures that agree with each other, the JSON schema, wrong use.

  test_bench.py BRAID        prints TAP
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from json_schema import against
from tap import Tap

BRAID = sys.argv[1]
SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench.schema.json")
TAP = Tap()
check = TAP.holds


def bench(*args, cwd=None):
    """Runs it: (status, stdout, stderr)."""
    done = subprocess.run([BRAID, "bench", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def load_schema():
    with open(SCHEMA, encoding="utf-8") as f:
        return json.load(f)


def test_validator():
    """The validator itself can find what is wrong."""
    schema = load_schema()
    _, out, _ = bench("put", "--count", "20", "--json")
    good = json.loads(out)
    check("a result is in the schema", against(good, schema, schema) == [], "\n".join(against(good, schema, schema)))
    for name, change in (("a missing field", lambda r: r.pop("gbs")), ("a wrong type", lambda r: r.update(gbs="1")),
                         ("a negative number", lambda r: r.update(errors=-1)), ("a foreign word", lambda r: r.update(order="x")),
                         ("an engine there is not", lambda r: r.update(engine="x")),
                         ("a foreign field", lambda r: r.update(more=1)), ("a boolean for a number", lambda r: r.update(size=True)),
                         ("no ports", lambda r: r.update(port_bytes=[])), ("half a time", lambda r: r["latency_us"].pop("p99"))):
        wrong = json.loads(out)
        change(wrong["runs"][0])
        check(f"the schema refuses {name}", against(wrong, schema, schema) != [])


# ---- figures -----------------------------------------------------------------------------------------------------------

def result(*args):
    """Runs with --json, checks the schema, and gives the object."""
    status, out, err = bench(*args, "--json")
    try:
        value = json.loads(out)
    except ValueError:
        check(f"{' '.join(args)}: JSON", False, f"status {status}\n{out}\n{err}")
        return None
    schema = load_schema()
    problems = against(value, schema, schema)
    check(f"{' '.join(args)}: status 0 and in the schema", status == 0 and not problems, f"status {status}\n{err}" + "\n".join(problems))
    return value


def test_agreement():
    """gbs is payload_bytes / wall_ns, and the sender's ports carried payload_bytes, within 1 % from 4 KiB up."""
    for args in (["put", "--size", "4K", "--count", "2000"], ["put", "--size", "64K"], ["put", "--size", "1M", "--count", "100"],
                 ["get", "--size", "4K", "--count", "2000"], ["get", "--size", "256K"], ["signal", "--size", "4K", "--count", "2000"],
                 ["signal", "--count", "100"], ["put", "--all", "--peers", "2", "--fabric", "nodes=3", "--count", "40"]):
        value = result(*args)
        if not value:
            continue
        run, name = value["runs"][0], " ".join(args)
        check(f"{name}: gbs is payload by time", abs(run["gbs"] - run["payload_bytes"] / run["wall_ns"]) < 0.001 * run["gbs"])
        check(f"{name}: payload is count by size", run["payload_bytes"] == run["ops"] * run["size"])
        host = f"h{run['sender']}"
        moved = sum(p["rx" if run["pattern"] == "get" else "tx"] for p in run["port_bytes"] if p["host"] == host)
        check(f"{name}: the ports carried the payload", abs(moved - run["payload_bytes"]) < 0.01 * run["payload_bytes"],
              f"{moved} of {run['payload_bytes']}")
        check(f"{name}: the wire carried more", all(p["wire_tx"] >= p["tx"] and p["wire_rx"] >= p["rx"] for p in run["port_bytes"]))
        check(f"{name}: no faster than the ceiling, all bytes right and compared",
              0 < run["fraction"] <= 1 and run["errors"] == 0 and run["compared_bytes"] >= run["payload_bytes"], str(run))
        check(f"{name}: delays are in order", 0 < run["latency_us"]["p50"] <= run["latency_us"]["p99"])
        for key in ("latency_us", "signal_us"):
            if run.get(key):
                check(f"{name}: the histogram of {key} holds all, and p50 and p99 where they are", histogram_holds(run[key]), str(run[key]))
        check(f"{name}: CPU share is a share", 0 < run["cpu_share"] <= 1, str(run["cpu_share"]))


def histogram_holds(times):
    """Buckets rise, are an eighth wide at most, hold `count` delays, and the 50th and 99th of a hundred lie in theirs."""
    ends, counts = zip(*times["histogram"])
    good = all(a < b for a, b in zip(ends, ends[1:])) and sum(counts) == times["count"] and min(counts) > 0
    for key, rank in (("p50", (times["count"] - 1) // 2), ("p99", (times["count"] - 1) * 99 // 100)):
        below = 0
        for end, n in zip(ends, counts):
            below += n
            if below > rank:
                good = good and end * 8 / 9 - 1e-9 <= times[key] < end
                break
    return good


def test_repeats():
    args = ["signal", "--count", "60", "--fabric", "ports=2,jitter=2us", "--json"]
    first, second, other = bench(*args), bench(*args), bench(*args, "--seed", "2")
    check("the same command prints the same", first == second)
    check("another seed is another run", first[1] != other[1] and '"seed": 2' in other[1])
    plain = bench("put", "--count", "20")
    env = dict(os.environ, BRAID_RAILS="1", BRAID_ORDER="drain")
    done = subprocess.run([BRAID, "bench", "put", "--count", "20"], stdout=subprocess.PIPE, text=True, check=False, env=env)
    check("the environment's options do not reach a run", done.stdout == plain[1], done.stdout)
    check("--set does", bench("put", "--count", "20", "--set", "rails=1")[1] != plain[1])


def test_compare():
    value = result("signal", "--count", "100", "--compare", "braid,release,1;braid,drain,2;braid,release,2")
    runs = value["runs"] if value else []
    check("compare: the runs in their order",
          [(r["order"], r["ports"]) for r in runs] == [("release", 1), ("drain", 2), ("release", 2)])
    status, out, _ = bench("signal", "--count", "100", "--compare", "braid,release,1;braid,release,2")
    ratios = [float(r) for r in re.findall(r"([\d.]+)x$", out, re.M)]
    check("compare: ratios to the first", status == 0 and len(ratios) == 2 and ratios[0] == 1 and ratios[1] > 1.5, out)


def test_atomic():
    value = result("atomic", "--fabric", "nodes=4,ports=2", "--count", "3000", "--all")
    run = value["runs"][0] if value else {}
    check("atomic: the sum is exact", run.get("errors") == 0 and run.get("ops") == 3000, str(run))


def test_engines():
    """The model of published behaviour is fast where nothing orders its puts, slow where signals do, and says what it is."""
    value = result("put", "--count", "60", "--compare", "model:nic-rr,release,1;model:nic-rr,release,2;braid,release,2")
    runs = value["runs"] if value else [{}] * 3
    check("model:nic-rr: whole puts over both ports", runs[1].get("gbs", 0) > 1.9 * runs[0].get("gbs", 1), str(runs))
    check("model:nic-rr: labelled", runs[0].get("engine_label") == "model of published behaviour" and runs[0].get("work") is None
          and runs[2].get("engine_label") == "libbraid", str(runs))
    for more in ([], ["--one-call"]):
        value = result("signal", "--count", "60", "--window", "8", "--compare", "model:nic-rr,release,2;braid,release,2", *more)
        runs = value["runs"] if value else [{}] * 2
        check(f"model:nic-rr: a signal waits for all before it {' '.join(more)}", all(r.get("errors") == 0 for r in runs) and
              runs[1].get("gbs", 0) > 1.9 * runs[0].get("gbs", 1) > 0, str(runs))
    status, out, _ = bench("put", "--count", "20", "--engine", "model:nic-rr")
    check("the label is in the text too", status == 0 and "model of published behaviour" in out, out)


def test_sweep():
    with tempfile.TemporaryDirectory() as folder:
        svg = os.path.join(folder, "it's.svg")
        status, out, err = bench("put", "--sweep", "--size", "4K,64K", "--ports", "1,2", "--count", "60", "--svg", svg)
        text = open(svg, encoding="utf-8").read() if os.path.exists(svg) else ""
        check("sweep: an SVG with a curve for each number of ports", status == 0 and "<svg" in text and "1 port" in text
              and "2 ports" in text, f"status {status}\n{err}\n{text[:300]}")
        check("sweep: a table and curves as text", "64 KiB" in out and len(re.findall(r"^ .*\|", out, re.M)) > 10, out)
        value = json.loads(bench("put", "--sweep", "--size", "4K,64K", "--ports", "1,2", "--count", "60", "--svg", svg, "--json")[1])
        check("sweep: all sizes x all ports", [(r["ports"], r["size"]) for r in value["runs"]]
              == [(1, 4096), (1, 65536), (2, 4096), (2, 65536)])
        done = subprocess.run([os.path.abspath(BRAID), "bench", "put", "--sweep", "--size", "4K", "--count", "10"], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=dict(os.environ, PATH=folder))
        check("sweep: without gnuplot the table is there, and it says so",
              done.returncode == 1 and "gnuplot" in done.stderr and "4 KiB" in done.stdout, done.stdout + done.stderr)


# ---- wrong use ---------------------------------------------------------------------------------------------------------

def test_wrong_use():
    for args, seen in ((["nosuch"], "nosuch"), ([], "usage"), (["put", "--size", "0"], '"0"'), (["put", "--size", "12Q"], "12Q"),
                       (["put", "--size", "99999999999999999999"], "9999"), (["put", "--size", "2G"], "2G"),
                       (["put", "--size", "4K,8K"], "--sweep"), (["put", "--ports", "0"], '"0"'), (["put", "--ports", "17"], "17"),
                       (["put", "--ports", "4"], "4 ports"), (["put", "--count", "0"], '"0"'), (["put", "--window", "x"], '"x"'),
                       (["put", "--peers", "9"], "9 peers"), (["put", "--order", "fifo"], "fifo"), (["put", "--tail", "maybe"], "maybe"),
                       (["put", "--engine", "plugin:/x.so"], "plugin:/x.so"),
                       (["put", "--engine", "plugin:/nosuch/nvshmem_transport_ibrc.so.3"], "No such file"),
                       (["put", "--engine", "plugin:/nosuch/nvshmem_transport_ibrc.so.7"], "interface 3 to 6"),
                       (["put", "--engine", "plugin:/nosuch/nvshmem_transport_ibrc.so.4@3a"], '"3a"'),
                       (["put", "--engine", "model:x"], "model:x"), (["put", "--one-call"], "one call"), (["put", "--engine", "ucx"], "ucx"),
                       (["put", "--nosuch"], "--nosuch"), (["put", "more"], "more"), (["put", "--size"], "--size"),
                       (["put", "--compare", "braid,release"], "braid,release"), (["put", "--compare", "braid,release,x"], '"x"'),
                       (["put", "--compare", ""], "ENGINE"), (["put", "--fault", "none"], "none"), (["put", "--set", "rails"], "rails"),
                       (["put", "--seed", "-1"], "-1"), (["atomic", "--size", "16"], "16 bytes"), (["atomic", "--op", "nand"], "nand"),
                       (["put", "--svg", "x.svg"], "--sweep"), (["put", "--except", "5"], "5")):
        status, out, err = bench(*args)
        check(f"bench {' '.join(args)}: status 2, a reason, nothing else",
              status == 2 and "braid bench" in err and seen in err and not out.strip(), f"status {status}\n{out}\n{err}")
    status, _, err = bench("put", "--set", "nosuch=1")
    check("--set of an option that is none fails", status == 1 and "nosuch" in err, f"status {status}\n{err}")


def test_bad_fabric():
    """Position, what was seen, what was expected."""
    for spec, position, seen, expected in (("nodes=x", 1, '"x"', "whole number"), ("nodes=2,rate=fast", 9, '"fast"', "number"),
                                           ("nodes=2,rate=200", 9, '"200"', "1e+06"), ("nodes=2,bogus=1", 9, '"bogus"', "nodes"),
                                           ("nodes=2, latency=3", 10, '"3"', "unit"), ("ports=2,at=1ms:up", 9, '"1ms:up"', "TIME")):
        status, out, err = bench("put", "--fabric", spec)
        check(f"fabric {spec}: position, seen, expected",
              status == 2 and f"at character {position}:" in err and seen in err and expected in err and not out.strip(),
              f"status {status}\n{err}")
    status, _, err = bench("put", "--fabric", "/nosuch/fabric")
    check("a file that is none", status == 2 and "/nosuch/fabric" in err, err)
    with tempfile.NamedTemporaryFile("w", suffix=".fabric") as f:
        f.write("# two nodes\nnodes=2\nports=2\nrate=100G\n")
        f.flush()
        value = result("put", "--count", "20", "--fabric", f.name)
        check("a fabric from a file", value is not None and value["fabric"]["rate"] == "100G")


def test_faults():
    """Each rule switched off shows wrong bytes; the same traffic on the same fabric with the rule shows none."""
    unkind = "jitter=3us,unkind=all"
    rail = "nodes=4,ports=4,topo=rail," + unkind
    controls = {
        "defer": ["--fabric", unkind], "flush": ["--fabric", unkind], "order": ["--fabric", unkind],
        "own-flush": ["--fabric", unkind, "--signal", "set"],
        "keys": ["--fabric", "jitter=3us,unkind=relaxed+ackvis+atomics", "--signal", "set"],
        "overlap": ["--fabric", unkind, "--rewrite"], "home": ["--fabric", "nodes=4," + unkind, "--one-word", "--all", "--peers", "3"],
        "dedup": ["--fabric", rail, "--unreachable", "1", "--set", "reply_timeout=10"],
        "tail": ["--fabric", unkind, "--tail", "on", "--watch-last"],
    }
    for rule, control in controls.items():
        status, out, err = bench("signal", "--count", "300", "--fault", rule, "--json")
        run = json.loads(out)["runs"][0] if status in (0, 1) and out else {}
        check(f"--fault {rule}: errors > 0, status 1", status == 1 and run.get("errors", 0) > 0 and run.get("fault") == rule,
              f"{status} {run.get('errors')}\n{err}")
        status, out, err = bench("signal", "--count", "300", "--size", "64K", *control, "--json")
        run = json.loads(out)["runs"][0] if status in (0, 1) and out else {}
        check(f"the traffic of --fault {rule} with the rule: no error, status 0", status == 0 and run.get("errors") == 0,
              f"{status} {run.get('errors')}\n{err}")
    status, out, _ = bench("signal", "--count", "100", "--fault", "defer")
    check("a table says which rule is off", status == 1 and "WITHOUT the rule defer" in out, out)
    status, _, err = bench("signal", "--count", "100", "--unreachable", "1")
    check("--unreachable where all ports reach each other is refused", status == 2 and "topo=rail" in err, err)


def test_atomics():
    """Every operation, native and by the target, on an unkind fabric."""
    for op in ("add", "fetch-add", "cswap", "set", "swap", "and", "or", "xor", "fetch"):
        for size in ("8", "4"):
            status, out, err = bench("atomic", "--op", op, "--size", size, "--all", "--count", "300", "--window", "4", "--fabric",
                                     "nodes=3,ports=2,jitter=2us,unkind=all", "--json")
            run = json.loads(out)["runs"][0] if out else {}
            check(f"atomic {op}, {size} bytes", status == 0 and run.get("errors") == 0 and run.get("ops") == 300, f"{status} {err}")


def moe(*args, status=0):
    """Runs of `braid bench moe`; an empty list where it did something else."""
    got, out, err = bench("moe", "--json", *args)
    check(f"moe {' '.join(args)}: status {status}", got == status, f"status {got}\n{err}")
    value = json.loads(out) if out else {"runs": []}
    schema = load_schema()
    problems = against(value, schema, schema)
    check(f"moe {' '.join(args)}: in the schema", not problems, "\n".join(problems))
    return value["runs"]


def test_moe():
    """Figures that agree with each other, in every phase and order mode, on fabrics that are not kind."""
    runs = moe("--moe-tokens", "512")
    check("moe: all phases", [r["phase"] for r in runs] == ["dispatch-bf16", "dispatch-fp8", "combine"])
    check("moe: bytes a token", [r["size"] for r in runs] == [14416, 7472, 14384])
    for r in runs:
        sent = sum(p["tx"] for p in r["port_bytes"] if p["host"] == f"h{r['sender']}")
        check(f"{r['phase']}: remote bytes went over the ports", abs(sent - r["remote_bytes"]) < 0.02 * r["remote_bytes"],
              f"{sent} of {r['remote_bytes']}")
        check(f"{r['phase']}: gbs is logical bytes by time", abs(r["gbs"] - r["logical_bytes"] / r["wall_ns"]) < 0.001 * r["gbs"]
              and r["payload_bytes"] == r["logical_bytes"] == r["ops"] * r["size"], str(r["gbs"]))
        check(f"{r['phase']}: the ceiling is the ports' by the remote part",
              abs(r["ceiling_gbs"] - 49.0187 * r["logical_bytes"] / r["remote_bytes"]) < 0.01 and 0 < r["fraction"] <= 1, str(r["ceiling_gbs"]))
        check(f"{r['phase']}: where the time went adds up", abs(sum(r["moe"]["where_us"].values()) * 1e3 - r["wall_ns"]) < 0.01 * r["wall_ns"],
              str(r["moe"]["where_us"]))
        check(f"{r['phase']}: every slot compared, none stale", r["errors"] == r["stale_reads"] == 0
              and r["compared_bytes"] >= 2 * 0.98 * r["logical_bytes"])
    check("moe: the same again", moe("--moe-tokens", "512") == runs)
    runs = moe("--moe-tokens", "256", "--moe-phase", "dispatch-bf16,combine", "--fabric", "nodes=3,gpus=2,topo=pxb,jitter=3us,unkind=all",
               "--compare", "braid,release,2;braid,strict,2")
    check("moe: no slot is stale on a fabric that is not kind", len(runs) == 4 and all(r["stale_reads"] == 0 for r in runs))
    runs = moe("--moe-tokens", "256", "--moe-phase", "dispatch-bf16", "--compare", "braid,release,1;braid,drain,2;model:nic-rr,release,2")
    check("moe: the others are as right where an acknowledgement is visibility", len(runs) == 3 and all(r["errors"] == 0 for r in runs))


def test_moe_more():
    """Patterns in the place of bytes, skewed routing, kernels that take time, chunks, faults, wrong use."""
    run = moe("--moe-tokens", "64", "--moe-phase", "combine", "--fabric", "nodes=8,jitter=1us")[0]
    check("moe: payload of many nodes is checked, too", run["errors"] == 0 and run["compared_bytes"] > 8 * 60 * 14384)
    skewed = moe("--moe-tokens", "256", "--moe-phase", "dispatch-bf16", "--fabric", "nodes=4", "--moe-skew", "1")[0]
    even = moe("--moe-tokens", "256", "--moe-phase", "dispatch-bf16", "--fabric", "nodes=4")[0]
    check("moe: skewed routing makes one PE busier", skewed["remote_bytes"] > even["remote_bytes"])
    slow = moe("--moe-tokens", "256", "--moe-phase", "dispatch-bf16,combine", "--moe-gpu", "8:8:2us")
    check("moe: kernels that take time are what is waited for", all(r["moe"]["where_us"]["gpu"] > 0.3 * r["wall_ns"] / 1e3 for r in slow),
          str([r["moe"]["where_us"] for r in slow]))
    status, out, _ = bench("moe", "--moe-tokens", "128", "--moe-phase", "dispatch-bf16", "--tune")
    check("moe --tune: eight chunks and the best", status == 0 and out.count("dispatch-bf16 release") == 8 and "best dispatch-bf16" in out, out)
    for rule in ("order", "defer", "flush"):
        runs = moe("--moe-tokens", "512", "--fault", rule, "--moe-phase", "dispatch-bf16", status=1)
        check(f"moe --fault {rule}: stale slots are seen", runs and runs[0]["stale_reads"] > 0 and runs[0]["errors"] > 0)
    for args, want in ((["--moe-chunk", "100", "--moe-ring", "100"], "two chunks"), (["--moe-gpu", "fast"], "COPY:FORWARD:SEEus"),
                       (["--moe-phase", "reduce"], "combine"), (["--moe-skew", "-1"], "from 0"), (["--size", "1M"], "--moe-chunk"),
                       (["--fabric", "nodes=1"], "2 to 64"), (["--moe-tokens", "0"], "from 1")):
        status, _, err = bench("moe", *args)
        check(f"moe {' '.join(args)} is refused", status == 2 and want in err, f"status {status}\n{err}")


def main():
    test_validator()
    test_agreement()
    test_repeats()
    test_compare()
    test_atomic()
    test_engines()
    test_sweep()
    test_wrong_use()
    test_bad_fabric()
    test_faults()
    test_atomics()
    test_moe()
    test_moe_more()
    TAP.done()


if __name__ == "__main__":
    main()
