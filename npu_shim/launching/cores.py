"""The processors and the memory of each rank: those near its device, else even shares."""

from __future__ import annotations

import os
from typing import Sequence

from npu_shim._host import host_device, numa
from npu_shim.launching.plan import Share, share_cores


def share_processors(available: Sequence[int], devices: Sequence[int], root: str = "/") -> list[Share]:
    """Divide the processors of this host among ranks.

    Ranks whose devices have the same processors near them share these. If those of any device are unknown, or this
    process may not use them, all ranks get even shares of adjacent processors, a NUMA node after the other.

    Args:
        available: numbers of the processors.
        devices: the device of each rank.
        root: root of the file system.
    """
    nodes = numa.cpus_of_nodes(root)
    known = numa.cpus_near_devices(root) if host_device.detect_without_import().is_npu else {}
    near = [known.get(device, frozenset()) & set(available) for device in devices]
    if not all(near):
        by_node = {core: node for node, cores in nodes.items() for core in cores}
        ordered = sorted(available, key=lambda core: (by_node.get(core, 0), core))
        return [_share_of_cores(cores, nodes) for cores in share_cores(ordered, len(devices))]
    shares_of_ranks = []
    for place, own in enumerate(near):
        parts = share_cores(sorted(own), near.count(own))
        shares_of_ranks.append(_share_of_cores(parts[near[:place].count(own)], nodes))
    return shares_of_ranks


def _share_of_cores(cores: Sequence[int], nodes: dict[int, frozenset[int]]) -> Share:
    home = [node for node, own in nodes.items() if own.issuperset(cores)] if len(nodes) > 1 else []
    return Share(tuple(sorted(cores)), home[0] if home else None)


def bind_process(share: Share) -> None:
    """Bind this process, and those that it starts, to its share."""
    if share.cores:
        os.sched_setaffinity(0, share.cores)
    if share.node is not None:
        # Refused in some containers, where memory is near the processor that asks first.
        numa.try_prefer_memory_of_node(share.node)
