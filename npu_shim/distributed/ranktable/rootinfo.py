"""Read the devices of a host with Ascend 950 NPUs from its /etc/hccl_rootinfo.json.

The file is optional; HCCL asks the driver where it does not exist. It has the form of a rank table of version 2.0,
without the ranks, and names the file with the links between the NPUs.
"""

from __future__ import annotations

from dataclasses import dataclass

from npu_shim.distributed.ranktable import lenient_json, rank_list
from npu_shim.distributed.ranktable.fields import Entry, Incomplete, Reading
from npu_shim.distributed.ranktable.model import Device, RankTableError, only_errors

ROOT_INFO = "/etc/hccl_rootinfo.json"


@dataclass(frozen=True)
class RootInfo:
    """The content of the file: its version, the path of the topology file, and the devices by device_id.

    The rank of a device is its position in the file.
    """

    version: str
    topology_file: str | None
    devices: dict[int, Device]


def parse_rootinfo(text: str, name: str) -> RootInfo:
    """Return the content of a file.

    Args:
        text: of the file.
        name: name of the file in errors.
    Raises:
        RankTableError: it is not JSON, or lacks its version or the layers of a device.
    """
    data, syntax = lenient_json.load_lenient_json(text)
    reading = Reading(problems=list(syntax))
    try:
        info = None if data is None and syntax else _read_content(Entry(data, "$", reading))
    except Incomplete:
        info = None  # the problem has been reported
    wrong = only_errors(reading.problems)
    if info is None or wrong:
        raise RankTableError(name, wrong)
    return info


def parse_root_devices(text: str, name: str) -> dict[int, Device]:
    """Return the devices of a file; as parse_rootinfo()."""
    return parse_rootinfo(text, name).devices


def _read_content(top: Entry) -> RootInfo:
    return RootInfo(top.text("version"), top.optional_text("topo_file_path"), _read_devices(top))


def _read_devices(top: Entry) -> dict[int, Device]:
    devices: dict[int, Device] = {}
    for at, entry in enumerate(top.objects("rank_list")):
        device = rank_list.read_device(entry, rank=at)
        if device.device_id in devices:
            entry.report("device_id", f"device {device.device_id} is given twice", "Name each device of the host once")
        devices[device.device_id] = device
    return devices
