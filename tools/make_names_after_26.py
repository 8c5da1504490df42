"""Make the tables of names of TensorFlow 2 and Keras in convert_tf2npu/tf_api.

Each version of TensorFlow dumps its names::

    cd tools
    for version in 115 26 215 221; do PYTHON$version make_names_after_26.py dump > $version.json; done
    python make_names_after_26.py table 26.json 215.json 221.json > convert_tf2npu/tf_api/names_after_26.json
    python make_names_after_26.py keras 115.json 26.json 215.json 221.json > convert_tf2npu/tf_api/keras_names.json

The first table has the public names of TensorFlow 2.15 and Keras 3 that 2.6 lacks. The third version adds the names of
its Keras, methods left out. A name that is missing stands for all names below it. Arguments are those of functions and
constructors that the first two versions have. The second table has the names that a star import of each module of Keras
brings, of all versions.
"""

from __future__ import annotations

import enum
import inspect
import io
import json
import os
import sys
import types
import warnings
from typing import Any, Callable, Dict

# Names for TensorFlow itself, and those that scripts for version 1 use.
_OTHERS = ("compat", "raw_ops", "estimator", "lite", "tpu", "test", "__internal__", "_api", "python", "core", "tools")
# The modules of Keras from which scripts import everything.
_MODULES = """activations applications backend callbacks constraints datasets initializers layers losses metrics models
optimizers preprocessing preprocessing.image preprocessing.sequence preprocessing.text regularizers utils""".split()
# Classes whose methods are compared too.
_CLASSES = ("data.Dataset", "keras.Model")

Names = Dict[str, Any]  # what a version of TensorFlow has, by kind and name


def dump() -> Names:
    """Return the public names of the TensorFlow of this Python, and the arguments of its functions."""
    import tensorflow as tf

    names: set[str] = set()
    arguments: dict[str, list[str]] = {}
    seen: set[int] = set()

    def visit(module: types.ModuleType, path: str) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        for name in dir(module):
            if name.startswith("_") or not path and name in _OTHERS:
                continue
            try:
                found = getattr(module, name)
            except (AttributeError, ImportError):
                continue
            full = f"{path}.{name}" if path else name
            if inspect.ismodule(found):
                if "tensorflow" in found.__name__ or "keras" in found.__name__:
                    names.add(full)
                    visit(found, full)
                continue
            names.add(full)
            parameters = _arguments(found)
            if parameters is not None:
                arguments[full] = parameters

    visit(tf, "")
    visit(tf.keras, "keras")  # loaded lazily
    for path, found in zip(_CLASSES, (tf.data.Dataset, tf.keras.Model)):
        names.update(f"{path}.{name}" for name in dir(found) if not name.startswith("_"))
    return {"version": tf.__version__, "names": sorted(names), "arguments": arguments}


def _arguments(found: Callable[..., object]) -> list[str] | None:
    """Return the arguments of a function or constructor; None if they are not known or it takes any."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return None
    if isinstance(found, enum.EnumMeta) or any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return [parameter.name for parameter in parameters]


def missing(old: Names, new: Names) -> list[str]:
    """Return the names that only the newer version has, without those below another one."""
    lost = set(new["names"]) - set(old["names"])
    return sorted(n for n in lost if not any(n[:i] in lost for i, c in enumerate(n) if c == "."))


def added(old: Names, new: Names) -> dict[str, str]:
    """Return the arguments that only the newer version has, by function, joined by spaces."""
    found = {}
    for name, arguments in new["arguments"].items():
        if name in old["arguments"]:
            more = sorted(set(arguments) - set(old["arguments"][name]))
            if more:
                found[name] = " ".join(more)
    return found


def with_keras(new: Names, newest: Names) -> Names:
    """Return the names of a version, and those of the Keras of a later one."""
    keras = (n for n in newest["names"] if n.startswith("keras.") and not n.startswith(_CLASSES))
    return {**new, "names": [*new["names"], *keras]}


def names_after_26(old: Names, new: Names, newest: Names) -> Names:
    """Return the first table."""
    new = with_keras(new, newest)
    return {"names": missing(old, new), "arguments": dict(sorted(added(old, new).items()))}


def keras_names(*versions: Names) -> Names:
    """Return the second table."""
    names = {name for version in versions for name in version["names"]}
    prefixes = {module: f"keras.{module}." if module else "keras." for module in ["", *_MODULES]}
    return {
        module: sorted(
            name[len(prefix) :] for name in names if name.startswith(prefix) and "." not in name[len(prefix) :]
        )
        for module, prefix in prefixes.items()
    }


def main() -> int:
    warnings.simplefilter("ignore")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    if sys.argv[1:] == ["dump"]:
        out, sys.stdout = sys.stdout, io.StringIO()  # output of TensorFlow must not get into the table
        json.dump(dump(), out)
        return 0
    makers: dict[str, Callable[..., Names]] = {"table": names_after_26, "keras": keras_names}
    maker = makers.get(" ".join(sys.argv[1:2]))
    if maker and len(sys.argv) > 4:
        versions = []
        for path in sys.argv[2:]:
            with open(path, encoding="utf-8") as stream:
                versions.append(json.load(stream))
        print(json.dumps(maker(*versions), indent=1))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
