"""The functions that answer the questions of the tool, by kind. They need TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from npu_shim.rehearsal.observing import (
    dataset_uses,
    doubles,
    graphs,
    layers,
    loops,
    sessions,
    shapes,
    sizes,
    skipped_updates,
    step_blocks,
    steps,
    values,
)
from npu_shim.rehearsal.recording.functions import disable_xla
from npu_shim.rehearsal.recording.saved_graphs import watch_saved_graphs

if TYPE_CHECKING:
    from npu_shim.rehearsal.observing.observation import Answer
    from npu_shim.rehearsal.recording.recorder import Recorder

ANSWERS: dict[str, Answer] = {  # the keys are those of convert_tf2npu/facts/kinds.py
    "dtype": doubles.note_dtype,
    "rows": sizes.note_rows,
    "value": values.note_value,
    "function": values.note_parameters,
    "dataset": dataset_uses.note_dataset,
    "shape": shapes.note_shape,
    "model": values.note_model,
    "op": graphs.note_op,
    "layer": layers.note_layer,
    "loop": loops.note_loop,
    "session": sessions.note_session,
    "step": steps.note_step,
    "block": step_blocks.note_block,
    "callee": steps.note_callee,
}


def watch_uses(recorder: Recorder) -> Callable[[], None]:
    """Watch the uses of objects that were seen. Return a function to call when the script has ended.

    Args:
        recorder: counts the updates of optimizers.
    """
    disable_xla()  # which compiles no op that notes
    uses = dataset_uses.DatasetUses(recorder)
    uses.watch_datasets()
    shapes.watch_feeds()
    doubles.doubles_of_run().watch_feeds()
    layers.watch_layers()
    sessions.watch_sessions()
    skipped_updates.watch_assignments()
    watch_saved_graphs()

    def note_open_uses() -> None:
        uses.note_open_loops()
        steps.trace_steps()
        doubles.doubles_of_run().note_connected_regions()

    return note_open_uses
