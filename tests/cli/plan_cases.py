# SPDX-License-Identifier: Apache-2.0
"""plan_cases.py - machines of the field and the ports that each of their GPUs must get. Tables only; test_plan.py asks."""


def ports_of(text):
    """"0:mlx5_0 1:mlx5_1+mlx5_2" -> {"GPU0": ["mlx5_0:1"], ...}; "0-3:mlx5_0" for several GPUs alike."""
    table = {}
    for item in text.split():
        gpus, _, ports = item.partition(":")
        first, _, last = gpus.partition("-")
        for gpu in range(int(first), int(last or first) + 1):
            table[f"GPU{gpu}"] = [p if p.count(":") in (1, 3) else p + ":1" for p in ports.split("+") if p]
    return table


def one_each(form, count=8):
    return " ".join(f"{i}:{form % i}" for i in range(count))


CASES = {
    "T01": {"files": ["topo-dgxa100-8gpu-10nic.txt"], "status": 0, "ports": one_each("mlx5_%d"), "unused": "mlx5_8:1 mlx5_9:1",
            "class": {"GPU0": "PXB", "GPU7": "PXB"}, "notes": ["not known from this source"]},
    "T03": {"files": ["topo-h100-8gpu-8nic-1to1.txt"], "status": 0, "ports": one_each("mlx5_%d"), "class": {"GPU5": "PIX"}},
    "T05": {"files": ["topo-a800-8gpu-8bond-2to2.txt"], "status": 0, "ports": one_each("mlx5_bond_%d"),
            "notes": ["one QP uses one of its links"]},
    "T07": {"files": ["topo-oci-a100-8gpu-18nic.txt"], "status": 0,
            "ports": "0:mlx5_5+mlx5_6 1:mlx5_7+mlx5_8 2:mlx5_1+mlx5_2 3:mlx5_3+mlx5_4 4:mlx5_14+mlx5_15 5:mlx5_16+mlx5_17 "
                     "6:mlx5_9+mlx5_10 7:mlx5_11+mlx5_12",
            "unused": "mlx5_0:1 mlx5_13:1"},
    "T09": {"files": ["topo-h20-8gpu-4nic-roce.txt"], "status": 1,
            "ports": "0-1:mlx5_bond_0 2-3:mlx5_bond_1 4-5:mlx5_bond_2 6-7:mlx5_bond_3",
            "class": {"GPU0": "NODE", "GPU1": "PIX", "GPU2": "NODE", "GPU3": "PIX", "GPU4": "PIX", "GPU6": "PIX"}},
    # The matrix alone gives GPU0 and GPU4 three ports each; what cannot be opened is known from ibv_devinfo.
    "T12": {"files": ["topo-h100-8gpu-12nic-mp-triplepix.txt", "ibv-devinfo-h100-12nic-8visible.txt"], "status": 0,
            "ports": "0:mlx5_0 1:mlx5_3 2:mlx5_4 3:mlx5_5 4:mlx5_6 5:mlx5_9 6:mlx5_10 7:mlx5_11",
            "unused": "mlx5_1:1 mlx5_2:1 mlx5_7:1 mlx5_8:1"},
    "T12 without ibv_devinfo": {"files": ["topo-h100-8gpu-12nic-mp-triplepix.txt"], "status": 0,
                                "ports": "0:mlx5_0+mlx5_1+mlx5_2 1:mlx5_3 2:mlx5_4 3:mlx5_5 4:mlx5_6+mlx5_7+mlx5_8 5:mlx5_9 "
                                         "6:mlx5_10 7:mlx5_11"},
    # All NODE: nothing to go by, so six ports are divided among four, and it is said that this is no answer.
    "T14": {"files": ["topo-gb200-4gpu-6nic-ansi.txt"], "status": 1,
            "ports": "0:mlx5_0+mlx5_1 1:mlx5_2+mlx5_3 2:mlx5_4 3:mlx5_5", "notes": ["it tells nothing of where they are"]},
    "T16": {"files": ["topo-a100-1gpu-5bond-container.txt"], "status": 0, "ports": "0:mlx5_bond_3", "class": {"GPU0": "PXB"}},
    "T18": {"files": ["topo-sr680a-8gpu-11nic-rocep.txt"], "status": 0,
            "ports": "0:rocep25s0f0 1:rocep42s0f0 2:rocep59s0f0 3:rocep76s0f0 4:rocep155s0f0 5:rocep171s0f0 6:rocep193s0f0 "
                     "7:rocep203s0f0",
            "unused": "rocep90s0f0:1 rocep90s0f1:1 rocep216s0f0:1"},
    "T20": {"files": ["topo-a800-8gpu-2nic-gluedcol.txt"], "status": 1, "ports": "0-3:mlx5_0 4-7:mlx5_1",
            "notes": ["NUMA affinity of 4 GPUs runs into their CPUs", "by up to 4 GPUs"]},
    "T21": {"files": ["topo-b300-8gpu-8bond-cx8.txt"], "status": 0, "ports": one_each("mlx5_bond_%d"),
            "notes": ["the rate that its port reports may be that of one link"]},
    "T23": {"files": ["topo-a100-4gpu-2nic-oldformat.txt"], "status": 1, "ports": "0-1:mlx5_0 2-3:mlx5_1",
            "class": {"GPU0": "SYS", "GPU1": "PIX", "GPU2": "PIX", "GPU3": "SYS"}},
    # Of the two answers allowed: one port a GPU, not both for all.
    "T25": {"files": ["topo-4090-8gpu-2nic-allsys.txt"], "status": 1,
            "ports": "0:NIC0 1:NIC1 2:NIC0 3:NIC1 4:NIC0 5:NIC1 6:NIC0 7:NIC1", "class": {"GPU6": "PHB", "GPU7": "SYS"}},
    # Of the two answers allowed: GPU2 has one port, so that each port has at most one GPU more than the other.
    "T26": {"files": ["topo-a100-3gpu-2nic-phb.txt"], "status": 1, "ports": "0:mlx5_0 1:mlx5_1 2:mlx5_0",
            "class": {"GPU0": "NODE", "GPU2": "PHB"}},
    "T27": {"files": ["topo-h100-8gpu-4nic-phb-partial.txt"], "status": 1,
            "ports": "0:NIC0 1:NIC1 2:NIC0 3:NIC1 4:NIC2 5:NIC3 6:NIC2",
            "notes": ["the row of GPU7 is missing", "the NIC legend is missing", "rows of devices are missing"]},
    "T29": {"files": ["topo-h20-vm-8gpu-8nic-pix-phb.txt"], "status": 0, "ports": one_each("NIC%d"),
            "notes": ["is a range"]},
    "X01": {"files": ["ncclxml-oci-h100-16port.xml"], "status": 0,
            "ports": "0:mlx5_0+mlx5_1 1:mlx5_3+mlx5_4 2:mlx5_5+mlx5_6 3:mlx5_7+mlx5_8 4:mlx5_9+mlx5_10 5:mlx5_12+mlx5_13 "
                     "6:mlx5_14+mlx5_15 7:mlx5_16+mlx5_17",
            "class": {"GPU0": "PXB"}, "notes": ["is a label"]},
    "X04": {"files": ["ncclxml-azure-ndv4.xml"], "status": 0, "ports": "",
            "class": {"GPU0": "PIX"}},
    "X05": {"files": ["ncclxml-azure-ndv5.xml"], "status": 0, "ports": ""},
    "X06": {"files": ["ncclxml-azure-ndv2.xml"], "status": 1, "ports": "0-7:0101:00:00.0",
            "class": {"GPU0": "PHB", "GPU3": "PHB", "GPU4": "SYS"}, "notes": ["by up to 8 GPUs"]},
    "X09 nccl": {"files": ["ncclxml-aws-p4d.xml"], "status": 0,
                 "ports": "0-1:rdmap16s27 2-3:rdmap32s27 4-5:rdmap144s27 6-7:rdmap160s27", "class": {"GPU0": "PIX"},
                 "notes": ["neither RC nor atomics"]},
    "X09 hwloc": {"files": ["hwloc-aws-p4d.24xl.xml"], "status": 0,
                  "ports": "0-1:rdmap16s27 2-3:rdmap32s27 4-5:rdmap144s27 6-7:rdmap160s27", "class": {"GPU0": "PHB"},
                  "notes": ["neither RC nor atomics"]},
    "X10": {"files": ["hwloc-aws-p5.48xl.xml"], "status": 0,
            "ports": " ".join(f"{g}:" + "+".join(f"rdmap{b + i}s0" for i in range(4))
                              for g, b in enumerate((79, 96, 113, 130, 147, 164, 181, 198)))},
    "X10 first two": {"files": ["hwloc-aws-p5.48xl.xml"], "status": 0, "args": ["--ports-per-gpu", "2"],
                      "ports": " ".join(f"{g}:" + "+".join(f"rdmap{b + i}s0" for i in range(2))
                                        for g, b in enumerate((79, 96, 113, 130, 147, 164, 181, 198))),
                      "unused": "rdmap81s0:1 rdmap201s0:1"},
    "X13": {"files": ["hwloc-aws-g6.48xl.xml"], "status": 1, "ports": "0-7:rdmap150s0",
            "class": {"GPU0": "NODE", "GPU3": "NODE", "GPU4": "SYS"}},
    # Small files of the same shapes.
    "as X01": {"files": ["nccl-two-switches.xml"], "status": 0, "ports": "0:mlx5_0+mlx5_1 1:mlx5_2", "class": {"GPU0": "PXB"},
               "notes": ["is a label", "may be what NCCL should believe"]},
    "as X04": {"files": ["nccl-file-order.xml"], "status": 0, "class": {"GPU0": "PIX"},
               "ports": "0:0101:00:00.0 1:0103:00:00.0 2:0104:00:00.0 3:0102:00:00.0"},
    "as X06": {"files": ["nccl-one-nic.xml"], "status": 1, "ports": "0-2:0101:00:00.0",
               "class": {"GPU0": "PHB", "GPU1": "PHB", "GPU2": "SYS"}},
    "as X09, NCCL": {"files": ["nccl-efa.xml"], "status": 0, "ports": "0-1:rdmap16s27", "class": {"GPU0": "PIX"},
                     "notes": ["neither RC nor atomics"]},
    "as X09, hwloc": {"files": ["hwloc-two-bridges.xml"], "status": 0, "ports": "0-1:rdmap16s27 2-3:rdmap32s27",
                      "class": {"GPU0": "PHB"}, "notes": ["neither RC nor atomics"]},
    "as X10": {"files": ["hwloc-four-ports.xml"], "status": 0, "class": {"GPU0": "PIX"},
               "ports": " ".join(f"{g}:" + "+".join(f"rdmap{b + i}s0" for i in range(4)) for g, b in enumerate((67, 99, 131)))},
    "as X13": {"files": ["hwloc-far.xml"], "status": 1, "ports": "0-1:rdmap133s0", "class": {"GPU0": "NODE", "GPU1": "SYS"}},
}
for _name in ("X04", "X05"):
    CASES[_name]["ports"] = " ".join(f"{i}:{0x0101 + i:04x}:00:00.0" for i in range(8))


def same(kind, dev):
    """What ports of a made-up host have in common."""
    return [dict(kind, dev=d) for d in dev.split()]


IB = {"state": "ACTIVE", "link": "InfiniBand", "gbps": 400}
ETH = {"state": "ACTIVE", "link": "Ethernet", "gbps": 400}


def gpus(count):
    return [{"name": f"GPU{i}"} for i in range(count)]


def near(*rows):
    """"PIX SYS" a row."""
    return [row.split() for row in rows]


def own(count, ports, mine="PIX", other="SYS"):
    """A row for each GPU: of ports, in blocks, its own and others."""
    each = len(ports) // count
    return near(*[" ".join(mine if i // each == g else other for i in range(len(ports))) for g in range(count)])


def host(count, ports, rows):
    return {"gpus": gpus(count), "ports": ports, "near": rows}


def pairs(names, mine="PIX"):
    """Two GPUs for each port, or for each two of more."""
    each = len(names) // 2
    return near(*[" ".join(mine if i // each == g // 2 else "SYS" for i in range(len(names))) for g in range(4)])


SLOW = dict(IB, gbps=25)
R12 = [dict(IB, dev=f"mlx5_{i}", gbps=25 if i > 7 else 200, state="DOWN" if i in (0, 2, 4, 6) else "ACTIVE") for i in range(10)]
R14 = {"a": ("mlx5_0 mlx5_3 mlx5_5 mlx5_8", "mlx5_1 mlx5_2"), "b": ("mlx5_0 mlx5_1 mlx5_4 mlx5_5", "mlx5_2 mlx5_3")}
R27 = [{"port": i, "index": 3, "v2": True, "gid": f"{0:020x}ffff0a00{i:02x}05"} for i in range(8)]
R61 = [("mlx5_0", IB), ("mlx5_1", ETH), ("mlx5_2", dict(ETH, state="DOWN")), ("mlx5_3", IB), ("mlx5_4", IB), ("mlx5_5", IB),
       ("mlx5_6", IB), ("mlx5_7", ETH), ("mlx5_8", dict(ETH, state="DOWN")), ("mlx5_9", IB), ("mlx5_10", IB), ("mlx5_11", IB)]
R61_OWN = [0, 3, 4, 5, 6, 9, 10, 11]

# A dual-port 200 Gb/s card in a x8 slot of 16 GT/s, which carries 126 Gb/s, and one in a x16 slot of 32; near none of five GPUs.
NARROW = {"pci": [{"pci": "pci0000:10"}, {"pci": "pci0000:20"}, {"pci": "pci0000:30"},
                  {"pci": "0000:20:01.0", "parent": 1}, {"pci": "0000:21:00.0", "parent": 3, "width": 8, "speed": 16000},
                  {"pci": "0000:21:00.1", "parent": 3, "width": 8, "speed": 16000},
                  {"pci": "0000:30:01.0", "parent": 2}, {"pci": "0000:31:00.0", "parent": 6, "width": 16, "speed": 32000},
                  {"pci": "0000:31:00.1", "parent": 6, "width": 16, "speed": 32000}] +
                 [{"pci": f"0000:1{g}:00.0", "parent": 0} for g in range(1, 6)],
          "gpus": [{"pci": f"0000:1{g}:00.0", "node": 8 + g} for g in range(1, 6)],
          "ports": [dict(IB, gbps=200, dev=f"mlx5_{i}", node=n) for i, n in enumerate((4, 5, 7, 8))]}

PAIR = near(*[" ".join("PIX" if g // 2 == i else "SYS" for i in range(4)) for g in range(8)])

HOSTS = {
    "R01 host 1": {"status": 0, "ports": "0-1:mlx5_0 2-3:mlx5_1 4-5:mlx5_6 6-7:mlx5_7",
                   "host": host(8, same(IB, "mlx5_0 mlx5_1 mlx5_6 mlx5_7"),
                                PAIR)},
    "R01 host 2": {"status": 0, "ports": "0-1:mlx5_0 2-3:mlx5_5 4-5:mlx5_6 6-7:mlx5_9",
                   "host": host(8, same(IB, "mlx5_0 mlx5_5 mlx5_6 mlx5_9"),
                                PAIR)},
    "R03": {"status": 0, "ports": "0:mlx5_0+mlx5_1 1:mlx5_2+mlx5_3 2:mlx5_6+mlx5_7 3:mlx5_8+mlx5_9",
            "host": host(4, same(IB, "mlx5_0 mlx5_1 mlx5_2 mlx5_3 mlx5_6 mlx5_7 mlx5_8 mlx5_9"), pairs("01236789", "PXB"))},
    "R05": {"status": 0, "ports": " ".join(f"{i}:roce_rail{i + 1}" for i in range(8)),
            "host": host(8, same(ETH, " ".join(f"roce_rail{i + 1}" for i in range(8))), own(8, range(8)))},
    "R09": {"status": 0, "ports": "0:mlx5_10", "args": ["--only", "^mlx5_1"], "unused": "mlx5_1:1",
            "host": host(1, same(IB, "mlx5_1 mlx5_10"), near("PIX PIX"))},
    "R11": {"status": 0, "ports": one_each("mlx5_%d", 4), "class": {"GPU0": "PIX"},
            "host": host(4, same(IB, "mlx5_0 mlx5_1 mlx5_2 mlx5_3"), own(4, range(4)))},
    "R11 by a map": {"status": 1, "args": ["--map", "GPU0=mlx5_0,mlx5_1"], "notes": ["several classes"],
                     "ports": "0:mlx5_0+mlx5_1 1:mlx5_1 2:mlx5_2 3:mlx5_3",
                     "host": host(4, same(IB, "mlx5_0 mlx5_1 mlx5_2 mlx5_3"), own(4, range(4)))},
    "R12": {"status": 0, "ports": "0:mlx5_1 1:mlx5_3 2:mlx5_5 3:mlx5_7", "unused": "mlx5_0:1 mlx5_6:1 mlx5_8:1 mlx5_9:1",
            "host": host(4, R12, [row + ["PHB", "PHB"] for row in own(4, range(8))])},
    "R12 nothing nearer": {"status": 0, "ports": "0:mlx5_1+mlx5_3+mlx5_5+mlx5_7", "unused": "mlx5_8:1 mlx5_9:1",
                           "host": host(1, R12, near(" ".join(["PHB"] * 10)))},
    "R22": {"status": 0, "ports": "0:mlx5_2 1:mlx5_3", "unused": "mlx5_0:1 mlx5_1:1",
            "host": host(2, same(dict(ETH, mtu=1024), "mlx5_0") + same(dict(ETH, state="DOWN"), "mlx5_1") +
                         same(IB, "mlx5_2 mlx5_3"), near("PIX PIX PIX SYS", "SYS SYS SYS PIX"))},
    "R27": {"status": 0, "ports": one_each("mlx5_%d"), "explain": ["mlx5_0:1.*GID 3 10.0.0.5", "mlx5_7:1.*GID 3 10.0.7.5"],
            "host": dict(host(8, same(ETH, " ".join(f"mlx5_{i}" for i in range(8))), own(8, range(8), "PIX", "NODE")), gids=R27)},
    "R30": {"status": 0, "ports": "0:mlx5_1", "unused": "mlx5_0:1",
            "host": host(1, [dict(IB, dev="mlx5_0", unstable=True), dict(IB, dev="mlx5_1")], near("PIX PIX"))},
    "R30 alone": {"status": 0, "ports": "0:mlx5_0",
                  "host": host(1, [dict(IB, dev="mlx5_0", unstable=True), dict(IB, dev="mlx5_1")], near("PIX SYS"))},
    "R36": {"status": 0, "ports": "0:mlx5_bond_0", "notes": ["at least two"],
            "args": ["--peers", "127"],
            "explain": [r"mlx5_bond_0:1 .* 508: GPU0", "bond0 of 2 wires, 2 lanes to each peer, 8 where QPs cannot choose a wire"],
            "host": host(1, [dict(ETH, dev="mlx5_bond_0", bond="bond0", wires=2)], near("PIX"))},
    "a bond of one link that is up": {
        "status": 0, "ports": "0:mlx5_bond_0", "explain": ["bond0 of 1 wire: used by"],
        "host": host(1, [dict(ETH, dev="mlx5_bond_0", bond="bond0", wires=1)], near("PIX"))},
    "R45": {"status": 0, "ports": "0-1:mlx5_0", "args": ["--peers", "127"], "explain": [r"mlx5_0:1 .* 508: GPU0 GPU1"],
            "host": host(2, same(IB, "mlx5_0"), near("PIX", "PIX"))},
    "R59": {"status": 0, "ports": "0:mlx5_0", "unused": "siw_eth0:1 rxe0:1",
            "host": host(1, same(ETH, "mlx5_0") + same(dict(ETH, software=True), "siw_eth0 rxe0"), near("PIX SYS SYS"))},
    "R59 asked for": {"status": 1, "ports": "0:rxe0", "args": ["--only", "rxe0"],
                      "host": host(1, same(ETH, "mlx5_0") + same(dict(ETH, software=True), "siw_eth0 rxe0"), near("PIX SYS SYS"))},
    "R61": {"status": 0, "ports": " ".join(f"{g}:{R61[i][0]}" for g, i in enumerate(R61_OWN)),
            "unused": "mlx5_1:1 mlx5_2:1 mlx5_7:1 mlx5_8:1",
            "host": host(8, [dict(kind, dev=d) for d, kind in R61],
                         near(*[" ".join("PIX" if i == g or R61[i][1]["link"] == "Ethernet" else "NODE" for i in range(12))
                                for g in R61_OWN]))},
    "a virtual function beside its own": {
        "status": 0, "ports": "0:mlx5_0", "unused": "mlx5_1:1",
        "host": {"pci": [{"pci": "pci0000:10"}, {"pci": "0000:10:01.0", "parent": 0}, {"pci": "0000:11:00.0", "parent": 1},
                         {"pci": "0000:11:00.1", "parent": 1}, {"pci": "0000:12:00.0", "parent": 0}],
                 "gpus": [{"pci": "0000:12:00.0", "node": 4}],
                 "ports": [dict(IB, dev="mlx5_0", node=2), dict(IB, dev="mlx5_1", node=3, physical="0000:11:00.0")]}},
    "a narrow slot counts": {
        "status": 1, "notes": ["0000:21:00.0", "it is one budget"], "ports": "0:mlx5_0 1:mlx5_2 2:mlx5_3 3:mlx5_1 4:mlx5_2",
        "host": NARROW},
    "a port that fewer could use comes first": {
        "status": 1, "ports": "0:mlx5_2 1:mlx5_0+mlx5_1",
        "host": host(2, same(IB, "mlx5_0 mlx5_1 mlx5_2"), near("NODE NODE NODE", "PIX PIX SYS"))},
    "a table that is no tree": {
        "status": 1, "ports": "0:b 1:a 2:b 3:c 4:c 5:d 6:a",
        "host": host(7, same(IB, "a b c d"), near("PHB PHB SYS SYS", "PHB PHB SYS SYS", "SYS PIX SYS SYS", "SYS SYS PHB PHB",
                                                  "SYS SYS PHB PHB", "SYS SYS SYS PIX", "NODE SYS NODE SYS"))},
    "all share all": {"status": 0, "args": ["--share", "all"], "ports": "0:mlx5_0+mlx5_1 1:mlx5_1+mlx5_0",
                      "host": host(2, same(IB, "mlx5_0 mlx5_1"), near("PIX PIX", "PIX PIX"))},
    "a limit": {"status": 1, "args": ["--limit", "PHB"], "ports": "0:mlx5_0 1:", "notes": ["GPU1 has no port"],
                "host": host(2, same(IB, "mlx5_0"), near("PIX", "SYS"))},
    "a link layer": {"status": 0, "args": ["--link", "ethernet"], "ports": "0:mlx5_2", "unused": "mlx5_0:1 mlx5_1:1",
                     "host": host(1, same(IB, "mlx5_0 mlx5_1") + same(ETH, "mlx5_2"), near("PIX PIX PIX"))},
    "no port": {"status": 1, "ports": "0:", "notes": ["no RDMA port", "GPU0 has no port"], "host": host(1, [], [[]])},
}
for _name, (_fast, _slow) in R14.items():
    HOSTS[f"R14 {_name}"] = {
        "status": 0, "ports": " ".join(f"{g}:{d}" for g, d in enumerate(_fast.split())),
        "host": host(4, same(ETH, _fast) + same(dict(ETH, gbps=200), _slow.split()[0]) + same(dict(ETH, gbps=25), _slow.split()[1]),
                     [row + ["NODE", "PIX"] for row in own(4, range(4), "PIX", "NODE")])}
