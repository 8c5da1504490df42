"""The files of a profile: which tables a folder has, of which devices, in folders of any depth."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from npu_shim.profiles.columns import TABLES

MESSAGES = ("communication", "communication_matrix")
_FILE = re.compile(r"(\w+?)((?:_slice)?(?:_\d+)*?)(_\d{12,})?(\.csv|\.json|\.db)", re.I)  # name, numbers, time, ending
_KINDS = {f"{name}.csv": name for name in TABLES}
_KINDS["kernel_details.csv"] = "op_summary"
_KINDS.update(dict.fromkeys(("msprof.json", "trace_view.json"), "timeline"))
_KINDS.update((f"{name}.db", "database") for name in ("msprof", "ascend_pytorch_profiler", "ascend_mindspore_profiler"))
_KINDS.update((f"{job}{kind}.json", kind) for job in ("", "cluster_") for kind in MESSAGES)
_INSIDE = re.compile(
    "mindstudio_profiler_output|ascend_profiler_output|summary|timeline|device_[0-9]+|host|prof_[0-9]+_.*", re.I
)


class ProfileFile(NamedTuple):
    """A file of a profile.

    Attributes:
        path: of the file.
        kind: of a table, or "timeline", "database" or one of MESSAGES.
        source: the run that it belongs to, a folder below that of the profile.
        device: by its folder or name, empty if only its rows say it.
    """

    path: str
    kind: str
    source: str
    device: str


def find(folder: str) -> list[ProfileFile]:
    """Return the files of a folder, of each table that of the last export."""
    last: dict[tuple[str, str, str], tuple[str, ProfileFile]] = {}
    for place, folders, names in os.walk(folder):
        folders.sort()
        source, device = _source(os.path.relpath(place, folder))
        for name, match in ((name, _FILE.fullmatch(name)) for name in sorted(names)):
            stem, numbers, time, ending = match.groups("") if match else ("", "", "", "")
            kind = _KINDS.get(f"{stem}{ending}".lower())
            if kind and time >= last.get((place, kind, numbers), ("",))[0]:
                # CANN 5 and 6: device, model, iteration
                short = None if time else re.fullmatch(r"_(\d+)_\d+(_\d+)?", numbers)
                own = device or (short.group(1) if short else "")
                last[place, kind, numbers] = time, ProfileFile(os.path.join(place, name), kind, source, own)
    return [each for _, each in last.values()]


def _source(inside: str) -> tuple[str, str]:
    """Return the folder of the run and the device of a path below the profile."""
    parts = [part for part in inside.split(os.sep) if part != "."]
    devices = [part.rpartition("_")[2] for part in parts if re.fullmatch("device_[0-9]+", part)]
    while parts and _INSIDE.fullmatch(parts[-1]) and not parts[-1].lower().startswith("prof_"):
        parts.pop()
    return os.sep.join(parts), devices[-1] if devices else ""
