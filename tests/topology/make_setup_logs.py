#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the set-up logs of a job of SHAPE x NODES in NCCL's formats, one file a rank; --fault puts one thing wrong.

    make_setup_logs.py OUT --shape h100 --nodes 2 [--fault shm] [--only 0,9] [--peers N] [--one-file]
"""
import argparse
import os

from cluster_shape import SHAPES, ring_of_node, tree_of_node

FAULTS = ["none", "ring-broken", "ring-reenters", "rails-crossed", "crossed-on-purpose", "nic-idle", "nic-missing", "shm", "net-in-node", "no-gdr", "pxn-off",
          "far-nic", "no-ll128", "no-nvls", "nvls-not-connected", "simple-order", "lowered", "few-channels", "scattered", "unlike", "socket", "storage-nic"]


class Job:
    def __init__(self, shape, nodes, fault, peers):
        self.shape, self.nodes, self.fault, self.peers = shape, nodes, fault, peers
        if fault == "nvls-not-connected":  # later releases connect at first use, so that nothing is missing
            shape.version, shape.connects_late = "2.21.5+cuda12.4", False
        self.ranks = nodes * 8
        self.graph_channels = shape.graph_channels
        if fault == "nic-missing":
            self.graph_channels = shape.graph_channels - 1  # what all agree on
        self.agreed_bw = shape.bw / 2 if fault == "lowered" else shape.bw
        if fault == "simple-order":
            self.graph_channels, self.agreed_bw = 1, 0.1
        self.channels = 2 * self.graph_channels
        if fault == "few-channels":
            self.channels = 4
        self.odd_node = nodes - 1  # where a fault of one node sits
        self.rings = [self.ring(c) for c in range(self.channels)]
        self.place = [{rank: i for i, rank in enumerate(ring)} for ring in self.rings]

    def node_of(self, rank):
        return rank % self.nodes if self.fault == "scattered" else rank // 8

    def gpu_of(self, rank):
        return rank // self.nodes if self.fault == "scattered" else rank % 8

    def rank_of(self, node, gpu):
        return gpu * self.nodes + node if self.fault == "scattered" else node * 8 + gpu

    def host(self, node):
        return "gpu%03d" % node

    def nic_of(self, channel, node):
        nic = channel % self.graph_channels % 8
        if self.fault == "nic-idle":
            return nic % 4
        if self.fault == "nic-missing" and nic >= 5 and node == self.odd_node:
            return nic  # numbers behind the missing one move up; the rail is the same
        if self.fault == "far-nic":
            return (nic + 4) % 8  # below the other socket
        return nic

    def ring(self, channel):
        order = ring_of_node(self.shape, channel % self.graph_channels)
        if self.fault == "simple-order":
            order = list(range(8))
        ranks = [self.rank_of(node, gpu) for node in range(self.nodes) for gpu in order]
        if self.fault == "ring-reenters":
            half = [self.rank_of(0, gpu) for gpu in order[4:]]
            ranks = [rank for rank in ranks if rank not in half]
            ranks = ranks[:8] + half + ranks[8:]  # node 0, node 1, node 0 again, node 1 again, ...
        return ranks

    def neighbours(self, channel, rank):
        ring, at = self.rings[channel], self.place[channel][rank]
        return ring[at - 1], ring[(at + 1) % len(ring)]

    # How `rank` reaches `peer` on this channel; `sends` tells whose side of it is printed.
    def via(self, rank, peer, channel, sends, p2p=False):
        near, far = (rank, peer) if sends else (peer, rank)
        if self.node_of(near) == self.node_of(far):
            if self.fault == "shm" and {self.gpu_of(near), self.gpu_of(far)} == {4, 5} and self.node_of(near) == self.odd_node:
                return "SHM/direct/direct"
            if self.fault == "net-in-node" and {self.gpu_of(near), self.gpu_of(far)} == {4, 5} and self.node_of(near) == self.odd_node:
                return ("[send] " if sends else "[receive] ") + "via NET/IB/4/GDRDMA"
            return "P2P/CUMEM" if self.shape.nvls else "P2P/IPC/read"
        side = self.node_of(rank)
        if self.fault == "socket":
            return ("[send] " if sends else "[receive] ") + "via NET/Socket/0"
        nic = self.gpu_of(far) if p2p else self.nic_of(channel, side)
        if self.fault == "pxn-off" and p2p and sends:
            nic = self.gpu_of(near)
        if self.fault == "rails-crossed" and not sends and channel % self.graph_channels == 2:
            nic ^= 1
        if self.fault == "crossed-on-purpose" and not sends:
            nic ^= 1
        relay = ""
        apart = self.shape.switch_of(nic) != self.shape.switch_of(self.gpu_of(near))
        if sends and apart and (p2p or not self.shape.pair_of_gpus) and self.fault not in ("pxn-off", "far-nic", "simple-order", "nic-idle"):
            relay = "(%d)" % self.rank_of(side, nic)
        gdr = "" if self.fault in ("far-nic", "simple-order") or (self.fault == "no-gdr" and side == self.odd_node) else "/GDRDMA"
        return "%s via NET/IB/%d%s%s%s" % ("[send]" if sends else "[receive]", nic, relay, gdr, "/Shared" if p2p else "")

    def nics(self, node):
        names = list(self.shape.nics)
        if self.fault == "nic-missing" and node == self.odd_node:
            names.remove("mlx5_5")
        return names

    # === the hardware of one node
    def system(self, node):
        shape = self.shape
        pci = shape.pci_gbs / 2 if self.fault == "lowered" and node == self.odd_node else shape.pci_gbs
        names = self.nics(node)
        yield "=== System : maxBw %.1f totalBw %.1f ===" % (min(pci, shape.net_gbs), shape.nvlink_gbs)
        for cpu in (0, 1):
            yield "CPU/0-%d (1/1/2)" % cpu
            gpus = range(4 * cpu, 4 * cpu + 4)
            switches = sorted({shape.switch_of(gpu) for gpu in gpus})
            for switch in switches:
                yield "+ PCI[%.1f] - PCI/0-%x (1000c0301000100b)" % (pci, 0x10000 * (16 + switch))
                for gpu in [g for g in gpus if shape.switch_of(g) == switch]:
                    nvlink = shape.nvlink_gbs / 2 if self.fault == "unlike" and gpu == 5 and node == 0 else shape.nvlink_gbs
                    yield " " * 14 + "+ PCI[%.1f] - GPU/0-%s (%d)" % (pci, shape.buses[gpu], self.rank_of(node, gpu))
                    yield " " * 28 + "+ NVL[%.1f] - NVS/0-0" % nvlink
                for gpu in [g for g in gpus if shape.switch_of(g) == switch]:
                    if shape.nics[gpu] in names:
                        yield " " * 14 + "+ PCI[%.1f] - NIC/0-%x" % (pci, 0x10000 * (16 + switch) + 0x1000 * (4 + gpu))
                        yield " " * 28 + "+ NET[%.1f] - NET/0-%d (%x/1/%f)" % (shape.net_gbs, names.index(shape.nics[gpu]), 0xa0880003 + gpu, shape.net_gbs)
            if self.fault == "storage-nic" and cpu == 1:
                yield "+ PCI[12.0] - NIC/0-e6000"
                yield " " * 14 + "+ NET[3.1] - NET/0-8 (ba33/1/3.125000)"
            yield "+ SYS[10.0] - CPU/0-%d" % (1 - cpu)
        yield "=========================================="
        for gpu in range(8):
            row = "GPU/0-%s :" % shape.buses[gpu]
            for other in range(8):
                row += "GPU/0-%s (%s) " % (shape.buses[other], "0/5000.0/LOC" if other == gpu else "2/%.1f/NVL" % shape.nvlink_gbs)
            row += "NVS/0-0 (1/%.1f/NVL) CPU/0-%d (3/%.1f/PHB) CPU/0-%d (4/10.0/SYS) " % (shape.nvlink_gbs, gpu // 4, pci, 1 - gpu // 4)
            for index, name in enumerate(names):
                at = shape.nics.index(name)
                near = "4/%.1f/PXB" % min(pci, shape.net_gbs) if shape.switch_of(at) == shape.switch_of(gpu) else (
                    "5/%.1f/PXN" % min(pci, shape.net_gbs) if self.fault not in ("pxn-off", "far-nic") else ("6/%.1f/PHB" % pci if at // 4 == gpu // 4 else "7/10.0/SYS"))
                row += "NET/0-%d (%s) " % (index, near)
            yield row

    def row(self, channel, order, node):
        nic = self.nic_of(channel, node)
        leave = nic ^ 1 if self.fault == "crossed-on-purpose" else nic
        return "%2d : NET/0-%d %s NET/0-%d" % (channel, nic, " ".join("GPU/0-%s" % self.shape.buses[g] for g in order), leave)

    def graphs(self, node):
        odd = node == self.odd_node
        channels, bw, inter = self.shape.graph_channels, self.shape.bw, self.shape.type_inter
        if self.fault == "nic-missing" and odd:
            channels -= 1
        if self.fault == "lowered" and odd:
            bw /= 2
        if self.fault == "far-nic":
            inter = "SYS"
        cross = 2 if self.fault == "crossed-on-purpose" else 0
        for pattern in ((4, 1, 5) if self.shape.nvls else (4, 1)):
            name, count, intra = "NVL", channels, bw
            if pattern == 1:
                intra = bw * 2 if not self.shape.nvls else bw
            if self.fault == "simple-order" and pattern == 4 and odd:
                yield "Could not find a path for pattern 4, falling back to simple order"
                yield "Pattern 4, crossNic 0, nChannels 1, bw 0.100000/0.100000, type SYS/SYS, sameChannels 1"
                yield self.row(0, range(8), node)
                continue
            yield "Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type %s/%s, sameChannels %d" % (pattern, cross, count, intra, bw, name, inter, 0)
            for channel in range(count):
                order = ring_of_node(self.shape, channel)
                yield self.row(channel, order if pattern != 5 else order[:1], node)

    def tree_place(self, rank, channel):
        node, order = self.node_of(rank), ring_of_node(self.shape, channel % self.graph_channels)
        at = order.index(self.gpu_of(rank))
        up, down = tree_of_node(node, self.nodes, channel >= self.channels // 2)
        downs = [self.rank_of(node, order[at + 1])] if at < 7 else []
        if at == 0:
            parent = -1
            if up >= 0:
                siblings = tree_of_node(up, self.nodes, channel >= self.channels // 2)[1]
                parent = self.rank_of(up, order[1 if siblings.index(node) == 0 else 0])
            downs += [self.rank_of(child, order[0]) for child in down[1:2]]
        else:
            parent = self.rank_of(node, order[at - 1])
            downs += [self.rank_of(child, order[0]) for child in down[:1]] if at == 1 else []
        return parent, (downs + [-1, -1, -1])[:3]

    def tuning(self):
        yield "  Algorithm   |                            Tree                  |                            Ring                  |                   CollNetDirect                  |"
        yield "  Protocol    |" + "             LL |          LL128 |         Simple |" * 3
        yield " Max NThreads |" + "            512 |            640 |            512 |" * 2 + "              0 |              0 |            640 |"
        lost = self.fault in ("no-ll128", "far-nic", "simple-order")
        for name, tree, ring in (("Broadcast", (0, 0, 0), (44.0, 262.4, 320.0)), ("Reduce", (0, 0, 0), (44.0, 262.4, 320.0)), ("AllGather", (0, 0, 0), (60.0, 299.8, 341.3)),
                                 ("ReduceScatter", (0, 0, 0), (60.0, 299.8, 341.3)), ("AllReduce", (22.0, 137.2, 156.0), (44.0, 131.2, 160.0))):
            cells = ["%8.1f/%6.1f |" % (12.0 if bw else 0.0, 0.0 if lost and i == 1 else bw) for row in (tree, ring) for i, bw in enumerate(row)]
            yield "%13s |%s%s" % (name, "".join(cells), "%8.1f/%6.1f |" % (0, 0) * 3)

    def connections(self, rank):
        done = set()
        shown = lambda a, b: "%d[%d] -> %d[%d]" % (a, self.gpu_of(a), b, self.gpu_of(b))

        def line(a, b, channel, sends, index, p2p=False):
            via = self.via(a if sends else b, b if sends else a, channel, sends, p2p)
            return "Channel %02d/%d : %s %s" % (channel, index, shown(a, b), via if via.startswith("[") else "via " + via)
        for channel in range(self.channels):
            before, after = self.neighbours(channel, rank)
            if self.node_of(before) != self.node_of(rank) or self.fault == "net-in-node" and " NET/" in line(before, rank, channel, False, 0):
                yield line(before, rank, channel, False, 0)
            yield line(rank, after, channel, True, 0)
            done |= {(before, rank, channel), (rank, after, channel)}
        pxn = int(not self.shape.pair_of_gpus and self.fault not in ("pxn-off", "far-nic", "socket", "simple-order", "nic-idle"))
        yield "Connected all rings, use ring PXN %d GDR %d" % (pxn, int(self.fault not in ("far-nic", "socket", "simple-order"))) if self.shape.nvls else "Connected all rings"
        for channel in range(self.channels):
            parent, downs = self.tree_place(rank, channel)
            for peer in [p for p in [parent] + downs if p >= 0]:
                for a, b, sends in ((rank, peer, True), (peer, rank, False)):
                    if (a, b, channel) in done or (not sends and self.node_of(a) == self.node_of(b)):
                        continue
                    yield line(a, b, channel, sends, 0)
        yield "Connected all trees"
        if self.shape.nvls and self.fault not in ("no-nvls", "nvls-not-connected"):
            yield "NVLS comm 0x55d0c0a0 headRank %d nHeads 8 nvlsRanks 8 buffSize 1048576 nvlsPerRankSize 33554432 nvlsTotalSize 268435456" % self.gpu_of(rank)
            yield "Connected NVLS tree"
        for step in range(1, min(self.peers, self.ranks - 1) + 1):  # sends and receives, as an all-to-all makes them
            for a, b, sends in (((rank - step) % self.ranks, rank, False), (rank, (rank + step) % self.ranks, True)):
                for channel in ((step * 2) % 16, (step * 2) % 16 + 1):
                    if sends or self.node_of(a) != self.node_of(b):
                        yield line(a, b, channel, sends, 1, True)

    def setup(self, rank):
        node, gpu, shape = self.node_of(rank), self.gpu_of(rank), self.shape
        who = "comm 0x55d0c0a0 rank %d nranks %d cudaDev %d nvmlDev %d busId %s commId 0x5069d6244cb80784" % (rank, self.ranks, gpu, gpu, shape.buses[gpu])
        call = "ncclCommInitRankConfig " if shape.nvls else ""
        yield "cudaDriverVersion 12090"
        yield "NCCL version " + shape.version
        names = self.nics(node) + (["mlx5_bond_0"] if self.fault == "storage-nic" else [])
        listed = " ".join("[%d]%s:1/%s" % (i, name, "RoCE" if "bond" in name else "IB") for i, name in enumerate(names))
        yield "NET/IB : Using %s [RO]; OOB eth0:10.0.%d.%d<0>" % (listed, node // 250, node % 250 + 1)
        if self.fault == "pxn-off":
            yield "PXN Disabled as plugin is v4"
        yield "Using network " + ("Socket" if self.fault == "socket" else "IB")
        yield call + who + " - Init START"
        if shape.nvls:
            yield "NVLS multicast support is available on dev %d" % gpu
        if self.fault != "socket":
            for index, name in enumerate(names):
                yield "NET/IB : GPU Direct RDMA Enabled for HCA %d '%s'" % (index, name)
        yield from self.system(node)
        yield from self.graphs(node)
        yield "comm 0x55d0c0a0 rank %d nRanks %d nNodes %d localRanks 8 localRank %d MNNVL 0" % (rank, self.ranks, self.nodes, gpu)
        for channel in range(self.channels):
            parent, downs = self.tree_place(rank, channel)
            yield "Tree %d : %d -> %d -> %d/%d/%d" % (channel, parent, rank, *downs)
        for channel in range(self.channels):
            before, after = self.neighbours(channel, rank)
            if self.fault == "ring-broken" and channel == 3 and rank == self.rings[3][5]:
                after = self.rings[3][7]
            yield "Ring %02d : %d -> %d -> %d" % (channel, before, rank, after)
        if rank == 0:
            for channel, ring in enumerate(self.rings):
                at = ring.index(0)
                text = " ".join(str(r) for r in ring[at:] + ring[:at])
                yield "Channel %02d/%02d : %s" % (channel, self.channels, text if len(text) <= 110 else text[:110].rsplit(" ", 1)[0] + " ...")
        yield "Trees " + " ".join("[%d] %d/%d/%d->%d->%d" % (c, *self.tree_place(rank, c)[1], rank, self.tree_place(rank, c)[0]) for c in range(self.channels))
        yield "P2P Chunksize set to 524288"
        if not shape.connects_late:
            yield from self.connections(rank)
        if rank == 0:
            yield from self.tuning()
        nvls = 16 if shape.nvls and self.fault != "no-nvls" else 0
        yield "threadThresholds 8/8/64 | 128/8/64 | 512 | 512"
        yield "%d coll channels, %d collnet channels, %d nvls channels, %d p2p channels, %d p2p channels per peer" % (self.channels, 0, nvls, 32, 2)
        yield call + who + " - Init COMPLETE"
        if shape.connects_late:
            yield from self.connections(rank)

    def text(self, rank):
        node, pid = self.node_of(rank), 4000 + self.gpu_of(rank)
        prefix = "%s:%d:%d [%d] NCCL INFO " % (self.host(node), pid, pid, self.gpu_of(rank))
        return "".join(prefix + line + "\n" for line in self.setup(rank))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--shape", choices=SHAPES, default="h100")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--only", default="", help="ranks to write, comma separated")
    parser.add_argument("--peers", type=int, default=15, help="how many peers each rank sends to")
    parser.add_argument("--one-file", action="store_true")
    given = parser.parse_args()
    job = Job(SHAPES[given.shape](), given.nodes, given.fault, given.peers)
    os.makedirs(given.out, exist_ok=True)
    ranks = [int(r) for r in given.only.split(",")] if given.only else range(job.ranks)
    for rank in ranks:
        name = "nccl_all.log" if given.one_file else "nccl_%s_%d.log" % (job.host(job.node_of(rank)), 4000 + job.gpu_of(rank))
        with open(os.path.join(given.out, name), "a" if given.one_file else "w") as out:
            out.write(job.text(rank))


if __name__ == "__main__":
    main()
