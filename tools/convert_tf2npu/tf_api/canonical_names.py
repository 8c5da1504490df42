"""The canonical spelling of each TensorFlow name, independent of how a script imports it.

``tensorflow.compat.v1.Session``, ``tensorflow.python.client.session.Session`` and ``tensorflow.Session`` are the same
object. Rules name it ``tensorflow.Session``.
"""

from __future__ import annotations

import functools
import re

from .name_tables import CANONICAL_NAMES
from .private_aliases import public_name

_VERSIONED = ("tensorflow.compat.v1", "tensorflow.compat.v2", "tensorflow._api.v1", "tensorflow._api.v2")
_MOVED = (
    ("tensorflow.contrib.tpu", "tensorflow.estimator.tpu"),
    ("tensorflow.tpu", "tensorflow.estimator.tpu"),
    ("tensorflow.contrib.data", "tensorflow.data.experimental"),
)
# The path of TensorFlow in Google's repository. Its scripts try this path first and then the package.
_GOOGLES = "google3.third_party.tensorflow"
# The packages whose public interfaces npu_shim has. Scripts that use it are already ported.
_VENDOR = {"npu_bridge": "npu_shim", "npu_device": "npu_shim.npu_device"}
_OUR_HOROVOD = "npu_shim.horovod."
# Keras as a package of its own. With TensorFlow 2 it has what tf.keras has; tf_keras is Keras 2 for TensorFlow 2.16.
_KERAS = frozenset({"keras", "tf_keras"})
# Modules in which Keras 2 has the layers that are public one level higher.
_OF_LAYERS = re.compile(
    r"tensorflow\.keras\.layers\.(?:advanced_activations|convolutional|core|embeddings|merge|noise|normalization|"
    r"pooling|recurrent|wrappers)\.(?=[A-Z])"
)


@functools.lru_cache(maxsize=65536)
def canonical_name(name: str) -> str:
    """Return the canonical spelling of a dotted name.

    Args:
        name: a dotted name as imported, for example ``tensorflow.compat.v1.Session``.

    Returns:
        The spelling that rules use, for example ``tensorflow.Session``. Other names are returned unchanged.
    """
    head, _, rest = name.partition(".")
    if head in _VENDOR:
        name = _VENDOR[head] + ("." + rest if rest else "")
    if name.startswith(_OUR_HOROVOD):
        head, name = "horovod", name[len("npu_shim.") :]
    elif name.startswith("npu_shim."):
        # npu_init and the vendor's module paths have the same objects.
        last = name.rsplit(".", 1)[1]
        return name if last == "npu_init" else _canonical_npu_name(name)
    if head in _KERAS:
        name = _OF_LAYERS.sub("tensorflow.keras.layers.", f"tensorflow.keras.{rest}" if rest else "tensorflow.keras")
        return CANONICAL_NAMES.get(name, name)
    if head == "horovod":
        # One interface under several paths. The interfaces of other frameworks keep their paths.
        for prefix in ("horovod.tensorflow.keras", "horovod.tensorflow", "horovod.keras"):
            if name == prefix or name.startswith(prefix + "."):
                return "horovod" + name[len(prefix) :]
        return "another " + name
    if name.startswith(_GOOGLES + "."):
        name = "tensorflow" + name[len(_GOOGLES) :]
    elif head == "tf_slim":
        name = "tensorflow.contrib.slim" + name[len(head) :]
    elif head not in ("tensorflow", "tensorflow_estimator"):
        return name
    version = _versioned_module_of(name)
    while version:  # compat.v1 has a compat.v1 too
        name = "tensorflow" + name[len(version) :]
        version = _versioned_module_of(name)
    return CANONICAL_NAMES.get(public_name(name), public_name(name))


def is_standalone_keras(name: str) -> bool:
    """Return True if a name as spelled is in the package keras, not in tf.keras."""
    return name.partition(".")[0] in _KERAS


def _versioned_module_of(name: str) -> str:
    """Return the versioned module at the start of a name, or ""."""
    return next((v for v in _VERSIONED if name == v or name.startswith(v + ".")), "")


@functools.lru_cache(maxsize=4096)
def location_outside_contrib(name: str) -> str:
    """Return the new location of a canonical name that moved out of contrib; other names are returned unchanged.

    Scripts try one location and then the other.
    """
    for old, new in _MOVED:
        if name == old or name.startswith(old + "."):
            return new + name[len(old) :]
    return name


def _canonical_npu_name(name: str) -> str:
    parts = name.split(".")
    for index, part in enumerate(parts):
        if part in ("npu_ops", "npu_unary_ops"):
            # npu_shim.estimator.npu_unary_ops.npu_unary_ops is the op module inside its own module.
            tail = [p for p in parts[index + 1 :] if p != part]
            return ".".join(["npu_shim.npu_init", part] + tail)
    if parts[-1].startswith(("npu_", "NPU", "set_keras", "close_session")):
        return "npu_shim.npu_init." + parts[-1]
    return name


def is_tf1_name(name: str) -> bool:
    """Return True if a name as spelled is certainly in the TensorFlow 1 interface."""
    return name.startswith(("tensorflow.compat.v1.", "tensorflow._api.v1.", "tensorflow.python."))


def is_known_tf2_spelling(name: str) -> bool:
    """Return True if a name is one of the spellings of TensorFlow 2 that are known and that TensorFlow 1 lacks."""
    return name.startswith("tensorflow.optimizers.") or name in (
        "tensorflow.compat.v2.enable_v2_behavior",
        "tensorflow.random.set_seed",
        "tensorflow.summary.create_file_writer",
    )
