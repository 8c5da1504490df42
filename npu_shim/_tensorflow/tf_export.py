"""Private parts of TensorFlow for exported models: graph optimizers, formats of saved models."""

from __future__ import annotations

import pathlib
import re
from typing import Sequence

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, meta_graph_pb2, rewriter_config_pb2, saved_model_pb2
from tensorflow.python.framework import meta_graph as _meta_graph
from tensorflow.python.grappler import tf_optimizer

from npu_shim._tensorflow.op_types import LOOPS
from npu_shim._tensorflow.types import GraphDef, Value

try:
    from tensorflow.core.framework import graph_debug_info_pb2 as _debug_info
except ImportError:  # TF 2.6
    from tensorflow.core.protobuf import graph_debug_info_pb2 as _debug_info

v1 = tf.compat.v1
MetaGraphDef = meta_graph_pb2.MetaGraphDef
_LOWER = "_lower_using_switch_merge"
_BRANCHES = {"If", "StatelessIf", "Case", "StatelessCase"}
SavedModel = saved_model_pb2.SavedModel


def optimize_graph(graph: GraphDef, kept_tensors: Sequence[str], optimizers: Sequence[str]) -> GraphDef:
    """Return a graph after TensorFlow's graph optimizers.

    Args:
        graph: nodes and functions.
        kept_tensors: names of tensors that must stay.
        optimizers: names, like "function" and "constfold".
    """
    for function in graph.library.function:
        for name in ("api_implements", "_noinline"):
            function.attr.pop(name, None)
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(graph, name="")
        meta = v1.train.export_meta_graph(graph_def=graph, graph=imported)
    meta.collection_def["train_op"].node_list.value.extend(kept_tensors)
    settings: dict[str, Value] = {"min_graph_nodes": -1, "fail_on_optimizer_errors": True}  # small graphs, too
    settings["meta_optimizer_iterations"] = rewriter_config_pb2.RewriterConfig.ONE
    settings["constant_folding"] = rewriter_config_pb2.RewriterConfig.AGGRESSIVE  # shapes of placeholders hold
    rewrite = rewriter_config_pb2.RewriterConfig(optimizers=optimizers, **settings)
    config = config_pb2.ConfigProto(graph_options=config_pb2.GraphOptions(rewrite_options=rewrite))
    return tf_optimizer.OptimizeGraph(config, meta, verbose=False)


def inline_functions(graph: GraphDef, keep_tensors: Sequence[str], while_loops: bool = True) -> GraphDef:
    """Return a graph without calls of functions. Branches, and loops if asked for, become those of TensorFlow 1.

    TensorFlow inlines no call of a function with such a loop. So calls come first, then one level of loops after the
    other.
    """
    for node in [*graph.node, *(node for function in graph.library.function for node in function.node_def)]:
        node.attr.pop(_LOWER, None)
        node.op = re.sub("^Stateful(?=PartitionedCall$)", "", node.op)  # else TensorFlow wants to see that it happens
    lowered, is_nested = _BRANCHES | LOOPS if while_loops else _BRANCHES, True
    while is_nested:
        graph, is_nested = optimize_graph(graph, keep_tensors, ["function"]), False
        for node in graph.node:
            if node.op in lowered and not node.attr[_LOWER].b:
                node.attr[_LOWER].b = is_nested = True
    return graph


def strip_defaults(graph: GraphDef) -> GraphDef:
    """Return a graph without attributes that have their default value, which older versions may not know."""
    meta = MetaGraphDef(graph_def=graph)
    _meta_graph.strip_graph_default_valued_attrs(meta)
    return meta.graph_def


def creation_lines_of_nodes(folder: str) -> dict[str, list[tuple[str, int]]]:
    """Return the files and lines that create a node, by its name, the innermost first, if a SavedModel has them."""
    path = pathlib.Path(folder, "debug", "saved_model_debug_info.pb")
    info = _debug_info.GraphDebugInfo.FromString(path.read_bytes() if path.is_file() else b"")
    frames = {name: trace.file_line_cols for name, trace in info.traces.items()}
    for name, number in getattr(info, "name_to_trace_id", {}).items():  # of TensorFlow 2.15 and later
        frames[name] = [info.frames_by_id[frame_id] for frame_id in info.traces_by_id[number].frame_id[::-1]]
    return {
        name.split("@")[0]: [(info.files[frame.file_index], frame.line) for frame in frames[name]] for name in frames
    }
