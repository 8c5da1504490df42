"""Open what training has written: a graph, its variables, its signatures."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any, Callable, Dict, NamedTuple

from npu_shim._tensorflow import tf_api, tf_export
from npu_shim.exporting.nodes import ExportError, by_name, data_inputs, split

if TYPE_CHECKING:
    import numpy as np

    from npu_shim._tensorflow.types import GraphDef, Message

tf, v1 = tf_api.tf, tf_api.v1
Names = Dict[str, str]  # key of a signature -> tensor
Read = Callable[["list[str]"], "dict[str, np.ndarray]"]
DEFAULT = "serving_default"  # signature
KERAS_FILES = (".h5", ".hdf5", ".keras")
KINDS = (
    "a SavedModel, a frozen .pb, a checkpoint with its .meta (or the folder with both), or a Keras file (.h5, .keras)"
)


class Source(NamedTuple):
    """A trained model.

    Attributes:
        path: the user's.
        kind: for messages.
        graph: its nodes, training included.
        read: returns the values of variables by the names of their nodes.
        signatures: by name: tensors of inputs, tensors of outputs.
        constants: values of placeholders by the names of their nodes, unless the command sets others.
        lines: returns the lines of the script that create a node.
    """

    path: str
    kind: str
    graph: GraphDef
    read: Read
    signatures: dict[str, tuple[Names, Names]]
    constants: dict[str, Any] = {}
    lines: Callable[[str], list[str]] = lambda name: []


def open_source(path: str, tags: str = "serve") -> Source:
    """Open a source by the files that are there."""
    if os.path.isfile(os.path.join(path, "saved_model.pb")):
        return _saved_model(path, tags)
    if path.endswith(KERAS_FILES) and os.path.isfile(path):
        return _keras(path)
    if path.endswith(".pb") and os.path.isfile(path):
        return _frozen(path)
    prefix = prefix_of(path)
    if not os.path.isfile(prefix + ".meta"):
        raise ExportError(
            f"{prefix}.meta is missing: a checkpoint has no graph. Save with tf.compat.v1.train.Saver, or give a "
            "SavedModel or a Keras file."
        )
    meta = _parsed(prefix + ".meta", tf_export.MetaGraphDef)
    return Source(path, "checkpoint", meta.graph_def, checkpoint_reader(meta.graph_def, prefix), _signatures(meta))


def _frozen(path: str) -> Source:
    def read(names: list[str]) -> dict[str, np.ndarray]:
        raise ExportError(f"{path} has variables, such as {names[0]}, but no values. Give the checkpoint.")

    return Source(path, "frozen graph", _parsed(path, tf_api.GraphDef), read, {})


def _parsed(path: str, kind: Any) -> Any:
    try:
        with open(path, "rb") as stream:
            return kind.FromString(stream.read())
    except Exception as error:  # protobuf's error has another name in each version
        raise ExportError(f"{path} is no {kind.DESCRIPTOR.name}: {error}. Give {KINDS}.") from error


def _signatures(meta: Message) -> dict[str, tuple[Names, Names]]:
    found: dict[str, tuple[Names, Names]] = {}
    for name, each in meta.signature_def.items():
        if each.outputs and name != "__saved_model_init_op":
            sides = (each.inputs, each.outputs)
            inputs, outputs = ({key: info.name for key, info in sorted(side.items())} for side in sides)
            found[name] = inputs, outputs
    return found


# --- variables


def prefix_of(path: str) -> str:
    """Return the prefix of the checkpoint in a folder, or with the name of one of its files."""
    prefix = tf.train.latest_checkpoint(path) if os.path.isdir(path) else None
    for ending in ("", ".meta", ".index"):
        if path.endswith(ending) and os.path.isfile(path[: len(path) - len(ending)] + ".index"):
            prefix = path[: len(path) - len(ending)]
    if prefix is None:
        raise ExportError(f"{path}: no model found. Give {KINDS}.")
    return str(prefix)


def checkpoint_reader(graph: GraphDef, prefix: str) -> Read:
    """Return a reader of the checkpoint of a graph. The graph's own ops that save say which key a variable has."""
    nodes, keys = by_name(graph), {}
    for node in graph.node:
        if node.op == "SaveV2":
            _, names, slices, *tensors = data_inputs(node)
            spelled = [_texts(nodes[split(each)[0]]) for each in (names, slices)]
            for tensor, key, part in zip(tensors, *spelled):
                keys[_variable(nodes, tensor)] = key, part

    def read(names: list[str]) -> dict[str, np.ndarray]:
        reader = tf.train.load_checkpoint(prefix)
        found = {}
        for name in names:
            key, part = keys.get(name, (name, ""))
            if not reader.has_tensor(key):
                raise ExportError(f"{prefix} has no variable {key}. Give the checkpoint that belongs to the graph.")
            found[name] = _part(reader.get_tensor(key), part)
        return found

    return read


def _variable(nodes: dict[str, Any], tensor: str) -> str:
    """Return the variable that an op saves."""
    node = nodes[split(tensor)[0]]
    while node.op in ("ReadVariableOp", "Identity"):
        node = nodes[split(node.input[0])[0]]
    return str(node.name)


def _texts(node: Message) -> list[str]:
    return [text.decode() for text in tf.make_ndarray(node.attr["value"].tensor).reshape(-1)]


def _part(value: np.ndarray, spec: str) -> np.ndarray:
    """Return the slice of a partitioned variable: ``10 4 0,5:-`` has the sizes of all, then start and size or -."""
    if not spec:
        return value
    ranges = [each.split(",") for each in spec.split()[-1].split(":")]
    return value[tuple(slice(None) if each == ["-"] else slice(int(each[0]), sum(map(int, each))) for each in ranges)]


# --- models that TensorFlow loads


def _saved_model(path: str, tags: str, shown: str | None = None, kind: str = "SavedModel") -> Source:
    saved = _parsed(os.path.join(path, "saved_model.pb"), tf_export.SavedModel)
    wanted = set(tags.split(","))
    metas = [each for each in saved.meta_graphs if set(each.meta_info_def.tags) == wanted]
    if not metas:
        there = "; ".join(",".join(each.meta_info_def.tags) for each in saved.meta_graphs)
        raise ExportError(f"{path} has no graph with the tags {tags}. Give --tags with one of: {there}.")
    if any(node.op == "SaveV2" for node in metas[0].graph_def.node):
        prefix = os.path.join(path, "variables", "variables")
        read = checkpoint_reader(metas[0].graph_def, prefix)
        return Source(shown or path, kind, metas[0].graph_def, read, _signatures(metas[0]))
    with tf.Graph().as_default():
        session = v1.Session()
        meta = v1.saved_model.load(session, sorted(wanted), path)
    return Source(shown or path, kind, session.graph.as_graph_def(), _session_reader(session), _signatures(meta))


def _session_reader(session: Any) -> Read:
    def read(names: list[str]) -> dict[str, np.ndarray]:
        with session.graph.as_default():
            return dict(session.run({name: value_of(session.graph, name) for name in names}))

    return read


def value_of(graph: Any, name: str) -> Any:
    """Return a tensor with the value of a variable. A graph that is finalized has it already."""
    tensor = graph.get_tensor_by_name(f"{name}:0")
    if tensor.dtype != tf.resource:
        return tensor
    for op in tensor.consumers():
        if op.type == "ReadVariableOp" and not op.control_inputs:
            return op.outputs[0]
    return tf.raw_ops.ReadVariableOp(resource=tensor, dtype=tf.as_dtype(tensor.op.get_attr("dtype")))


def _keras(path: str) -> Source:
    keras, kind = tf.keras, "Keras model"
    if tf.__version__.startswith("1."):
        with tf.Graph().as_default():
            keras.backend.set_learning_phase(0)
            model = _loaded(path)
            session = keras.backend.get_session()
            names = (
                {name: tensor.name for name, tensor in zip(model.input_names, model.inputs)},
                {name: tensor.name for name, tensor in zip(model.output_names, model.outputs)},
            )
            graph = session.graph.as_graph_def()
            return Source(path, kind, graph, _session_reader(session), {DEFAULT: names})
    model = _loaded(path)
    if not model.inputs:
        raise ExportError(
            f"{path}: a subclassed model has no input shapes. Save it with model.export or as SavedModel."
        )
    return keras_source(path, kind, {DEFAULT: (model, model.inputs)})


def keras_source(path: str, kind: str, models: dict[str, tuple[Any, Any]]) -> Source:
    """Return models of Keras.

    Args:
        path, kind: for messages.
        models: by the names of their signatures, with what they are called with, a structure with shapes and types.
    """
    functions = {name: _predicting(*each) for name, each in models.items()}
    weights = [each for model, _ in models.values() for each in model.variables]
    return function_source(
        path, kind, functions, [each if isinstance(each, tf.Variable) else each.value for each in weights]
    )


def _predicting(model: Any, inputs: Any) -> Any:
    flat, several = tf.nest.flatten(inputs), isinstance(inputs, (list, tuple, dict)) and len(inputs) > 1
    keys = [(getattr(each, "name", None) or f"input_{number}").split(":")[0] for number, each in enumerate(flat)]
    specs = [tf.TensorSpec(each.shape, each.dtype, key) for key, each in zip(keys, flat)]
    outputs = list(getattr(model, "output_names", None) or [])

    def predict(*tensors: Any) -> Any:
        given = tf.nest.pack_sequence_as(inputs, tensors) if several else tensors[0]
        made = tf.nest.flatten(model(given, training=False))
        names = outputs if len(outputs) == len(made) else [f"output_{number}" for number in range(len(made))]
        return dict(zip(names, made))

    return tf.function(predict, input_signature=specs)


def function_source(path: str, kind: str, functions: dict[str, Any], variables: Any) -> Source:
    """Return models that are tf.functions, by the names of their signatures."""
    saved = tf.Module()  # not a model of Keras, of which TensorFlow would trace every layer
    saved.weights = list(variables)
    with tempfile.TemporaryDirectory(prefix="npu_shim_export_") as folder:
        tf.saved_model.save(saved, folder, signatures=functions)
        made = _saved_model(folder, "serve", path, kind)
    return made._replace(signatures={name: made.signatures[name] for name in functions})  # in their order


def restores(model: Any, path: str) -> bool:
    """Give a model of Keras the weights of a file or checkpoint; return False if they are of another model.

    Args:
        model: built.
        path: of `Model.save_weights` or of a `tf.train.Checkpoint`, in which the model has any name.
    """
    if path.endswith(KERAS_FILES):
        model.load_weights(path)
        return True
    prefix = prefix_of(path)
    keys = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
    names = sorted({key.split("/")[0] for key in keys if "/.ATTRIBUTES/" in key}, key=lambda name: name != model.name)
    loads = [tf.train.Checkpoint(**{name: model}).restore for name in names if name != "save_counter"]
    for load in [*loads, model.load_weights]:
        try:
            load(prefix).assert_existing_objects_matched()
            return True
        except (AssertionError, ValueError, AttributeError):  # of other objects, of other shapes, not in Keras 3
            continue
    return False


def _loaded(path: str) -> Any:
    try:
        return tf.keras.models.load_model(path, compile=False)
    except ValueError as error:
        raise ExportError(
            f"{path}: Keras does not load it: {str(error).splitlines()[0]} Save it with its architecture (model.save), "
            "and with its own layers as a SavedModel."
        ) from error
