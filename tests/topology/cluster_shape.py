# SPDX-License-Identifier: Apache-2.0
"""Two kinds of cluster, as far as NCCL's set-up log shows them."""
from dataclasses import dataclass, field


@dataclass
class Shape:
    name: str
    version: str
    buses: list            # of the GPUs, in order
    nvlink_gbs: float
    pci_gbs: float
    net_gbs: float
    pair_of_gpus: bool     # two GPUs and two NICs below one switch, else one of each
    bw: float              # per channel, the search's result
    graph_channels: int
    nvls: bool
    connects_late: bool    # at first use (2.22 and later), not during set-up
    type_inter: str        # what the search settles on
    nics: list = field(default_factory=lambda: ["mlx5_%d" % i for i in range(8)])

    def switch_of(self, gpu):
        return gpu // 2 if self.pair_of_gpus else gpu


def h100():
    return Shape("h100", "2.27.7+cuda12.9", ["1b000", "43000", "52000", "61000", "9d000", "c3000", "d1000", "df000"], 370.8, 48.0, 50.0, False, 48.0, 8, True, True,
                 "PXN")


def a100():
    return Shape("a100", "2.18.5+cuda12.2", ["7000", "b000", "48000", "4c000", "88000", "8b000", "c8000", "cb000"], 240.0, 24.0, 25.0, True, 24.0, 8, False, False,
                 "PXB")


SHAPES = {"h100": h100, "a100": a100}


def ring_of_node(shape, channel):
    """The GPUs of one node in the order of this channel's ring. It enters at the GPU of its NIC; on a pair it leaves at the other one of the pair, else the data
    goes back to the first GPU over NVLink (PXN)."""
    first = channel % 8
    if shape.pair_of_gpus:
        last = first ^ 1
        return [first] + [(first + 2 + i) % 8 for i in range(8) if (first + 2 + i) % 8 not in (first, last)] + [last]
    return [(first + i) % 8 for i in range(8)]


def binary_tree(node, nodes):
    """(parent, children) of a node in NCCL's binary tree over nodes."""
    bit = 1
    while bit < nodes and not node & bit:
        bit <<= 1
    if node == 0:
        child = -1
        low = 1
        while low < nodes:
            child, low = low, low << 1
        return -1, [c for c in (child,) if c >= 0]
    up = (node ^ bit) | (bit << 1)
    if up >= nodes:
        up = node ^ bit
    children = []
    low = bit >> 1
    if low:
        children.append(node - low)
        while low and node + low >= nodes:
            low >>= 1
        if low:
            children.append(node + low)
    return up, children


def tree_of_node(node, nodes, second):
    """The second tree is the first one mirrored, or shifted by one where the number of nodes is odd."""
    if not second:
        return binary_tree(node, nodes)
    if nodes % 2 == 0:
        turn = lambda n: nodes - 1 - n if n >= 0 else -1
    else:
        turn = None
    if turn:
        up, down = binary_tree(turn(node), nodes)
        return turn(up) if up >= 0 else -1, [turn(c) for c in down]
    up, down = binary_tree((node - 1) % nodes, nodes)
    return (up + 1) % nodes if up >= 0 else -1, [(c + 1) % nodes for c in down]
