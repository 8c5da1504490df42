"""Forms of an exported model, a target a file.

Each module has ``write(model, folder, options)``, which writes the files and returns what it wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from npu_shim.exporting.proof import Run


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
