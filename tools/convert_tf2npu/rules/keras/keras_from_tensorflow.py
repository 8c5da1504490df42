"""Import Keras from TensorFlow.

On the NPU, programs of TensorFlow 2 run with TensorFlow 2.6. Its package ``keras`` lacks most public names, such as
``keras.optimizers.Adam``, ``keras.utils.to_categorical`` and ``keras.datasets.mnist``; ``tf.keras`` has them. The rule
imports Keras from TensorFlow in programs that train with TensorFlow 2, or with a version that they do not show. In
TensorFlow 2.15 and 2.21 both names are the same Keras, and with TensorFlow 1 only ``tf.keras`` runs on the NPU.

An import of several modules is split.

The rule reports imports that it cannot convert: of private modules such as ``keras.engine``, and of names that
``tf.keras`` lacks in one of the versions, such as ``keras.saving``, or in all of them, such as the class ``_Merge``. It
also reports a star import if the file uses a name that only the package may bring, such as the ``np`` that its module
imports.

With facts of ``npu-shim observe``, an import that cannot be converted is not reported if it ran with TensorFlow 2.6 in all
observed runs: there the package is the Keras of TensorFlow, and has the name. Errors of other statements do not matter.

Before::

    import keras
    from keras import layers
    from keras.optimizers import Adam
    import keras.backend as K

    model = keras.Sequential([layers.Dense(1)])
    model.compile(Adam(K.epsilon()), 'mse')
    model.fit(images, labels)

After::

    from tensorflow import keras
    from tensorflow.keras import layers
    from tensorflow.keras.optimizers import Adam
    from tensorflow.keras import backend as K
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = keras.Sequential([layers.Dense(1)])
    model.compile(Adam(K.epsilon()), 'mse')
    model.fit(images, labels)

Before::

    from keras.layers.core import Dense, Dropout
    from keras.models import Sequential
    from keras.utils.np_utils import to_categorical
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = Sequential([Dropout(0.1), Dense(1)])
    model.fit(images, to_categorical(labels))

After::

    from tensorflow.keras.layers import Dense, Dropout
    from tensorflow.keras.models import Sequential
    from tensorflow.keras.utils import to_categorical
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = Sequential([Dropout(0.1), Dense(1)])
    model.fit(images, to_categorical(labels))

Before::

    from keras.layers import Dense
    from keras.models import Sequential
    from keras.utils import np_utils

    model = Sequential([Dense(10)])
    model.fit(images, np_utils.to_categorical(labels))

After::

    from tensorflow.keras.layers import Dense
    from tensorflow.keras.models import Sequential
    from tensorflow.keras import utils as np_utils
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = Sequential([Dense(10)])
    model.fit(images, np_utils.to_categorical(labels))

Before::

    import numpy as np, keras, keras.backend as K
    from keras import layers

    model = keras.Sequential([layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(np.ones([2, K.ndim(x)]), labels)

After::

    import numpy as np
    from tensorflow import keras
    from tensorflow.keras import backend as K
    from tensorflow.keras import layers
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = keras.Sequential([layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(np.ones([2, K.ndim(x)]), labels)

Reported::

    from keras.layers.merge import _Merge
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model.fit(images, labels, epochs=1)

Reported::

    import keras.layers.core
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = keras.Sequential([keras.layers.core.Dense(1)])
    model.fit(images, labels)

Before::

    from data import images, labels
    from keras.layers import *
    from keras.models import *

    model = Sequential([Dense(1)])
    model.compile('adam', 'mse')
    model.fit(images, labels)

After::

    from data import images, labels
    from tensorflow.keras.layers import *
    from tensorflow.keras.models import *
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = Sequential([Dense(1)])
    model.compile('adam', 'mse')
    model.fit(images, labels)

Reported::

    from keras.models import *
    import npu_shim.npu_device as npu

    npu.open().as_default()
    images = np.zeros([3, 1])
    model = load_model('model.h5')
    model.fit(images, images)

Reported::

    import keras
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = keras.Sequential([keras.layers.Dense(1)])
    model.fit(images, labels)
    keras.saving.KerasFileEditor('model.keras').summary()

Untouched::

    from tensorflow.keras import utils as np_utils
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model.fit(images, np_utils.to_categorical(labels), epochs=1)

Untouched::

    from tensorflow import keras
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = keras.Sequential([keras.layers.Dense(1)])
    model.fit(images, labels)

Untouched::

    import os

    os.environ['KERAS_BACKEND'] = 'jax'  # npu: ignore[NPU277]
    import keras

    model = keras.Sequential([keras.layers.Dense(1)])
    model.fit(images, labels)

Untouched::

    import numpy as np, keras

    images = keras.utils.to_categorical(np.arange(3))

Untouched::

    import keras

    layer = keras.layers.Dense(1)
"""

from __future__ import annotations

import ast
import builtins
import re
from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.keras_package import keras_imports
from ...analysis.tensorflow_version import may_be_tf2, version_verdict
from ...rewrite.later_conversions import conversions_for_26
from ...semantics.model import Binding, Star
from ...semantics.stars import keras_star_exports
from ...syntax.source import Edit
from ...tf_api.name_tables import KERAS_NAMES
from ..base import Change, Context, Finding, Message

CODE = "NPU123"
DELIBERATE = "takes Keras from TensorFlow in place of the package keras"
_OF_NPU = "2.6."  # the version whose package keras, the Keras of TensorFlow, programs have on the NPU
# The modules that tf.keras and the package have in common.
_PUBLIC = re.compile(
    r"activations|applications(\.\w+)?|backend|callbacks(\.experimental)?|constraints|datasets(\.\w+)?|distribution|"
    r"config|dtype_policies|estimator|experimental|export|initializers|layers(\.experimental(\.preprocessing)?)?|losses|"
    r"metrics|mixed_precision(\.experimental)?|models|ops(\.\w+)?|optimizers(\.(schedules|legacy|experimental))?|"
    r"preprocessing(\.\w+)?|quantizers|random|regularizers|tree|utils(\.(legacy|experimental))?|wrappers(\.\w+)?"
)
# Modules of Keras 2 with names that are public one level higher.
_PRIVATE = re.compile(
    r"(layers)\.(?:advanced_activations|convolutional|core|embeddings|merge|noise|normalization|pooling|recurrent|"
    r"wrappers)|(utils)\.(?:generic_utils|np_utils|vis_utils)"
)
_KNOWN = (_PUBLIC, _PRIVATE, re.compile("|__.*"))
_MODULE_NAMES = frozenset({"__annotations__", "__doc__", "__file__", "__name__", "__package__", "__path__", "__spec__"})
# Names that tf.keras lacks in TensorFlow 2.16 and later.
_LACKING = re.compile(r"saving\b|protobuf\b|(losses|metrics)\.(kl_divergence|log_cosh|mean_(absolute|squared)_\w+)$")


def check_file(context: Context) -> Iterator[Change | Finding]:
    names = context.names
    if names.keras_apart or "keras" not in context.source.text or not may_be_tf2(context):
        return
    imports = [binding for binding in keras_imports(names) if binding.target.partition(".")[0] == "keras"]
    if not (imports or names.stars) or is_in_test(context, names.tree):
        return
    if not version_verdict(context).on_npu:
        return
    by_statement: dict[ast.AST, list[Binding]] = {}
    unknown = _first_unknown_star_name(context)
    stars = {star.node for star in names.stars if _is_keras_star(star)}
    for star in names.stars:
        if _is_keras_star(star):
            by_statement[star.node] = []
    for binding in imports:
        assert binding.where.statement is not None
        by_statement.setdefault(binding.where.statement, []).append(binding)
    later = conversions_for_26(context)
    for node, bindings in by_statement.items():
        if node in later.gone:
            continue
        bindings = [binding for binding in bindings if id(binding) not in later.bindings]
        lacking = unknown if node in stars else _first_lacking_name(context, bindings)
        if not lacking:
            yield Change(node, "keras imported from TensorFlow", (_edit_of_import(context, node),))
            continue
        if context.ran_with_tensorflow(_OF_NPU, CODE, node):
            continue
        what = Message("tf.keras lacks {0} in some versions", lacking)
        if node in stars:
            what = Message("only this import may bring {0}, which tf.keras lacks", lacking)
        yield Finding(node, "{0}. Import the names that TensorFlow has from tensorflow.keras", what)


def _is_keras_star(star: Star) -> bool:
    package, _, module = star.module.partition(".")
    return package == "keras" and any(known.fullmatch(module) for known in (_PUBLIC, _PRIVATE))


def _first_unknown_star_name(context: Context) -> str:
    """Return the first name that only a star import of Keras can bring, and that tf.keras does not have; "" if none."""
    names = context.names
    if not all(_is_keras_star(star) or keras_star_exports(star.module, "") is not None for star in names.stars):
        return ""  # another module may bring it
    for node, where in names.reads:
        if names.bindings_of_name(node.id, where) is None and not hasattr(builtins, node.id):
            if node.id not in _MODULE_NAMES and names.resolved_name(node, where) is None:
                return node.id
    return ""


def _edit_of_import(context: Context, node: ast.AST) -> Edit:
    """Return the edit of an import statement; one of several modules is split."""
    source = context.source
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        home = _public_module_of_single_import(node)
        if home:
            name = node.names[0].asname or node.names[0].name
            bound = f" as {name}" if name != home else ""
            return Edit(source.start(node), source.end(node), f"from tensorflow.keras import {home}{bound}")
        written = re.compile(r"[\s\\]*\.[\s\\]*".join(module.split("."))).search(source.text, source.start(node))
        assert written is not None
        rest = module.partition(".")[2]
        return Edit(written.start(), written.end(), "tensorflow.keras" + (f".{_public_name(rest)}" if rest else ""))
    assert isinstance(node, ast.Import)
    start = source.start(node)
    indent = source.text[source.line_start(start) : start]
    others = ", ".join(_text_of_alias(alias) for alias in node.names if not _is_keras_alias(alias))
    lines = [f"import {others}"] * bool(others) + [
        _import_line_from_tensorflow(a) for a in node.names if _is_keras_alias(a)
    ]
    return Edit(start, source.end(node), ("; " if indent.strip() else source.newline + indent).join(lines))


def _is_keras_alias(alias: ast.alias) -> bool:
    return alias.name.partition(".")[0] == "keras"


def _text_of_alias(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _import_line_from_tensorflow(alias: ast.alias) -> str:
    """Return the import that binds the same name to the module of tf.keras."""
    home, _, last = f"tensorflow.{alias.name}".rpartition(".")
    if not alias.asname:
        home, last = "tensorflow", "keras"  # import keras.layers binds keras
    return f"from {home} import {last}" + (f" as {alias.asname}" if alias.asname and alias.asname != last else "")


def _public_module_of_single_import(node: ast.ImportFrom) -> str:
    """Return ``utils`` for ``from keras.utils import np_utils``, the one name of a statement; "" for other imports."""
    module = ".".join([*(node.module or "").split(".")[1:], node.names[0].name])
    return _public_name(module) if len(node.names) == 1 and _PRIVATE.fullmatch(module) else ""


def _public_name(module: str) -> str:
    match = _PRIVATE.fullmatch(module)
    return match.group(1) or match.group(2) if match else module


def _first_lacking_name(context: Context, bindings: list[Binding]) -> str:
    """Return the first name of Keras, of those that some imports bring, that tf.keras lacks; "" if it has all."""
    for name, written in _used_names_before_and_after(context, bindings):
        rest = name.partition(".")[2]
        if _LACKING.match(rest) or not any(
            known.fullmatch(part) for part in _possible_modules(rest) for known in _KNOWN
        ):
            return name
        if not _may_be_public(written.partition(".")[2]):
            return name
    return ""


def _may_be_public(name: str) -> bool:
    """Return False if a module of tf.keras whose names are known has no such name in any version."""
    parts = name.split(".")
    for end in range(len(parts) - 1, -1, -1):
        known = KERAS_NAMES.get(".".join(parts[:end]))
        if known is not None:
            return name in KERAS_NAMES or parts[end] in known or not parts[end] or parts[end].startswith("__")
    return True


def _possible_modules(name: str) -> list[str]:
    """Return what may be the module of a name below keras: the parts before a class, or a function or the name."""
    parts = name.split(".")
    lower = next((index for index, part in enumerate(parts) if not part.islower()), len(parts))
    if lower < len(parts) or name.startswith("__"):
        return [".".join(parts[:lower])]
    return [name, ".".join(parts[:-1])] if len(parts) > 1 else [name]


def _used_names_before_and_after(context: Context, bindings: list[Binding]) -> Iterator[tuple[str, str]]:
    """Yield the names that imports bring, and those that the file uses of them, before and after the change."""
    names, later = context.names, conversions_for_26(context).nodes
    after = {binding.target: _name_after_change(binding) for binding in bindings}
    yield from after.items()
    brought = {id(binding) for binding in bindings}
    for node, where in names.reads:
        if any(id(binding) in brought for binding in names.bindings_of_name(node.id, where) or ()):
            whole: ast.AST = node
            parent = names.parents.get(whole)
            while isinstance(parent, ast.Attribute):
                whole, parent = parent, names.parents.get(parent)
            if any(part in later for part in ast.walk(whole)):
                continue
            name = names.spelled_name(whole, where) or bindings[0].target
            name = name[len("tensorflow.") :] if name.startswith("tensorflow.keras.") else name
            target = max((t for t in after if name.startswith(t)), key=len, default="")
            yield name, after.get(target, "") + name[len(target) :]


def _name_after_change(binding: Binding) -> str:
    """Return the name of an import after the change."""
    node, target = binding.where.statement, binding.target
    if not isinstance(node, ast.ImportFrom):
        return target
    package, _, module = (node.module or "").partition(".")
    home = _public_module_of_single_import(node) or ".".join(
        filter(None, [_public_name(module), target.rpartition(".")[2]])
    )
    return f"{package}.{home}"
