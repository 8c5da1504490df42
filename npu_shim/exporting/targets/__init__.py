"""Forms of an exported model, a target a file.

Each module has ``write(model, options, values)``, which writes the files, reads them again and runs the model.
``options`` are those of the command, ``values`` the inputs of the proof.
"""

from __future__ import annotations

import pathlib
import string
from typing import NamedTuple, Sequence

from npu_shim._tensorflow import tf_api
from npu_shim.exporting.graph_defs import ExportError
from npu_shim.exporting.ports import Port
from npu_shim.exporting.proof import Values


class Written(NamedTuple):
    """The files of a target.

    Attributes:
        files: their paths.
        lines: for the user: commands, findings.
        outputs: what the written model computes, by key.
    """

    files: list[pathlib.Path]
    lines: list[str]
    outputs: Values


def fill_template(name: str, **values: object) -> str:
    """Return the text of a template beside this file with values."""
    return string.Template(pathlib.Path(__file__).with_name(name).read_text(encoding="utf-8")).substitute(values)


def check_ports(inputs: list[Port], batches: Sequence[int] = ()) -> None:
    """Raise an error for a string or an unknown size, except a batch of several: the NPU compiles each shape."""
    for port in inputs:
        if port.dtype == tf_api.tf.string:
            raise ExportError(f"{port.key} is a string, which the NPU does not have. Begin after it with --inputs.")
        if None in ([None] if port.shape is None else port.shape[1:] if batches else port.shape):
            fixed = ",".join(str(size or 1) for size in port.shape or (1, 224, 224, 3))
            raise ExportError(f"{port.text().split()[0]} has an unknown size. Give all, like {port.key}:{fixed}.")
