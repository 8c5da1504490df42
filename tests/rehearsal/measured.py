"""Assess a script, run the step that was taken once, and print both peaks of memory: ``python measured.py SCRIPT ARGS``.

TensorFlow records each allocation of a step. Those that are no output of an operator are workspaces of kernels for the
CPU, mainly of convolutions, and are left out.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import tensorflow as tf

from npu_shim import alias
from npu_shim._tensorflow import patches, tf_session
from npu_shim.import_hook import script
from npu_shim.rehearsal.assess import capture, loops, memory

v1 = tf.compat.v1
assert alias


def recorded_peak(stats: Any) -> int:
    """Return the most bytes of outputs that live at the same time."""
    events = []
    for node in (node for device in stats.dev_stats for node in device.node_stats):
        outputs = [each.tensor_description.allocation_description.requested_bytes for each in node.output]
        for used in node.memory:
            records = [(each.alloc_micros, each.alloc_bytes) for each in used.allocation_records]
            events += [each for each in records if any(0 <= abs(each[1]) - size < 256 for size in outputs)]
    live = peak = 0
    for _, size in sorted(events):
        live += size
        peak = max(peak, live)
    return peak


class Measured(capture.Capture):
    """Runs the first step that trains after it is taken."""

    def _add_graph(self, captured: capture.Captured) -> None:
        super()._add_graph(captured)
        if len(self.graphs) > 1:
            raise capture.Stop  # the evaluation of an Estimator
        found = self.graphs[0].flat
        assert found is not None
        stats = self._in_session(captured) if captured.session is not None else self._in_function()
        for node in found.nodes:
            if node.op.startswith("IteratorGetNext"):  # the input pipeline allocates batches, which is not recorded
                node.shapes[:] = [(0,)] * len(node.shapes)
        ours = memory.peak_memory(found.nodes, loops.loop_trip_counts(found.nodes)).peak
        print("PEAKS", ours, recorded_peak(stats), file=sys.stderr)
        raise capture.Stop

    def _in_session(self, captured: capture.Captured) -> Any:
        """Run the step in the script's session."""
        assert captured.session is not None
        return _traced(captured.session, captured.fetches, captured.feeds)

    def _in_function(self) -> Any:
        """Run the nodes of a tf.function in a session, with zeros for variables, arguments and batches."""
        found = self.graphs[0].flat
        assert found is not None
        read = {key for node in found.nodes for key in node.inputs}
        feeds, targets = {}, []
        for op in found.graph.get_operations():
            if op.type == "VarHandleOp":  # Keras 3 gives variables of several layers one name, and a session one value
                op._set_attr("shared_name", v1.AttrValue(s=op.name.encode()))
        with found.graph.as_default(), _session() as session:
            for i, node in enumerate(found.nodes):
                op = found.graph.get_operation_by_name(node.name)
                if op.type == "VarHandleOp":
                    dtype, shape = op.get_attr("dtype"), op.get_attr("shape")
                    zeros = tf.zeros(tf.TensorShape(shape).as_list(), dtype)
                    _run(session, tf.raw_ops.AssignVariableOp(resource=op.outputs[0], value=zeros))
                elif op.type in ("Placeholder", "IteratorGetNext"):
                    values = [tensor for tensor in op.outputs if tensor.dtype not in (tf.resource, tf.variant)]
                    feeds.update({each: np.zeros(each.shape.as_list(), each.dtype.as_numpy_dtype) for each in values})
                elif not any((i, k) in read for k in range(len(op.outputs))):
                    targets.append(op)
            return _traced(session, targets, feeds)


def _session() -> Any:
    config = v1.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return v1.Session(config=config)


def _run(session: Any, *arguments: Any) -> None:
    patches._original_attributes[tf_session.BaseSession, "run"](session, *arguments)


def _traced(session: Any, fetches: Any, feeds: Any) -> Any:
    # In the thread of the caller: how early the thread of a pool takes the first ops would decide their order.
    metadata, options = v1.RunMetadata(), v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, inter_op_thread_pool=-1)
    _run(session, fetches, feeds)  # a first run allocates what later ones keep
    _run(session, fetches, feeds, options, metadata)
    return metadata.step_stats


def without_optimizer(original: Any) -> Any:
    """Replace the constructor of sessions, so that the graph runs as it is, one operator after the other."""

    def __init__(self: Any, target: Any, graph: Any, config: Any = None) -> None:
        changed = v1.ConfigProto()
        changed.CopyFrom(config or changed)
        changed.inter_op_parallelism_threads = changed.intra_op_parallelism_threads = 1
        changed.graph_options.rewrite_options.disable_meta_optimizer = True
        original(self, target, graph, changed)

    return __init__


def main(path: str, arguments: list[str]) -> None:
    """Assess and run a script."""
    sys.path.insert(0, os.path.dirname(path))
    found = Measured(os.path.dirname(os.path.abspath(path)))
    found.install()
    patches.replace_attribute(tf_session.BaseSession, "__init__", without_optimizer)
    try:
        script.run_file(path, arguments, None)
    except capture.Stop:
        return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
