"""The public names of TensorFlow's private modules, and names that are public in two places."""

from __future__ import annotations

import re

# Private modules whose names are all public in one module.
_MODULES = {
    "tensorflow.core.protobuf.config_pb2": "tensorflow",
    "tensorflow.core.protobuf.rewriter_config_pb2.RewriterConfig": "tensorflow.RewriterConfig",
    "tensorflow.python.client.session": "tensorflow",
    "tensorflow.python.compiler.xla.jit": "tensorflow.contrib.compiler.jit",
    "tensorflow.python.compiler.xla.xla": "tensorflow.xla.experimental",
    "tensorflow.python.eager.def_function": "tensorflow",
    "tensorflow.python.eager.backprop": "tensorflow",
    "tensorflow.python.framework.config": "tensorflow.config",
    "tensorflow.python.framework.constant_op": "tensorflow",
    "tensorflow.python.framework.ops": "tensorflow",
    "tensorflow.python.layers.core": "tensorflow.layers",
    "tensorflow.python.layers.layers": "tensorflow.layers",
    "tensorflow.python.ops.array_ops": "tensorflow",
    "tensorflow.python.ops.clip_ops": "tensorflow",
    "tensorflow.python.ops.ctc_ops": "tensorflow.nn",
    "tensorflow.python.ops.embedding_ops": "tensorflow.nn",
    "tensorflow.python.ops.gradients": "tensorflow",
    "tensorflow.python.ops.gradients_impl": "tensorflow",
    "tensorflow.python.ops.image_ops": "tensorflow.image",
    "tensorflow.python.ops.image_ops_impl": "tensorflow.image",
    "tensorflow.python.ops.init_ops": "tensorflow",
    "tensorflow.python.ops.io_ops": "tensorflow",
    "tensorflow.python.ops.logging_ops": "tensorflow",
    "tensorflow.python.ops.lookup_ops": "tensorflow.lookup",
    "tensorflow.python.ops.math_ops": "tensorflow.math",
    "tensorflow.python.ops.nn": "tensorflow.nn",
    "tensorflow.python.ops.nn_impl": "tensorflow.nn",
    "tensorflow.python.ops.nn_ops": "tensorflow.nn",
    "tensorflow.python.ops.parsing_ops": "tensorflow",
    "tensorflow.python.ops.random_ops": "tensorflow",
    "tensorflow.python.ops.script_ops": "tensorflow",
    "tensorflow.python.ops.state_ops": "tensorflow",
    "tensorflow.python.ops.string_ops": "tensorflow.strings",
    "tensorflow.python.ops.variable_scope": "tensorflow",
    "tensorflow.python.ops.variables": "tensorflow",
    "tensorflow.python.summary.summary": "tensorflow.summary",
    "tensorflow.contrib.slim.python.slim.learning": "tensorflow.contrib.slim.learning",
    "tensorflow.contrib.slim.python.slim.evaluation": "tensorflow.contrib.slim.evaluation",
    "tensorflow_estimator.estimator": "tensorflow.estimator",
}
# Families of such modules, where only the last name tells: the path of modules, and where it is public.
_FAMILIES = tuple(
    (re.compile(pattern + r"\.(?=[A-Za-z_]\w*\Z)"), new)
    for pattern, new in (
        (r"tensorflow\.contrib\.(\w+)\.python(?:\.\w+)*", r"tensorflow.contrib.\1."),
        (r"tensorflow(?:_estimator)?\.python\.estimator\.tpu(?:\.\w+)*", "tensorflow.estimator.tpu."),
        (r"tensorflow(?:_estimator)?\.python\.estimator\.export(?:\.\w+)*", "tensorflow.estimator.export."),
        (r"tensorflow(?:_estimator)?\.python\.estimator\.keras", "tensorflow.keras.estimator."),
        (r"tensorflow(?:_estimator)?\.python\.estimator(?:\.\w+)*", "tensorflow.estimator."),
        (r"tensorflow\.python\.distribute\.\w+", "tensorflow.distribute."),
        (r"tensorflow\.python\.training\.experimental\.\w+", "tensorflow.train.experimental."),
        (r"tensorflow\.python\.training(?:\.\w+)*", "tensorflow.train."),
        (r"tensorflow\.python\.tpu\.tpu_(?:config|estimator)", "tensorflow.estimator.tpu."),
        (r"tensorflow\.python\.tpu(?:\.\w+)*", "tensorflow.tpu."),
        (r"tensorflow\.python\.data\.experimental\.ops\.\w+", "tensorflow.data.experimental."),
        (r"tensorflow\.python\.data\.ops\.\w+", "tensorflow.data."),
        (r"tensorflow\.python\.keras\.engine\.\w+", "tensorflow.keras."),
        (r"tensorflow\.python\.keras\.(layers|applications|utils|callbacks)\.[a-z]\w*", r"tensorflow.keras.\1."),
        (r"tensorflow\.python\.keras\.optimizer_v[12]\.\w+", "tensorflow.keras.optimizers."),
    )
)
# Packages whose other names are public under the same path.
_PACKAGES = (("tensorflow.python.data.", "tensorflow.data."), ("tensorflow.python.keras.", "tensorflow.keras."))
_CLASS = re.compile(r"[A-Z]")
# Names that are public in two places, and their canonical spelling.
SAME = {
    "tensorflow.math.tanh": "tensorflow.tanh",
    "tensorflow.nn.tanh": "tensorflow.tanh",
    "tensorflow.keras.backend.tanh": "tensorflow.tanh",
    "tensorflow.keras.activations.tanh": "tensorflow.tanh",
    "tensorflow.math.cast": "tensorflow.cast",
    "tensorflow.math.range": "tensorflow.range",
    "tensorflow.math.pow": "tensorflow.pow",
    "tensorflow.keras.backend.pow": "tensorflow.pow",
    "tensorflow.math.sqrt": "tensorflow.sqrt",
    "tensorflow.keras.backend.sqrt": "tensorflow.sqrt",
    "tensorflow.math.square": "tensorflow.square",
    "tensorflow.keras.backend.square": "tensorflow.square",
    "tensorflow.math.multiply": "tensorflow.multiply",
    "tensorflow.math.add": "tensorflow.add",
    "tensorflow.math.sigmoid": "tensorflow.sigmoid",
    "tensorflow.nn.sigmoid": "tensorflow.sigmoid",
    "tensorflow.train.SessionRunHook": "tensorflow.estimator.SessionRunHook",
    "tensorflow.estimator.EstimatorV2": "tensorflow.estimator.Estimator",
    "tensorflow.contrib.slim.dropout": "tensorflow.contrib.layers.dropout",
    "tensorflow.config.set_optimizer_jit": "tensorflow.config.optimizer.set_jit",
    "tensorflow.keras.layers.Input": "tensorflow.keras.Input",
    "tensorflow.keras.models.Sequential": "tensorflow.keras.Sequential",
    "tensorflow.keras.models.Model": "tensorflow.keras.Model",
}


def public(name: str) -> str:
    """Return the public name of a name that may be private.

    Args:
        name: a dotted name, for example ``tensorflow.python.client.session.Session``.

    Returns:
        The public name, for example ``tensorflow.Session``. Public names are returned unchanged.
    """
    if ".python." not in name and ".core." not in name and not name.startswith("tensorflow_estimator."):
        return name
    parts = name.split(".")
    for cut in range(len(parts), 1, -1):
        module = _MODULES.get(".".join(parts[:cut]))
        if module:
            return ".".join([module] + parts[cut:])
    # The parts after the first class are its attributes.
    end = next((i for i, part in enumerate(parts) if _CLASS.match(part)), len(parts) - 1) + 1
    whole = ".".join(parts[:end])
    for pattern, new in _FAMILIES:
        match = pattern.match(whole)
        if match:
            return ".".join([match.expand(new) + whole[match.end() :]] + parts[end:])
    for old, new in _PACKAGES:
        if name.startswith(old):
            return new + name[len(old) :]
    return name
