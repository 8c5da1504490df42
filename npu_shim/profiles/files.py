"""The files of a profile: which tables a folder has, of which devices, in folders of any depth."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from npu_shim.dumps.files import below
from npu_shim.profiles.columns import TABLES

_FILE = re.compile(r"(\w+?)((?:_slice)?(?:_\d+)*?)(_\d{12,})?(\.csv|\.json|\.db)", re.I)  # name, numbers, time, ending
_KINDS = {name: kind for kind, table in TABLES.items() for name in table["files"]}
_INSIDE = re.compile("mindstudio_profiler_output|ascend_profiler_output|summary|timeline|device_[0-9]+|host", re.I)
_RANK = re.compile(r"rank_?(\d+)", re.I)


class ProfileFile(NamedTuple):
    """A file of a profile.

    Attributes:
        path: of the file.
        kind: one of TABLES.
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
    for path in below(folder):
        place, name = os.path.split(path)
        match = _FILE.fullmatch(name)
        stem, numbers, time, ending = match.groups("") if match else ("", "", "", "")
        kind = _KINDS.get(f"{stem}{ending}".lower())
        if kind and time >= last.get((place, kind, numbers), ("",))[0]:
            short = (
                None if time else re.fullmatch(r"_(\d+)_\d+(_\d+)?", numbers)
            )  # CANN 5 and 6: device, model, iteration
            source, device = _source(os.path.relpath(place, folder))
            own = device or (short.group(1) if short else "")
            last[place, kind, numbers] = time, ProfileFile(path, kind, source, own)
    return [each for _, each in last.values()]


def _source(inside: str) -> tuple[str, str]:
    """Return the folder of the run and the device of a path below the profile."""
    parts = [part for part in inside.split(os.sep) if part != "."]
    devices = [part.rpartition("_")[2] for part in parts if re.fullmatch("device_[0-9]+", part)]
    while parts and _INSIDE.fullmatch(parts[-1]):
        parts.pop()
    return os.sep.join(parts), devices[-1] if devices else ""


def rank(source: str, device: str) -> str:
    """Return the rank of a run, the device if its folder does not say it."""
    return (_RANK.findall(source) or [device])[-1]
