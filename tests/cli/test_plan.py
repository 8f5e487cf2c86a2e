#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_plan.py - `braid plan` over machines of the field (tests/golden): their tables, what is said, how it ends.

  test_plan.py BRAID [SANITIZER]     prints TAP; SANITIZER: that BRAID is built with, "none" where with none

With BRAID_CASES=DIR the same tables are asked of the files of that folder too, of which some are not in the tree.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from json_schema import against
from plan_cases import CASES, HOSTS, one_each, ports_of
from tap import Tap

BRAID = sys.argv[1]
SANITIZED = len(sys.argv) > 2 and sys.argv[2] != "none"
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
TAP = Tap()
check = TAP.holds


def plan(*args, text=None):
    """Runs `braid plan`: (status, stdout, stderr)."""
    done = subprocess.run([BRAID, "plan", *args], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def table(out):
    """GPU -> list of ports, of the JSON form."""
    return {g["gpu"]: [p["port"] for p in g["ports"]] for g in json.loads(out)["gpus"]}


def golden(name):
    return os.path.join(HERE, name)


def is_case(name, case, folder, where):
    files = [os.path.join(folder, f) for f in case["files"]]
    status, out, err = plan(*files, "--json", *case.get("args", []))
    said = f"status {status}\n{out}{err}"
    check(f"{name} {where}: exit status {case['status']}", status == case["status"], said)
    if status > 1:
        return
    got, answer = table(out), json.loads(out)
    expected = ports_of(case["ports"])
    check(f"{name} {where}: the table", got == expected, f"expected {expected}\n{said}")
    classes = {g["gpu"]: {p["class"] for p in g["ports"]} for g in answer["gpus"]}
    for gpu, near in case.get("class", {}).items():
        check(f"{name} {where}: {gpu} is {near}", classes.get(gpu) == {near}, said)
    for port in case.get("unused", "").split():
        check(f"{name} {where}: {port} is left, with a reason",
              any(u["port"] == port and u["why"] for u in answer["unused"]), said)
    for expression in case.get("explain", []):
        text = plan(*files, "--explain", *case.get("args", []))[1]
        check(f"{name} {where}: explains {expression!r}", re.search(expression, text), text)
    for text in case.get("notes", []):
        check(f"{name} {where}: says {text!r}", any(text in n for n in answer["notes"]), said)


def test_cases():
    others = os.environ.get("BRAID_CASES")
    for name, case in CASES.items():
        if all(os.path.exists(os.path.join(HERE, f)) for f in case["files"]):
            is_case(name, case, HERE, "here")
        elif not others:
            TAP.skip(f"{name}", "its files are not ours: BRAID_CASES=DIR")
        if others and all(os.path.exists(os.path.join(others, f)) for f in case["files"]):
            is_case(name, case, others, "in BRAID_CASES")


def test_hosts():
    """Made-up hosts, as JSON: what the field's reports say of the choice."""
    for name, case in HOSTS.items():
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump(dict(case["host"], schema="braid.host/1"), f)
            f.flush()
            is_case(name, dict(case, files=[f.name]), "", "made up")


# ---- what pasting does to a table ----------------------------------------------------------------------------------------


def spaced(text):
    """Tabs as columns of 8, as terminals show them."""
    return "\n".join(line.expandtabs(8) for line in text.split("\n"))


HARMLESS = {
    "spaces for tabs": spaced,
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "escape sequences": lambda text: text.replace("PIX", "\033[1;32mPIX\033[0m").replace("GPU0", "\033[4mGPU0\033[0m"),
    "quoted in a mail": lambda text: "\n".join("> " + line for line in text.split("\n")),
    "prose around": lambda text: "Hello,\nGPU0 and GPU1 are slow on this host:\n$ nvidia-smi topo -m\n" + text +
                                 "\n\nNIC0 is a 400G card. What do you think?\n",
    "a fence of Markdown": lambda text: "```\n" + text + "\n```\n",
    "empty lines": lambda text: text.replace("\nGPU", "\n\nGPU"),
    "spaces that do not break": lambda text: spaced(text).replace("  ", "\u00a0 "),
    "no rows of devices": lambda text: re.sub(r"^(NIC|mlx5_)\S*\s.*\n", "", text, flags=re.M),
    "no end": lambda text: text[:text.index("Legend:")] + "\n".join(re.findall(r"^ +NIC\d+: .*", text, re.M))
              if "Legend:" in text else text,
    "names run into cells": lambda text: re.sub(r"^(GPU\d+)\s+(?=X|NV|NODE|SYS|PIX)", r"\1", spaced(text), flags=re.M),
    "cells run together": lambda text: re.sub(r"(PIX|PXB|NODE|SYS) +(?=PIX|PXB|NODE|SYS)", r"\1", spaced(text), count=3),
    "no row of the last GPU": lambda text: drop_row(text, last_gpu(text)),
    "a cell gone, with tabs": lambda text: blank_cell(text),
}


def last_gpu(text):
    return re.findall(r"^GPU\d+", text, re.M)[-1]


def drop_row(text, name):
    return re.sub(rf"^{name}\s.*\n", "", text, flags=re.M)


def blank_cell(text):
    """The last class in the first GPU's row becomes nothing, where columns are tabs."""
    return re.sub(r"^(GPU0\t.*\t)(PIX|PXB|PHB|NODE|SYS)\t", r"\1\t", text, count=1, flags=re.M) if "\t" in text else text


DAMAGED = {
    "a cell gone, with spaces": (lambda text: re.sub(r"^(GPU0 .*?)(PIX|PXB|PHB|NODE|SYS) +", r"\1", spaced(text), count=1,
                                                     flags=re.M), r"line \d+, column \d+: seen \d+ cells"),
    "two rows that contradict": (lambda text: re.sub(r"^(NIC0\s+)(PIX|PXB|NODE|SYS|PHB)",
                                                     lambda m: m.group(1) + ("PIX" if m.group(2) != "PIX" else "SYS"), text,
                                                     count=1, flags=re.M), r"line \d+, column \d+: .*one of them is wrong"),
    "a word that is no class": (lambda text: re.sub(r"^(NIC\d+\s.*\n)+", "", re.sub(r"^(GPU0\s.*?)(PIX|PXB|PHB|NODE|SYS)", r"\1P1X",
                                                                                    text, count=1, flags=re.M), flags=re.M),
                                r"line \d+, column \d+: seen no class"),
    "the table twice": (lambda text: text + "\n" + text, r"line \d+, column 1: seen a second row"),
    "no header": (lambda text: "\n".join(text.split("\n")[1:]), r"line 1, column 1: seen no line that names GPUs"),
    "nothing": (lambda text: "", r"expected"),
}


def test_damage():
    """What does not matter changes nothing, or is said; what does is an error with its place."""
    for name in ("topo-oci-a100-8gpu-18nic.txt", "topo-h20-8gpu-4nic-roce.txt", "topo-h100-8gpu-8nic-1to1.txt",
                 "topo-a800-8gpu-2nic-gluedcol.txt"):
        with open(golden(name), encoding="utf-8") as f:
            text = f.read()
        expected = table(plan("-", "--json", text=text)[1])
        for what, change in HARMLESS.items():
            status, out, err = plan("-", "--json", text=change(text))
            check(f"{name}, {what}: the same table", status < 2 and table(out) == expected, change(text) + out + err)
        for what, (change, message) in DAMAGED.items():
            status, out, err = plan("-", "--json", text=change(text))
            check(f"{name}, {what}: refused with a reason", status == 2 and not out and re.search(message, err),
                  change(text) + out + err)


def test_schema():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "plan.schema.json"), encoding="utf-8") as f:
        schema = json.load(f)
    for files in ([golden("topo-dgxa100-8gpu-10nic.txt")], [golden("topo-h100-8gpu-4nic-phb-partial.txt")], []):
        out = plan(*files, "--json", "--sysroot", "/nosuch")[1]
        problems = against(json.loads(out), schema, schema)
        check(f"--json keeps to its schema ({files or 'live'})", not problems, "\n".join(problems))


def test_save():
    """A saved host is planned as the one that it was, and saved alike again; the environment file names addresses."""
    for name in ("topo-oci-a100-8gpu-18nic.txt", "topo-b300-8gpu-8bond-cx8.txt", "nccl-two-switches.xml", "hwloc-two-bridges.xml"):
        with tempfile.TemporaryDirectory() as folder:
            saved = os.path.join(folder, "host.json")
            first = plan(golden(name), "--json", "--save", saved)
            check(f"{name}: a saved host gives the same plan", plan(saved, "--json") == first, first)
            check(f"{name}: saving it again changes nothing",
                  plan(saved, "--save", "-")[1] == open(saved, encoding="utf-8").read())
    out = plan(golden("nccl-two-switches.xml"), "--env")[1]
    check("--env maps addresses to ports", "BRAID_MAP='0000:1b:00.0=mlx5_0:1,mlx5_1:1;0000:2b:00.0=mlx5_2:1'" in out, out)
    out = plan(golden("topo-a100-1gpu-5bond-container.txt"), "--env")[1]
    check("--env without addresses names GPUs", "BRAID_PORTS=mlx5_bond_3:1  # GPU0" in out and "BRAID_MAP" not in out, out)


def test_live():
    """This machine is an emulated host: what is read from its /sys gives the table that its fabric means."""
    if SANITIZED:  # its run-time must come first in a program, and `braid emu` preloads
        TAP.skip("live", f"braid is built with {sys.argv[2]}")
        return
    pairs = "0:mlx5_0+mlx5_1 1:mlx5_2+mlx5_3 2:mlx5_4+mlx5_5 3:mlx5_6+mlx5_7"
    for topo, ports, expected, near, wires in (("pix", 2, pairs, "PIX", 1), ("pxb", 2, pairs, "PXB", 1),
                                               ("pxb", 1, one_each("mlx5_%d", 4), "PXB", 1),
                                               ("pix", 1, one_each("mlx5_%d", 4), "PIX", 2)):
        fabric = f"nodes=1,gpus=4,ports={ports},topo={topo},rate=200G,wires={wires}"
        done = subprocess.run([BRAID, "emu", "--fabric", fabric, "--gpus", "--", BRAID, "plan", "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        said = f"status {done.returncode}\n{done.stdout}{done.stderr}"
        check(f"live, {fabric}: good", done.returncode == 0, said)
        answer = json.loads(done.stdout or '{"gpus": []}')
        got = {g["gpu"]: [p["port"] for p in g["ports"]] for g in answer["gpus"]}
        check(f"live, {fabric}: the table", got == ports_of(expected), said)
        check(f"live, {fabric}: classes, rates and wires",
              answer["gpus"] and all((p["class"], p["gbps"], p["wires"]) == (near, 200 * wires, wires) for g in answer["gpus"] for p in g["ports"]), said)


def test_watch():
    """A port that goes down while it is watched is left, as another is as near."""
    with tempfile.TemporaryDirectory() as root:
        def write(path, text):
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path + ".new"), "w", encoding="utf-8") as f:
                f.write(text)
            os.rename(os.path.join(root, path + ".new"), os.path.join(root, path))
        for n in range(2):
            pci = f"sys/devices/pci0000:10/0000:10:01.0/0000:11:00.{n}"
            write(f"{pci}/vendor", "0x15b3")
            for name, value in (("state", "4: ACTIVE"), ("link_layer", "InfiniBand"), ("rate", "400 Gb/sec (4X NDR)"),
                                ("counters/link_downed", "3")):
                write(f"sys/class/infiniband/mlx5_{n}/ports/1/{name}", value)
            os.symlink(os.path.join(root, pci), os.path.join(root, f"sys/class/infiniband/mlx5_{n}/device"))
        with subprocess.Popen([BRAID, "plan", "--json", "--sysroot", root, "--watch", "1"], stdout=subprocess.PIPE, text=True) as watching:
            downs = 3
            while watching.poll() is None:
                downs += 1
                write("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", str(downs))
                time.sleep(0.02)
            out = watching.stdout.read()
        answer = json.loads(out)
        check("--watch leaves a port that flaps", [p["port"] for p in answer["any"]] == ["mlx5_1:1"] and
              "comes and goes" in answer["unused"][0]["why"], out)


def test_use():
    for args in (["--nosuch"], ["--format", "x"], ["--ports-per-gpu", "0"], ["--share", "x"], ["--limit", "x"], ["--link", "x"],
                 ["--json", "--env"], ["/nosuch"], ["--format", "smi"], ["--only", ",", golden("topo-h100-8gpu-8nic-1to1.txt")],
                 ["--only", "=mlx5_0", golden("topo-h100-8gpu-8nic-1to1.txt")],
                 ["--only", "^mlx5_0,^mlx5_1", golden("topo-h100-8gpu-8nic-1to1.txt")], ["--watch", "1", "-"],
                 ["--map", "GPU0", golden("topo-h100-8gpu-8nic-1to1.txt")]):
        status, out, err = plan(*args)
        check(f"plan {' '.join(args)}: status 2 and a reason", status == 2 and "braid" in err and not out,
              f"status {status}\n{out}{err}")


def main():
    test_cases()
    test_hosts()
    test_damage()
    test_schema()
    test_save()
    test_live()
    test_watch()
    test_use()
    TAP.done()


if __name__ == "__main__":
    main()
