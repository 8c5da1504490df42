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
import re
from typing import Iterable

import numpy as np

from npu_shim.dumps import dump, files
from npu_shim.dumps.dump import Tensor
from npu_shim.dumps.files import name_in_files

INDEX, DRAWS = "index.json", "draws.json"


@dataclasses.dataclass
class Output:
    """An output of an op of TensorFlow; the fields are those of the index."""

    op: str = ""
    output: int = 0
    file: str = ""
    type: str = ""
    dtype: str = ""
    shape: list[int] = dataclasses.field(default_factory=list)
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
        self.folder, self.indexed = folder, indexed
        self.outputs, self.tensors = list(outputs), list(tensors)
        self._places = {(name_in_files(output.op), output.output): place for place, output in enumerate(self.outputs)}

    def position_of_output(self, op: str, output: int) -> int | None:
        """Return the position of an output among all, None if there is none."""
        return self._places.get((name_in_files(op), output))

    def position_of_name(self, tensor: str) -> int | None:
        """Return the position of an output by its name, OP:OUTPUT or OP."""
        op, _, output = tensor.rpartition(":")
        return (
            self.position_of_output(op, int(output)) if op and output.isdigit() else self.position_of_output(tensor, 0)
        )

    def load_output(self, place: int) -> np.ndarray:
        """Return the elements of an output, mapped.

        Raises:
            ValueError: the file is missing or no array, or a dump whose type or layout is unknown.
        """
        if self.tensors:
            return dump.tensor_in_graph_shape(self.tensors[place], "", self.tensors[place].original_shape)
        path = os.path.join(self.folder, self.outputs[place].file)
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError, SyntaxError, OverflowError, MemoryError) as error:
            raise ValueError(f"{path} is no array of NumPy: {error}. Write the reference again") from error
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufc":
            raise ValueError(f"{path} has no numbers, but {getattr(array, 'dtype', 'several arrays')}")
        return array


def step_folders(folder: str) -> dict[int, str]:
    """Return the folders of the steps; -1 for files that lie in the folder itself."""
    folders = {int(name): os.path.join(folder, name) for name in os.listdir(folder) if name.isdigit()}
    folders = {step: path for step, path in sorted(folders.items()) if os.path.isdir(path)}
    return folders or {-1: folder}


def read_steps(folder: str, problems: files.Problems) -> dict[int, Reference]:
    """Read all steps of a reference, or of a folder of dumps of another run, which has no files of NumPy."""
    if next(files.paths_below(folder, (".npy",)), None):
        return {step: read_step(path, problems) for step, path in step_folders(folder).items()}
    dumped = files.last_operator_dumps_by_step(files.find_dump_files_and_problems(folder)[0])
    return {step: _reference_of_dumps(folder, dump.read_dumps(members, problems)) for step, members in dumped.items()}


def read_as_dumps(folder: str, problems: files.Problems) -> dict[int, list[dump.DumpData]]:
    """Return the outputs of each step of a run on the CPU as those of a device, to compare them with another run."""
    by_step: dict[int, list[dump.DumpData]] = {}
    for step, side in read_steps(folder, problems).items():
        members: dict[str, dump.DumpData] = {}
        for output in side.outputs:
            path = os.path.join(side.folder, output.file)
            with files.collect_problem(problems, path, "it is no array of NumPy: {}"):
                tensor = dump.tensor_of_npy(path, output.op, output.output)
                file = files.DumpFile(path, output.type, output.op, step=step)
                members.setdefault(output.op, dump.DumpData(output.op, file=file)).outputs.append(tensor)
        by_step[step] = list(members.values())
    return by_step


def _reference_of_dumps(folder: str, dumps: Iterable[dump.DumpData]) -> Reference:
    tensors = [(data, index, tensor) for data in dumps for index, tensor in enumerate(data.outputs)]
    outputs = [Output(data.op_name, index, type=data.file.op_type) for data, index, _ in tensors]
    return Reference(folder, outputs, True, [tensor for _, _, tensor in tensors])


def read_step(folder: str, problems: files.Problems) -> Reference:
    """Read the index of a step, or else the names of its files; what is wrong with one is added to ``problems``."""
    path = os.path.join(folder, INDEX)
    if os.path.exists(path):
        with files.collect_problem(problems, path, "it is no index: {}. The names of the files are used"):
            return Reference(folder, _read_index(path), True)
    return Reference(folder, _outputs_by_file_name(folder, problems), False)


def check_schema_version(version: object) -> None:
    """Raise ValueError for the version of a file of another form than this release writes."""
    if version != 1:
        raise ValueError(f"its schema_version is {version!r}, not 1")


def _read_index(path: str) -> list[Output]:
    with open(path, encoding="utf-8") as stream:
        index = json.load(stream)
    check_schema_version(index["schema_version"])
    kinds: dict[str, type | tuple[type, ...]] = {
        **{name: type(value) for name, value in vars(Output()).items()},
        "band": (int, float),
    }
    outputs = []
    for number, row in enumerate(index["outputs"]):
        row = {key: row[key] for key in kinds if row.get(key) is not None} if isinstance(row, dict) else {}
        of_type = all(isinstance(value, kinds[key]) for key, value in row.items())
        if not (
            of_type
            and {"op", "file"} <= set(row)
            and all(isinstance(input_name, str) for input_name in row.get("inputs", ()))
        ):
            raise ValueError(f"output {number} has no op and file, or a field of another type")
        if os.path.basename(row["file"]) != row["file"]:
            raise ValueError(f"output {number} is in another folder, {row['file']!r}")
        outputs.append(Output(**row))
    return outputs


def _outputs_by_file_name(folder: str, problems: files.Problems) -> list[Output]:
    full = files.read_name_mapping(folder, problems)
    latest: dict[tuple[str, int], tuple[int, str]] = {}
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".npy")):
        match = re.fullmatch(r"(.*)\.([0-9]+)\.([0-9]+)\.npy", full.get(name, name))
        if match:
            key = match[1], int(match[2])
            latest[key] = max(latest.get(key, (-1, "")), (int(match[3]), name))
        else:
            problems[os.path.join(folder, name)] = "its name is not NAME.OUTPUT.TIMESTAMP.npy. Rename or move it"
    return [Output(op, output, name) for (op, output), (_, name) in latest.items()]
