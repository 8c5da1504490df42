"""The folder of the reference: what TensorFlow computes, one ``.npy`` for each output, and an index.

    FOLDER/STEP/NAME.OUTPUT.TIMESTAMP.npy
    FOLDER/STEP/index.json

NAME is that of the op, with ``_`` for ``/`` and ``.``, as the vendor's comparison expects. A file whose name would
have more than 255 characters has a number for a name, and ``mapping.csv`` has both. Files may also lie in FOLDER
itself, and lack an index: those that tfdbg wrote. The index is

    {"schema_version": 1, "outputs": [{"op": "dense/MatMul", "output": 0, "file": "dense_MatMul.0.1700000000000.npy",
      "type": "MatMul", "dtype": "float32", "shape": [32, 10], "line": "train.py:12", "inputs": ["x:0"], "band": 0.002}
    ]}

in the order in which the ops of the graph run. ``line``, ``inputs`` and ``band`` may be absent. ``band`` is the
relative Euclidean distance that a computation in 16 bits may have there.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
import zlib
from typing import Any, Iterable

import numpy as np

from npu_shim.dumps import files

INDEX = "index.json"
_MOST_NAME = 255


@dataclasses.dataclass
class Output:
    """An output of an op of TensorFlow; the fields are those of the index."""

    op: str
    output: int = 0
    file: str = ""
    type: str = ""
    dtype: str = ""
    shape: list[int] | None = None
    line: str = ""
    inputs: list[str] = dataclasses.field(default_factory=list)
    band: float | None = None


class Reference:
    """The outputs of one step.

    Attributes:
        folder: where the files are.
        outputs: in the order of the graph, or of the names without an index.
        indexed: True if there is an index.
        of_device: True if these are dumps of another run on the device.
    """

    of_device = False

    def __init__(self, folder: str, outputs: Iterable[Output], indexed: bool) -> None:
        self.folder = folder
        self.outputs = list(outputs)
        self.indexed = indexed
        self._places = {(flat(each.op), each.output): place for place, each in enumerate(self.outputs)}

    def place(self, op: str, output: int) -> int | None:
        """Return the place of an output among all, None if there is none."""
        return self._places.get((flat(op), output))

    def shape(self, place: int) -> list[int] | None:
        """Return the shape of an output, None if the file is no array."""
        if self.outputs[place].shape is None:
            try:
                self.outputs[place].shape = list(self.load(place).shape)
            except ValueError:
                return None
        return self.outputs[place].shape

    def load(self, place: int) -> np.ndarray:
        """Return the elements of an output, mapped.

        Raises:
            ValueError: the file is missing or no array.
        """
        path = os.path.join(self.folder, self.outputs[place].file)
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError, SyntaxError, OverflowError, MemoryError) as error:
            raise ValueError(f"{path} is no array of NumPy: {error}. Write the reference again") from error
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufc":
            raise ValueError(f"{path} has no numbers, but {getattr(array, 'dtype', 'several arrays')}")
        return array


def flat(op: str) -> str:
    """Return the name of an op as file names have it."""
    for mark in "/.\\ ":
        op = op.replace(mark, "_")
    return op


def steps(folder: str) -> dict[int, str]:
    """Return the folders of the steps; -1 for files that lie in the folder itself."""
    found = {int(name): os.path.join(folder, name) for name in os.listdir(folder) if name.isdigit()}
    found = {step: path for step, path in sorted(found.items()) if os.path.isdir(path)}
    return found or {-1: folder}


def read(folder: str, problems: dict[str, str]) -> Reference:
    """Read the index of a step, or else the names of its files; what is wrong with one is added to ``problems``."""
    path = os.path.join(folder, INDEX)
    if os.path.exists(path):
        try:
            return Reference(folder, _indexed(path), True)
        except (ValueError, OSError, RecursionError) as error:
            problems[path] = f"it is no index: {error}. The names of the files are used"
    return Reference(folder, _named(folder, problems), False)


def write(folder: str, outputs: Iterable[tuple[Output, np.ndarray]]) -> None:
    """Write the outputs of a step, in the order of the graph, and their index."""
    writer = Writer(folder)
    for place, (entry, array) in enumerate(outputs):
        writer.add(place, entry, array)
    writer.close()


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

    def add(self, place: int, entry: Output, array: np.ndarray) -> None:
        """Write an output; it takes the place of an earlier value. An array of bfloat16 is written as float32, which
        holds it.

        Args:
            place: of the op in the order of the graph.
            entry: the fields ``op``, ``output``, ``type``, ``line``, ``inputs`` and ``band``.
            array: the value.
        """
        file = name = f"{flat(entry.op)}.{entry.output}.{self._time}.npy"
        if len(name.encode()) > _MOST_NAME:
            file = f"{zlib.crc32(name.encode()):010d}{place}.npy"
            self._mapping[file] = name
        dtype = str(array.dtype)
        np.save(os.path.join(self._folder, file), array.astype(np.float32) if dtype == "bfloat16" else array)
        entry = dataclasses.replace(entry, file=file, dtype=dtype, shape=list(array.shape))
        self._entries[file] = place, entry

    def close(self) -> None:
        """Write the index."""
        ordered = sorted(self._entries.values(), key=lambda each: (each[0], each[1].op, each[1].output))
        write_index(self._folder, [entry for _, entry in ordered])
        if self._mapping:
            with open(os.path.join(self._folder, files.MAPPING), "w", encoding="utf-8") as stream:
                stream.writelines(f"{number},{name}\n" for number, name in self._mapping.items())


def write_index(folder: str, outputs: Iterable[Output]) -> None:
    """Write the index of a step."""
    rows = []
    for entry in outputs:
        row = {key: value for key, value in dataclasses.asdict(entry).items() if value not in ("", [], None)}
        rows.append(json.dumps({**row, "shape": entry.shape}))
    with open(os.path.join(folder, INDEX), "w", encoding="utf-8") as stream:
        stream.write('{"schema_version": 1, "outputs": [\n' + ",\n".join(rows) + "\n]}\n")


def _indexed(path: str) -> list[Output]:
    with open(path, encoding="utf-8") as stream:
        made = json.load(stream)
    if not isinstance(made, dict) or made.get("schema_version") != 1 or not isinstance(made.get("outputs"), list):
        raise ValueError("it has no schema_version 1 and list of outputs")
    return [_entry(number, row) for number, row in enumerate(made["outputs"])]


def _entry(number: int, row: Any) -> Output:
    fields = {each.name for each in dataclasses.fields(Output)}
    if not isinstance(row, dict) or not isinstance(row.get("op"), str) or not isinstance(row.get("file"), str):
        raise ValueError(f"output {number} has no op and file")
    if os.path.basename(row["file"]) != row["file"]:
        raise ValueError(f"output {number} is in another folder, {row['file']!r}")
    made = Output(**{key: value for key, value in row.items() if key in fields})
    numbers = isinstance(made.output, int) and isinstance(made.band, (int, float, type(None)))
    texts = all(isinstance(text, str) for text in (made.type, made.line)) and isinstance(made.inputs, list)
    if not numbers or not texts or not all(isinstance(text, str) for text in made.inputs):
        raise ValueError(f"output {number}, {made.op!r}, has a field of another type")
    return made


def _named(folder: str, problems: dict[str, str]) -> list[Output]:
    found: dict[tuple[str, int], tuple[int, Output]] = {}
    mapping = {}
    if os.path.exists(os.path.join(folder, files.MAPPING)):
        try:
            mapping = files.read_mapping(os.path.join(folder, files.MAPPING))
        except (ValueError, OSError) as error:
            problems[os.path.join(folder, files.MAPPING)] = f"it is no table of two columns: {error}"
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".npy"):
            continue
        parts = mapping.get(name, name)[:-4].rsplit(".", 2)
        if len(parts) != 3 or not (parts[1].isdigit() and parts[2].isdigit()):
            problems[os.path.join(folder, name)] = "its name is not NAME.OUTPUT.TIMESTAMP.npy. Rename or move it"
            continue
        key = (parts[0], int(parts[1]))
        if found.get(key, (-1,))[0] <= int(parts[2]):
            found[key] = (int(parts[2]), Output(parts[0], key[1], name))
    return [output for _, output in found.values()]
