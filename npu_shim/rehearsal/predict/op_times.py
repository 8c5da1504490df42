"""Times of ops of the device, by public measurements: the model, and its table op_times.json.

    time = launch + memory * bytes / bandwidth + matrix * operations / rate + row * rows / cores

A type of ops has its four numbers from measurements, drawn to those of its class, and a class to those of its unit. A
type that a family of processors lacks is taken from the other family, by its distance to its class there.
"""

from __future__ import annotations

import json
import pkgutil
import re
from typing import Mapping, NamedTuple, Sequence

import numpy as np

from npu_shim.options.near import did_you_mean
from npu_shim.rehearsal.predict.features import MATRIX, DeviceOp, bytes_moved, matrix_flops, rows_moved

UNIT, CLASS, TYPE = "unit", "class", "type"
OTHER_FAMILY = "other family"
DEFAULT_PROCESSOR = "Ascend910B3"
# The first class whose pattern fits a type, or a part of a fused one.
_CLASSES = {
    "attention": "Attention",
    "convolution": "Conv[23]D",
    "product": "MatMul|Gemm|Einsum",
    "optimizer": "Apply|Lamb|ClipByNorm|SquareSum|LpNorm|Foreach",
    "sparse": "Gather|Scatter|Embedding|Segment|Index|OneHot|TopK|Sort|Unique|NonZero|ArgMax",
    "pool": "Pool",
    "norm": "BN|Norm|Softmax|NLLLoss|Reduce|BiasAddGrad|Cumsum",
    "move": "TransData|Transpose|Slice|Concat|Split|Tile|Pad|Broadcast|TensorMove|Pack|AsStrided|Assign|Confusion|"
    "Reformat",
    "clear": "AtomicAddrClean|MemSet|ZerosLike|OnesLike|Fill",
    "elementwise": "",
}
# Microseconds of a launch, times of the memory, times of the matrix unit: of a unit, before any measurement.
_START = {"910": (1.5, 1.3, 2.5), "910B": (1.8, 1.3, 1.5)}
# Nanoseconds of a core for each row of a class, before any measurement.
_ROW = {"norm": 400.0, "sparse": 150.0}
_OTHER_ROW = 8.0
# No processor compiles float64 and complex numbers (see NPU221). They count as float32, which the fix makes of them.
_AS_FLOAT32 = frozenset({"FLOAT", "FLOAT32", "DOUBLE", "FLOAT64", "COMPLEX64", "COMPLEX128"})


class Processor(NamedTuple):
    """A processor with the figures of its data sheet.

    Attributes:
        name: as given with ``--processor``.
        family: whose measurements serve.
        flops: operations a second of the matrix unit in float16.
        bandwidth: bytes a second of the memory.
        cores: of the vector unit's work.
        float32, float32_convolution: share of ``flops`` of products and convolutions in float32.
        memory: bytes of the card that a job has; 0 if they are not known.
    """

    name: str
    family: str
    flops: float
    bandwidth: float
    cores: int
    float32: float
    float32_convolution: float
    memory: int = 0

    def rate(self, op: DeviceOp) -> float:
        """Return the operations a second of the matrix unit for an op."""
        types = [tensor.dtype.upper().replace("DT_", "") for tensor in op.inputs]
        dtype = next((name for name in types if not name.startswith(("INT32", "INT64"))), "")
        if dtype in _AS_FLOAT32:
            return self.flops * (self.float32_convolution if "Conv" in op.type else self.float32)
        return self.flops * (2 if dtype in ("INT8", "UINT8") else 1)


class Row(NamedTuple):
    """The numbers of a unit, class or type of ops of a family, and the measurements behind them.

    Attributes:
        family, level, name: whose numbers; a type is one without the suffix of a version.
        runs, signatures, models: that were measured.
        logs: logarithms of launch, memory, matrix and row.
    """

    family: str
    level: str
    name: str
    runs: int
    signatures: int
    models: int
    logs: np.ndarray


class Estimate(NamedTuple):
    """The predicted time of an op.

    Attributes:
        parts: seconds of launch, memory, matrix unit and rows.
        level: of the table, that gave it.
    """

    parts: np.ndarray
    level: str

    @property
    def seconds(self) -> float:
        """The sum of the parts."""
        return float(self.parts.sum())


def processor(name: str) -> Processor:
    """Return a processor by its name.

    Raises:
        ValueError: it is not known.
    """
    known = json.loads(pkgutil.get_data(__name__, "processors.json") or b"")
    if name not in known:
        raise ValueError(
            f"--processor {name}: no such processor.{did_you_mean(name, list(known))} Use one of {', '.join(known)}"
        )
    return Processor(name, **known[name])


def op_class(type: str) -> str:
    """Return the class of a type of ops."""
    return next(name for name, pattern in _CLASSES.items() if re.search(pattern, type))


def without_version(type: str) -> str:
    """Return a type without the suffix of a version: MatMulV2 -> MatMul."""
    return re.sub(r"(WithImplMode|ExtV?\d?|V\d|(?<=[a-z])D)$", "", type)


def work_on_processor(op: DeviceOp, device: Processor) -> tuple[float, float, float]:
    """Return the microseconds of memory and matrix unit, and thousands of rows a core, that an op takes at best."""
    return (
        1e6 * bytes_moved(op) / device.bandwidth,
        1e6 * matrix_flops(op) / device.rate(op),
        rows_moved(op) / device.cores / 1000,
    )


class OpTimes:
    """Rows by family, level and name, and what they say of an op."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows: Mapping[tuple[str, str, str], Row] = {row[:3]: row for row in rows}

    def row_of_type(self, family: str, type: str) -> tuple[str, Row]:
        """Return the level and row that serve a type of ops: of its own, else of its class, else of its unit."""
        plain, group = without_version(type), op_class(type)
        of_class = self._row_of_class(family, group, type)
        own = self._rows.get((family, TYPE, plain))
        if own is not None:
            return TYPE, own
        for other in _START:
            borrowed = self._rows.get((other, TYPE, plain))
            if borrowed is not None:
                logs = of_class.logs + borrowed.logs - self._row_of_class(other, group, type).logs
                return OTHER_FAMILY, borrowed._replace(logs=logs)
        return of_class.level, of_class

    def _row_of_class(self, family: str, group: str, type: str) -> Row:
        unit = unit_of_type(type)
        start = Row(family, UNIT, unit, 0, 0, 0, start_logs(family))
        above = self._rows.get((family, UNIT, unit), start)
        return self._rows.get((family, CLASS, group), above._replace(logs=logs_of_class(above.logs, group)))

    def estimates(self, ops: Sequence[DeviceOp], device: Processor) -> list[Estimate]:
        """Return the time of each op on a processor."""
        rows = {type: self.row_of_type(device.family, type) for type in {op.type for op in ops}}
        numbers = {type: np.exp(row.logs) / 1e6 for type, (_, row) in rows.items()}
        return [Estimate(numbers[op.type] * (1.0, *work_on_processor(op, device)), rows[op.type][0]) for op in ops]


def unit_of_type(type: str) -> str:
    """Return the unit that runs a type of ops."""
    return "matrix" if MATRIX.search(type) else "vector"


def start_logs(family: str) -> np.ndarray:
    """Return the logarithms of the numbers of a unit before any measurement."""
    return np.log([*_START[family], 5.0])


def logs_of_class(logs: np.ndarray, group: str) -> np.ndarray:
    """Return the numbers of a class before any measurement of its own: those of its unit, and those of its rows."""
    return np.append(logs[:3], np.log(_ROW.get(group, _OTHER_ROW)))


def shipped_op_times() -> OpTimes:
    """Return the table that ships."""
    rows = json.loads(pkgutil.get_data(__name__, "op_times.json") or b"")["rows"]
    return OpTimes(
        [
            Row(family, level, name, runs, signatures, models, np.log(numbers))
            for family, level, name, runs, signatures, models, numbers in rows
        ]
    )
