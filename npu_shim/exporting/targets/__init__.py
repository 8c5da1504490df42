"""Forms of an exported model, a target a file.

Each module has ``write(model, folder, options)``, which writes the files and returns what it wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Sequence

from npu_shim.exporting.nodes import ExportError

if TYPE_CHECKING:
    from npu_shim.exporting.ports import Port
    from npu_shim.exporting.proof import Run, Values


class Written(NamedTuple):
    """The files of a target.

    Attributes:
        files: their paths.
        lines: for the user: commands, findings.
        run: runs what was written; None if only a card can.
    """

    files: list[str]
    lines: list[str]
    run: Run | None


class Options(NamedTuple):
    """Options of the command that targets use."""

    name: str
    soc_version: str
    precision_mode: str
    dynamic_batch: list[int]
    aipp: bool
    opp: list[str]
    opset: int | None
    values: Values


def check_sizes(inputs: list[Port], batches: Sequence[int] = ()) -> None:
    """Raise an error for an unknown size, except a batch of several sizes: the NPU compiles each shape."""
    for port in inputs:
        sizes = [None] if port.shape is None else port.shape[1:] if batches else port.shape
        if None in sizes:
            raise ExportError(f"{port.text().split()[0]} has an unknown size. Give all, like {port.key}:1,224,224,3.")
