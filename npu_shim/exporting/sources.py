"""Open what training has written: a graph, its variables, its signatures."""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
from typing import Callable, Dict, NamedTuple, Sequence

import numpy as np

from npu_shim._tensorflow import tf_api, tf_export, types
from npu_shim._tensorflow.script_frames import is_library
from npu_shim.exporting.graph_defs import (
    ExportError,
    constant_value,
    data_inputs,
    nodes_by_name,
    split_tensor_name,
    variable_of_tensor,
)
from npu_shim.rehearsal.assess.lines import relative_path

tf, v1 = tf_api.tf, tf_api.v1
Names = Dict[str, str]  # key of a signature -> tensor
Read = Callable[["list[str]"], "dict[str, np.ndarray]"]
DEFAULT = "serving_default"  # signature
KERAS_FILES = (".h5", ".hdf5", ".keras")
KINDS = "a SavedModel, a checkpoint with its .meta, a Keras file (.h5, .keras) or a frozen graph (.pb)"


class Source(NamedTuple):
    """A trained model.

    Attributes:
        path: the user's.
        kind: for messages.
        graph: its nodes, training included.
        read: returns the values that variables have, by the names of their nodes.
        signatures: by name: tensors of inputs, tensors of outputs.
        constants: values of placeholders by the names of their nodes, unless the command sets others.
        lines: returns the lines of the script that create a node.
    """

    path: str
    kind: str
    graph: types.GraphDef
    read: Read
    signatures: dict[str, tuple[Names, Names]]
    constants: dict[str, types.Value] = {}
    lines: Callable[[str], list[str]] = lambda name: []


def open_source(path: str, tags: str = "serve") -> Source:
    """Open a source by the files that are there."""
    if os.path.isfile(os.path.join(path, "saved_model.pb")):
        return _open_saved_model(path, tags)
    if path.endswith(KERAS_FILES) and os.path.isfile(path):
        return _open_keras_model(path)
    if path.endswith(".pb") and os.path.isfile(path):
        return Source(path, "frozen graph", _parse_message_file(path, tf_api.GraphDef), lambda names: {}, {})
    prefix = checkpoint_prefix(path)
    if not os.path.isfile(prefix + ".meta"):
        instead = "Save with tf.compat.v1.train.Saver, or give a SavedModel, a Keras file, or --script too."
        raise ExportError(f"{prefix}.meta is missing: a checkpoint has no graph. {instead}")
    meta = _parse_message_file(prefix + ".meta", tf_export.MetaGraphDef)
    return Source(path, "checkpoint", meta.graph_def, checkpoint_reader(meta.graph_def, prefix), _signature_names(meta))


def _parse_message_file(path: str, kind: types.Value) -> types.Message:
    try:
        return kind.FromString(pathlib.Path(path).read_bytes())
    except Exception as error:  # protobuf's error has another name in each version
        raise ExportError(f"{path} is no {kind.DESCRIPTOR.name}: {error}. Give {KINDS}.")


def _signature_names(meta: types.Message) -> dict[str, tuple[Names, Names]]:
    return {
        name: (_tensor_names(signature.inputs), _tensor_names(signature.outputs))
        for name, signature in sorted(meta.signature_def.items())
        if signature.outputs and name != "__saved_model_init_op"
    }


def _tensor_names(side: dict[str, types.Message]) -> Names:
    return {key: info.name for key, info in sorted(side.items())}


# --- variables


def checkpoint_prefix(path: str) -> str:
    """Return the prefix of the checkpoint in a folder, or with the name of one of its files."""
    prefix = tf.train.latest_checkpoint(path) if os.path.isdir(path) else None
    for ending in ("", ".meta", ".index"):
        if path.endswith(ending) and os.path.isfile(path[: len(path) - len(ending)] + ".index"):
            prefix = path[: len(path) - len(ending)]
    if prefix is None:
        raise ExportError(f"{path}: no model found. Give {KINDS}.")
    return str(prefix)


def checkpoint_reader(graph: types.GraphDef, prefix: str) -> Read:
    """Return a reader of the checkpoint of a graph. The graph's own ops that save say which key a variable has."""
    nodes, keys = nodes_by_name(graph), {}
    for node in [node for node in graph.node if node.op == "SaveV2"]:
        _, names, slices, *tensors = data_inputs(node)
        spelled = [constant_value(nodes[split_tensor_name(constant)[0]]).reshape(-1) for constant in (names, slices)]
        for tensor, name, part in zip(tensors, *spelled):
            keys[variable_of_tensor(nodes, tensor)] = name.decode(), part

    def read(names: list[str]) -> dict[str, np.ndarray]:
        dtypes, restored = tf.train.load_checkpoint(prefix).get_variable_to_dtype_map(), {}
        with tf.Graph().as_default(), v1.Session() as session:
            for name in names:
                key, part = keys.get(name, (name, ""))
                if key in dtypes:
                    given = {"tensor_names": [key], "shape_and_slices": [part], "dtypes": [dtypes[key]]}
                    [restored[name]] = tf.raw_ops.RestoreV2(prefix=prefix, **given)
            return dict(session.run(restored))

    return read


# --- models that TensorFlow loads


def _open_saved_model(path: str, tags: str, shown_path: str | None = None, kind: str = "SavedModel") -> Source:
    saved = _parse_message_file(os.path.join(path, "saved_model.pb"), tf_export.SavedModel)
    wanted = set(tags.split(","))
    metas = [meta_graph for meta_graph in saved.meta_graphs if set(meta_graph.meta_info_def.tags) == wanted]
    if not metas:
        there = "; ".join(",".join(meta_graph.meta_info_def.tags) for meta_graph in saved.meta_graphs)
        raise ExportError(f"{path} has no graph with the tags {tags}. Give --tags with one of: {there}.")
    if any(node.op == "SaveV2" for node in metas[0].graph_def.node):
        prefix = os.path.join(path, "variables", "variables")
        read = checkpoint_reader(metas[0].graph_def, prefix)
        return Source(shown_path or path, kind, metas[0].graph_def, read, _signature_names(metas[0]))
    with tf.Graph().as_default():
        session = v1.Session()
        meta = v1.saved_model.load(session, sorted(wanted), path)
    graph, read = session.graph.as_graph_def(), _session_reader(session)
    lines = _line_lookup(tf_export.creation_lines_of_nodes(path), shown_path or path)
    return Source(shown_path or path, kind, graph, read, _signature_names(meta), lines=lines)


def _line_lookup(traces: dict[str, list[tuple[str, int]]], shown_path: str) -> Callable[[str], list[str]]:
    folder = os.path.dirname(os.path.abspath(shown_path))

    def lines(name: str) -> list[str]:
        names = [name.split("/", calls)[-1] for calls in range(name.count("/") + 1)]  # it begins with inlined calls
        frames = next((traces[candidate] for candidate in names if candidate in traces), [])
        own = [frame for frame in frames if not is_library(frame[0]) and "-packages" not in frame[0]]
        return [f"{relative_path(path, folder)}:{line}" for path, line in own]

    return lines


def _session_reader(session: types.Session) -> Read:
    def read(names: list[str]) -> dict[str, np.ndarray]:
        with session.graph.as_default():
            return dict(session.run({name: value_tensor_of_variable(session.graph, name) for name in names}))

    return read


def value_tensor_of_variable(graph: types.Graph, name: str) -> types.Value:
    """Return a tensor with the value of a variable, which the graph has already: it may be finalized."""
    tensor = graph.get_tensor_by_name(f"{name}:0")
    return tensor if tensor.dtype != tf.resource else graph.get_tensor_by_name(f"{name}/Read/ReadVariableOp:0")


def _open_keras_model(path: str) -> Source:
    keras, kind = tf.keras, "Keras model"
    if tf.__version__.startswith("1."):
        with tf.Graph().as_default():
            keras.backend.set_learning_phase(0)
            model = _load_keras_model(path)
            session = keras.backend.get_session()
            sides = (model.input_names, model.inputs), (model.output_names, model.outputs)
            inputs, outputs = ({key: tensor.name for key, tensor in zip(*side)} for side in sides)
            signatures = {DEFAULT: (inputs, outputs)}
            return Source(path, kind, session.graph.as_graph_def(), _session_reader(session), signatures)
    model = _load_keras_model(path)
    if not model.inputs:
        raise ExportError(f"{path}: a subclassed model has no input shapes. Save it with model.export.")
    return keras_source(path, kind, {DEFAULT: (model, model.inputs)})


def keras_source(path: str, kind: str, models: dict[str, tuple[types.KerasModel, types.Structure]]) -> Source:
    """Return models of Keras.

    Args:
        path, kind: for messages.
        models: by the names of their signatures, with what they are called with, a structure with shapes and types.
    """
    functions = {name: _predict_function(*called) for name, called in models.items()}
    weights = [variable for model, _ in models.values() for variable in model.variables]
    variables = [variable if isinstance(variable, tf.Variable) else variable.value for variable in weights]
    return function_source(path, kind, functions, variables)


def _predict_function(model: types.KerasModel, inputs: types.Structure) -> types.TracedFunction:
    flat, several = tf.nest.flatten(inputs), isinstance(inputs, (list, tuple, dict)) and len(inputs) > 1
    keys = [(getattr(tensor, "name", None) or f"input_{number}").split(":")[0] for number, tensor in enumerate(flat)]
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype, key) for key, tensor in zip(keys, flat)]
    outputs = list(getattr(model, "output_names", None) or [])

    def predict(*tensors: types.Tensor) -> types.Result:
        given = tf.nest.pack_sequence_as(inputs, tensors) if several else tensors[0]
        results = tf.nest.flatten(model(given, training=False))
        names = outputs if len(outputs) == len(results) else [f"output_{number}" for number in range(len(results))]
        return dict(zip(names, results))

    return tf.function(predict, input_signature=specs)


def function_source(
    path: str, kind: str, functions: dict[str, types.TracedFunction], variables: Sequence[types.Variable]
) -> Source:
    """Return models that are tf.functions, by the names of their signatures."""
    saved = tf.Module()  # not a model of Keras, of which TensorFlow would trace every layer
    saved.weights = list(variables)
    with tempfile.TemporaryDirectory(prefix="npu_shim_export_") as folder:
        options = tf.saved_model.SaveOptions(save_debug_info=True)
        tf.saved_model.save(saved, folder, functions, options)
        source = _open_saved_model(folder, "serve", path, kind)
    return source._replace(signatures={name: source.signatures[name] for name in functions})  # in their order


def restore_weights(model: types.KerasModel, path: str) -> bool:
    """Give a model of Keras the weights of a file or checkpoint; return False if they are of another model.

    Args:
        model: built.
        path: of `Model.save_weights` or of a `tf.train.Checkpoint`, in which the model has any name.
    """
    if path.endswith(KERAS_FILES):
        model.load_weights(path)
        return True
    prefix = checkpoint_prefix(path)
    keys = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
    names = sorted({key.split("/")[0] for key in keys if "/.ATTRIBUTES/" in key}, key=lambda name: name != model.name)
    loads = [tf.train.Checkpoint(**{name: model}).restore for name in names if name != "save_counter"]
    for load in [*loads, model.load_weights]:
        with contextlib.suppress(AssertionError, ValueError, AttributeError):  # other objects or shapes, not in Keras 3
            load(prefix).assert_existing_objects_matched()
            return True
    return False


def _load_keras_model(path: str) -> types.Module:
    try:
        return tf.keras.models.load_model(path, compile=False)
    except ValueError as error:
        instead = "Save it with its architecture (model.save), and with its own layers as a SavedModel."
        raise ExportError(f"{path}: Keras does not load it: {str(error).splitlines()[0]} {instead}")
