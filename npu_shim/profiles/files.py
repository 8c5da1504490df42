"""The files of a profile: which tables a folder has, of which devices, in folders of any depth."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from npu_shim.profiles.columns import TABLES

_DATABASES = ("msprof", "ascend_pytorch_profiler", "ascend_mindspore_profiler")
_FILE = re.compile(r"(\w+?)((?:_slice)?(?:_\d+)*)\.(csv|json|db)", re.I)
_KINDS = {(name, "csv"): name for name in TABLES}  # beginning and end of a name -> kind
_KINDS.update(
    {("kernel_details", "csv"): "op_summary", ("msprof", "json"): "timeline", ("trace_view", "json"): "timeline"}
)
_KINDS.update(dict.fromkeys(((name, "db") for name in _DATABASES), "database"))
_INSIDE = re.compile(
    "mindstudio_profiler_output|ascend_profiler_output|summary|timeline|device_[0-9]+|host|prof_[0-9]+_.*", re.I
)
_TIME = re.compile(r"_(\d{12,})$")  # of an export


class ProfileFile(NamedTuple):
    """A file of a profile.

    Attributes:
        path: of the file.
        kind: of a table, or "timeline" or "database".
        source: the run that it belongs to, a folder below that of the profile.
        device: by its folder or name, empty if only its rows say it.
    """

    path: str
    kind: str
    source: str
    device: str


def find(folder: str) -> list[ProfileFile]:
    """Return the files of a folder, of each table those of the last export."""
    exports: dict[tuple[str, str, str], dict[str, list[ProfileFile]]] = {}
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            match = _FILE.fullmatch(name)
            kind = match and _KINDS.get((match.group(1).lower(), match.group(3).lower()))
            if not match or not kind:
                continue
            numbers = match.group(2)
            time = (_TIME.findall(numbers) or [""])[0]
            source, device = _source(os.path.relpath(place, folder))
            short = re.fullmatch(r"_(\d+)_\d+(_\d+)?", numbers)  # CANN 5: device, model, iteration
            device = device or (short.group(1) if short and not time else "")
            made = ProfileFile(os.path.join(place, name), kind, source, device)
            exports.setdefault((place, kind, _TIME.sub("", numbers)), {}).setdefault(time, []).append(made)
    return [each for times in exports.values() for each in times[max(times)]]


def _source(inside: str) -> tuple[str, str]:
    """Return the folder of the run and the device of a path below the profile."""
    parts = [part for part in inside.split(os.sep) if part != "."]
    devices = [part.rpartition("_")[2] for part in parts if re.fullmatch("device_[0-9]+", part)]
    kept = parts
    while kept and _INSIDE.fullmatch(kept[-1]) and not kept[-1].lower().startswith("prof_"):
        kept = kept[:-1]
    return os.sep.join(kept), devices[-1] if devices else ""
