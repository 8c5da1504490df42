"""Files and variables of the node that must fit the NPUs and the rank table: hccl_rootinfo.json, visible devices."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Mapping, Sequence

from npu_shim._host.host_device import ASCEND_A5
from npu_shim.distributed.ranktable.model import RANKS, RankTable, RankTableError
from npu_shim.distributed.ranktable.reader import read_table_text
from npu_shim.distributed.ranktable.rootinfo import ROOT_INFO, parse_rootinfo

VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
_REMEDY = "Delete it, so that HCCL asks the driver, or write it anew with the platform's tool."


@dataclass
class RootInfoFacts:
    """Facts about the node's hccl_rootinfo.json.

    Attributes:
        path: of the file.
        version, topology_file, devices: as it has them; devices are their numbers.
        error: why HCCL refuses the file, None if it does not, or does not read it.
    """

    path: str
    version: str | None = None
    topology_file: str | None = None
    devices: list[int] = field(default_factory=list)
    error: str | None = None


def root_info_facts(product: str | None, root: str = "/") -> RootInfoFacts | None:
    """Return facts about the node's hccl_rootinfo.json, None if it does not exist.

    Args:
        product: of the NPUs; only HCCL of an A5 reads the file. None if it is unknown.
        root: root of the file system.
    """
    path = os.path.join(root, ROOT_INFO.lstrip("/"))
    if not os.path.exists(path):
        return None
    facts = RootInfoFacts(path)
    error = None
    try:
        rootinfo = parse_rootinfo(read_table_text(path), path)
        facts.version, facts.devices = rootinfo.version, sorted(rootinfo.devices)
        topology = facts.topology_file = rootinfo.topology_file
        if rootinfo.version != RANKS:
            error = f"its version is {rootinfo.version!r}, but HCCL of A5 reads {RANKS!r} only (EI0016)"
        elif topology is None or not os.path.exists(os.path.join(root, topology.lstrip("/"))):
            error = f"its topo_file_path is {topology!r}, which does not exist (EI0016)"
    except OSError as problem:
        error = problem.strerror or str(problem)
    except RankTableError as problem:
        error = problem.summary
    if error and product in (ASCEND_A5, None):
        facts.error = f"{error}. {_REMEDY}"
    return facts


def parse_visible_devices(text: str) -> tuple[int, ...]:
    """Return the devices of a value of ASCEND_RT_VISIBLE_DEVICES: those before the first part that is not a number."""
    devices: list[int] = []
    for part in text.split(","):
        if not part.isdigit():
            break
        devices.append(int(part))
    return tuple(devices)


def visibility_problems(environ: Mapping[str, str], table: RankTable | None) -> list[str]:
    """Return contradictions between ASCEND_RT_VISIBLE_DEVICES, ASCEND_DEVICE_ID and the rank table.

    Args:
        environ: the variables.
        table: the rank table of the job, if there is one.
    """
    text = environ.get(VISIBLE)
    if text is None:
        return []
    visible, named = parse_visible_devices(text), f"{VISIBLE}={text!r}"
    if len(visible) != len(text.split(",")):
        part = text.split(",")[len(visible)]
        read = f"names {_numbers_text(visible)} only" if visible else "names no device"
        return [f"{named} {read}: {part!r} is not a device number. Write numbers and commas, such as 0,1."]
    if list(visible) != sorted(set(visible)):
        ordered = ",".join(map(str, sorted(set(visible))))
        return [f"{named} is not in ascending order, each device once; NPUs refuse it (EE2002). Write {ordered}."]
    return _selection_problems(environ, visible, named, table)


def _selection_problems(
    environ: Mapping[str, str], visible: Sequence[int], named: str, table: RankTable | None
) -> list[str]:
    """Return the contradictions of the device of this rank, or of the devices of a table of one server."""
    position, rank = (environ.get(name, "").strip() for name in ("ASCEND_DEVICE_ID", "RANK_ID"))
    selected = None
    if position.isdigit():
        if int(position) >= len(visible):
            return [
                f"ASCEND_DEVICE_ID={position} is a position in {named}, which has 0 to {len(visible) - 1}. Export one "
                f"of them, or unset {VISIBLE}."
            ]
        selected = visible[int(position)]
    if table is None:
        return []
    placed = {device.rank: device.device_id for _, device in table.placements()}
    if rank.isdigit() and int(rank) in placed:
        wanted = {int(rank): placed[int(rank)]}
    elif len(table.servers) == 1:
        wanted = placed
    else:
        return []  # this host is one of several, and unknown
    hidden = {number: device for number, device in wanted.items() if device not in visible}
    if hidden:
        ranks = ", ".join(f"device {device} of rank {number}" for number, device in hidden.items())
        return [
            f"{named} hides {ranks} in the rank table. Add it, or unset {VISIBLE}. In a container, where the driver "
            "numbers the devices anew, this may be intended."
        ]
    if selected is not None and rank.isdigit() and wanted.get(int(rank), selected) != selected:
        device = wanted[int(rank)]
        return [
            f"ASCEND_DEVICE_ID={position} selects device {selected} of {named}, but the rank table has device {device} "
            f"for rank {rank}. Export ASCEND_DEVICE_ID={list(visible).index(device)}, its position."
        ]
    return []


def _numbers_text(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
