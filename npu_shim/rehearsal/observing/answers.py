"""The functions that answer the questions of the tool, by kind. They need TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim.rehearsal.observing import sizes, values

if TYPE_CHECKING:
    from npu_shim.rehearsal.observing.observation import Answer

ANSWERS: dict[str, Answer] = {  # the keys are those of convert_tf2npu/facts/kinds.py
    "rows": sizes.note_rows,
    "value": values.note_value,
    "function": values.note_parameters,
}
