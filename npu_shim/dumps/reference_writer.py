"""Write the folder of a reference, as ``reference`` describes it."""

from __future__ import annotations

import dataclasses
import json
import os
import time
import zlib
from typing import Iterable

import numpy as np

from npu_shim.dumps.files import MAPPING, name_in_files
from npu_shim.dumps.reference import INDEX, Output

_MOST_NAME = 255


class Writer:
    """Write the outputs of a step one by one, and their index at the end.

    Args:
        folder: of the step.
    """

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._folder = folder
        self._time = int(time.time() * 1e6)
        self._entries: dict[str, tuple[int, Output]] = {}
        self._mapping: dict[str, str] = {}

    def write_output(self, place: int, entry: Output, array: np.ndarray) -> None:
        """Write an output; it takes the place of an earlier value. A type that NumPy lacks is written as float32.

        Args:
            place: of the op in the order of the graph.
            entry: the fields ``op``, ``output``, ``type``, ``line``, ``inputs`` and ``band``.
            array: the value.
        """
        file = name = f"{name_in_files(entry.op)}.{entry.output}.{self._time}.npy"
        if len(name.encode()) > _MOST_NAME:
            file = f"{zlib.crc32(name.encode()):010d}{place}.npy"
            self._mapping[file] = name
        dtype = str(array.dtype)
        np.save(os.path.join(self._folder, file), array if array.dtype.isbuiltin == 1 else array.astype(np.float32))
        entry = dataclasses.replace(entry, file=file, dtype=dtype, shape=list(array.shape))
        self._entries[file] = place, entry

    def close(self) -> None:
        """Write the index."""
        ordered = sorted(self._entries.values(), key=lambda placed: (placed[0], placed[1].op, placed[1].output))
        write_index(self._folder, [entry for _, entry in ordered])
        if self._mapping:
            with open(os.path.join(self._folder, MAPPING), "w", encoding="utf-8") as stream:
                stream.writelines(f"{number},{name}\n" for number, name in self._mapping.items())


def write_index(folder: str, outputs: Iterable[Output]) -> None:
    """Write the index of a step."""
    rows = []
    for entry in outputs:
        row = {key: value for key, value in dataclasses.asdict(entry).items() if value not in ("", [], None)}
        rows.append(json.dumps({**row, "shape": entry.shape}))
    with open(os.path.join(folder, INDEX), "w", encoding="utf-8") as stream:
        stream.write('{"schema_version": 1, "outputs": [\n' + ",\n".join(rows) + "\n]}\n")
