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
from typing import Any, Iterable

import numpy as np

from npu_shim.dumps import dump, files
from npu_shim.dumps.dump import Tensor

INDEX, DRAWS = "index.json", "draws.json"
_TYPES: dict[str, Any] = {
    "output": int,
    "band": (int, float, type(None)),
    "inputs": list,
    "shape": (list, type(None)),
}  # others are str


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
        tensors: of the outputs, if these are dumps of another run on the device; else empty.
    """

    def __init__(self, folder: str, outputs: Iterable[Output], indexed: bool, tensors: Iterable[Tensor] = ()) -> None:
        self.folder = folder
        self.outputs = list(outputs)
        self.indexed = indexed
        self.tensors = list(tensors)
        self._places = {(flat(each.op), each.output): place for place, each in enumerate(self.outputs)}

    def place(self, op: str, output: int) -> int | None:
        """Return the place of an output among all, None if there is none."""
        return self._places.get((flat(op), output))

    def place_of(self, tensor: str) -> int | None:
        """Return the place of an output by its name, OP:OUTPUT or OP."""
        op, _, output = tensor.rpartition(":")
        return self.place(op, int(output)) if op and output.isdigit() else self.place(tensor, 0)

    def load(self, place: int) -> np.ndarray:
        """Return the elements of an output, mapped.

        Raises:
            ValueError: the file is missing or no array, or a dump whose type or layout is unknown.
        """
        path = os.path.join(self.folder, self.outputs[place].file)
        if self.tensors:
            return dump.original(path, self.tensors[place])
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


def device_steps(folder: str, problems: dict[str, str]) -> dict[int, Reference]:
    """Return the steps of a folder of dumps of another run, nothing for a folder that has files of NumPy."""
    if next(files.below(folder, (".npy",)), None):
        return {}
    found = files.latest(files.find(folder)[0])
    return {step: _of_device(folder, dump.read_all(members, problems)) for step, members in found.items()}


def _of_device(folder: str, dumps: Iterable[tuple[files.DumpFile, dump.DumpData]]) -> Reference:
    outputs, tensors = [], []
    for file, data in dumps:
        for index, tensor in enumerate(data.outputs):
            name, path = data.op_name or file.op_name, os.path.relpath(file.path, folder)
            shape = list(tensor.original_shape)
            outputs.append(Output(name, index, path, file.op_type, dump.type_name(tensor), shape))
            tensors.append(tensor)
    return Reference(folder, outputs, True, tensors)


def read(folder: str, problems: dict[str, str]) -> Reference:
    """Read the index of a step, or else the names of its files; what is wrong with one is added to ``problems``."""
    path = os.path.join(folder, INDEX)
    if os.path.exists(path):
        try:
            return Reference(folder, _indexed(path), True)
        except (ValueError, OSError, RecursionError) as error:
            problems[path] = f"it is no index: {error}. The names of the files are used"
    return Reference(folder, _named(folder, problems), False)


def _indexed(path: str) -> list[Output]:
    with open(path, encoding="utf-8") as stream:
        made = json.load(stream)
    if not isinstance(made, dict) or made.get("schema_version") != 1 or not isinstance(made.get("outputs"), list):
        raise ValueError("it has no schema_version 1 and list of outputs")
    fields = {each.name for each in dataclasses.fields(Output)}
    outputs = []
    for number, row in enumerate(made["outputs"]):
        row = {key: value for key, value in row.items() if key in fields} if isinstance(row, dict) else {}
        of_type = (isinstance(value, _TYPES.get(key, str)) for key, value in row.items())
        if not {"op", "file"} <= set(row) or not all(of_type) or not all(map(_is_text, row.get("inputs", []))):
            raise ValueError(f"output {number} has no op and file, or a field of another type")
        if os.path.basename(row["file"]) != row["file"]:
            raise ValueError(f"output {number} is in another folder, {row['file']!r}")
        outputs.append(Output(**row))
    return outputs


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _named(folder: str, problems: dict[str, str]) -> list[Output]:
    found: dict[tuple[str, int], tuple[int, Output]] = {}
    full = files.mapping(folder, problems)
    for name in sorted(os.listdir(folder)):
        op, *numbers = full.get(name, name)[:-4].rsplit(".", 2)
        if not name.endswith(".npy"):
            continue
        if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
            problems[os.path.join(folder, name)] = "its name is not NAME.OUTPUT.TIMESTAMP.npy. Rename or move it"
            continue
        output, time = map(int, numbers)
        if found.get((op, output), (-1,))[0] <= time:
            found[op, output] = time, Output(op, output, name)
    return [output for _, output in found.values()]
