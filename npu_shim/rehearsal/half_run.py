"""Half precision in a run, as data: what it is asked for, and what it reports at its end."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Sequence

from npu_shim._tensorflow.types import JsonObject
from npu_shim.rehearsal.precision_modes import MIXED


@dataclass(frozen=True)
class Precision:
    """The arguments of half.half_precision()."""

    dtype: str = "float16"
    precision_mode: str = MIXED
    mixlist: str | None = None
    saturate: bool = False


@dataclass(frozen=True)
class HalfRun:
    """Half precision in one run.

    Attributes:
        precision: of the ops in 16 bits.
        size: of a perturbation, 0 for float32, None to round.
        skips: number of the optimizer and its step, of each step that a float32 run skips.
        seed: of the perturbation.
        everywhere: True to perturb all ops in 16 bits, False for convolutions and matrix products.
    """

    precision: Precision
    size: float | None = None
    skips: Sequence[tuple[int, int]] = ()
    seed: int = 0
    everywhere: bool = False


@dataclass(frozen=True)
class Overflow:
    """Inf and NaN in a run: the steps with them, the first one, and ops that saturated, by type and name."""

    steps: int
    first_step: int | None
    first_op: str | None
    saturated: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class HalfReport:
    """The report of a run in half precision at its end.

    Attributes:
        ops: number of ops in 16 bits.
        matrix_casts, casts: number of values that a device casts: for convolutions and matrix products, for all ops.
        steps, skipped_at_end: number of steps, and of those in a row at the end that were skipped.
        loss_scale: the first, the lowest and the last one.
        overflow: Inf and NaN.
    """

    ops: int
    matrix_casts: int
    casts: int
    steps: int
    skipped_at_end: int
    loss_scale: Sequence[float] | None
    overflow: Overflow

    def to_json(self) -> JsonObject:
        """Return it for a recording."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: JsonObject | None) -> HalfReport | None:
        """Return the report in a recording; None for a run that made none."""
        return cls(**{**content, "overflow": Overflow(**content["overflow"])}) if content else None


@dataclass(frozen=True)
class Half:
    """Settings of half precision.

    Attributes:
        precision: of the ops in 16 bits.
        perturbed: number of perturbed runs.
        report: what the run in half precision reported where the recording was made, on a device that computes in 16
            bits itself; None to round in this process.
    """

    precision: Precision
    perturbed: int
    report: HalfReport | None = None

    @property
    def dtype(self) -> str:
        """float16 or bfloat16."""
        return self.precision.dtype

    def to_json(self) -> JsonObject:
        """Return it for the manifest of a recording."""
        report = self.report and self.report.to_json()
        return {"precision": asdict(self.precision), "perturbed": self.perturbed, "found": report}

    @classmethod
    def from_json(cls, content: JsonObject) -> Half:
        """Return what to_json() made."""
        return cls(Precision(**content["precision"]), content["perturbed"], HalfReport.from_json(content["found"]))
