# SPDX-License-Identifier: Apache-2.0
"""plan_cases.py - machines of the field and the ports that each of their GPUs must get. Tables only; test_plan.py asks."""


def ports_of(text):
    """"0:mlx5_0 1:mlx5_1+mlx5_2" -> {"GPU0": ["mlx5_0:1"], ...}; "0-3:mlx5_0" for several GPUs alike."""
    table = {}
    for item in text.split():
        gpus, _, ports = item.partition(":")
        first, _, last = gpus.partition("-")
        for gpu in range(int(first), int(last or first) + 1):
            table[f"GPU{gpu}"] = [p if p.count(":") in (1, 3) else p + ":1" for p in ports.split("+")]
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


HOSTS = {
}
