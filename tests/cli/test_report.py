#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_report.py - `braid report`: one whole page that needs nothing else, shows every run, and refuses what is no result.

  test_report.py BRAID        prints TAP. Where a headless Chromium is installed the page is also drawn, as wide as a phone.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from html.parser import HTMLParser

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Tap

BRAID = sys.argv[1]
TAP = Tap()
check = TAP.holds
VOID = {"meta", "br", "link", "img", "hr"}
RUNS = {
    "moe.json": ["moe", "--moe-tokens", "128", "--compare", "braid,release,2;braid,drain,2"],
    "tune.json": ["moe", "--moe-tokens", "64", "--moe-phase", "combine", "--tune"],
    "signal.json": ["signal", "--count", "30", "--size", "64K", "--compare", "braid,release,2;model:nic-rr,release,2"],
}


class Page(HTMLParser):
    """Whether tags match, what is asked for from elsewhere, and all text."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.asked, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.asked += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v and not v.startswith("#")]
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("script", "link", "iframe", "img"):
            self.asked.append(tag)

    def handle_endtag(self, tag):
        if tag in VOID or (self.open and self.open[-1] == tag):
            self.open[-1:] = [] if tag not in VOID else self.open[-1:]
        else:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def report(*args, stdin=None):
    done = subprocess.run([BRAID, "report", *args], capture_output=True, text=True, check=False, input=stdin)
    return done.returncode, done.stdout, done.stderr


def make(folder):
    """The results, as files."""
    for name, args in RUNS.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            subprocess.run([BRAID, "bench", *args, "--json"], stdout=f, check=True)
    return [os.path.join(folder, name) for name in RUNS]


def parse(text):
    page = Page()
    page.feed(text)
    page.close()
    return page


def test_page(folder):
    files, out = make(folder), os.path.join(folder, "page.html")
    status, _, err = report(*files, "-o", out)
    check("a page of three results", status == 0 and os.path.exists(out), err)
    with open(out, encoding="utf-8") as f:
        text = f.read()
    page = parse(text)
    shown = " ".join(page.text)
    check("its tags match", not page.open and not page.wrong, f"{page.open} {page.wrong}")
    check("it asks for nothing", not page.asked and "url(h" not in text and "@import" not in text, str(page.asked))
    check("it fits a phone", "width=device-width" in text)
    for name in files:
        with open(name, encoding="utf-8") as f:
            result = json.load(f)
        check(f"{os.path.basename(name)}: command line, seed, label", result["command"] in shown and "seed 1" in shown and result["label"] in shown)
        for run in result["runs"]:
            check(f"{os.path.basename(name)}: {run.get('phase', run['pattern'])} {run['engine']} {run['order']} chunk {run['signal_every']}",
                  f"{run['gbs']:.2f}" in shown and f"{100 * run['fraction']:.1f} %" in shown)
    for part in ("Where the time went", "Payload of each port", "Rate of each port over time", "GB/s by chunk", "stale slots", "delay p50", "Delays",
                 "Delays of signals"):
        check(f"it has: {part}", part in shown)
    check("plots are inside", text.count("<svg") == text.count("</svg>") >= 6)
    return out, files


def test_hostile(folder, file):
    """What results say is text, not page."""
    with open(file, encoding="utf-8") as f:
        result = json.load(f)
    evil = "</code><script>alert(1)</script>'\"&"
    result.update(command=evil, label=evil)
    result["fabric"]["spec"] = evil
    for run in result["runs"]:
        run.update(engine=evil, order=evil, port_bytes=[{"host": evil, "port": evil, "tx": 1e30, "rx": -5}])
        run["latency_us"] = {"p50": 1, "p99": 2, "count": 3, "histogram": [[evil, 1], [-1, 2], 7, [0, 1e300], [5, 1], [None]]}
        if "moe" in run:
            run["moe"]["timeline"]["ports"][0]["port"] = evil + "\nset output '/nonexistent/x'\n"
    status, out, err = report("-", "-o", "-", stdin=json.dumps(result))
    page = parse(out)
    check("words of a result are shown as text", status == 0 and "<script" not in out and "script" not in page.asked and not page.wrong, err)


def test_wrong(folder, file):
    bad = os.path.join(folder, "bad.json")
    out = os.path.join(folder, "none.html")
    for name, text, want in (("no JSON", "{", "line 1"), ("another schema", '{"schema": "x", "runs": [{}]}', "braid.bench/1"),
                             ("no runs", '{"schema": "braid.bench/1", "runs": []}', "with runs"), ("a number", "[3]", "braid.bench/1"),
                             ("runs that are numbers", '{"schema": "braid.bench/1", "runs": [1, 2]}', "with runs")):
        with open(bad, "w", encoding="utf-8") as f:
            f.write(text)
        status, _, err = report(bad, "-o", out)
        check(f"{name}: refused, nothing written", status == 1 and want in err and not os.path.exists(out), f"{status} {err}")
    for name, runs in (("empty runs", [{}, {}]), ("words for numbers", [{"gbs": "x", "moe": [], "port_bytes": 7, "latency_us": {"histogram": 3}}])):
        status, text, err = report("-", "-o", "-", stdin=json.dumps({"schema": "braid.bench/1", "runs": runs}))
        check(f"{name}: a page all the same", status == 0 and "</html>" in text, err)
    for args in ([file], ["-o", out], ["--nosuch"], []):
        status, _, err = report(*args)
        check(f"report {' '.join(args) or 'alone'} is used wrongly", status == 2 and "expected" in err, f"{status} {err}")
    status, _, err = report(file, "-o", "/nosuch/page.html")
    check("a place that is none", status == 1 and "/nosuch/page.html" in err, err)


def pixels(png):
    """Width, and how many rows of a PNG of 8-bit RGB(A) differ from its first byte somewhere, unfiltered or not."""
    at, data, width = 8, b"", 0
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width = struct.unpack(">I", png[at + 8:at + 12])[0]
            step = width * (4 if png[at + 17] == 6 else 3) + 1
        data += png[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    raw = zlib.decompress(data)
    return width, sum(1 for i in range(0, len(raw), step) if len(set(raw[i + 1:i + step])) > 4)


def test_screenshot(folder, page):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        TAP.skip("the page as a phone draws it", "no Chromium here")
        return
    shot = os.path.join(folder, "shot.png")
    subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=390,2400",
                    f"--user-data-dir={folder}/chromium", f"--screenshot={shot}", "file://" + page], capture_output=True, timeout=100, check=False)
    width, rows = 0, 0
    if os.path.exists(shot):
        with open(shot, "rb") as f:
            width, rows = pixels(f.read())
    check("the page as a phone draws it", width == 390 and rows > 600, f"{width} wide, {rows} rows that are not blank")


def main():
    with tempfile.TemporaryDirectory() as folder:
        page, files = test_page(folder)
        test_hostile(folder, files[0])
        test_wrong(folder, files[2])
        test_screenshot(folder, page)
    TAP.done()


if __name__ == "__main__":
    main()
