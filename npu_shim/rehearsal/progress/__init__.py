"""Watch a run: the step, the speed, the loss and the memory of this rank, for a terminal and for TensorBoard.

The hooks are those of a recording as far as they add no op to a graph, so training computes the same as without them.

* ``progress`` counts steps and keeps the last values. ``waits`` measures the time in collectives.
* ``counted_updates``, ``counted_functions``, ``tape_losses`` and ``counted_sessions`` are the hooks that
  differ from those of a recording.
* ``recording_progress`` shows a run of ``npu-shim verify`` from outside, by its recording.
* ``reporter`` reports to the display. ``start`` starts all of it.
"""
