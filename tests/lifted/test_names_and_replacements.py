"""The tool's tables of names equal what the installed TensorFlow has."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as v1
from convert_tf2npu.rules.compat_v1.contrib.replacements import REPLACEMENTS
from convert_tf2npu.tf_api.name_tables import (
    CHANGED,
    DIFFERENT,
    GONE,
    MISSING,
    MODULES,
    ONLY_IN_2,
    PARAMETERS,
    SESSION_METHOD_PARAMETERS,
    SESSION_PARAMETERS,
)
from tensorflow.python.util import tf_inspect

pytestmark = pytest.mark.smoke

IS_1 = tf.__version__.startswith("1.")
HAS_ALL = hasattr(v1, "estimator")  # TensorFlow 2.16 and later have neither Estimator nor the Keras of TensorFlow 1


def found(root: Any, name: str) -> Any:
    for word in name.split("."):
        root = getattr(root, word)
    return root


def has(root: Any, name: str) -> bool:
    try:
        found(root, name)
    except Exception:  # lazily loaded parts that are not there
        return False
    return True


def parameters(function: Any) -> list[str]:
    names = tf_inspect.getfullargspec(function.__init__ if inspect.isclass(function) else function).args
    return [name for name in names if name not in ("self", "_sentinel")]


def of_contrib(name: str) -> Any:
    try:
        return found(tf.contrib, name)
    except AttributeError:  # not loaded with the others
        module, _, rest = name.partition(".")
        return found(importlib.import_module("tensorflow.contrib." + module), rest)


def test_lifted_names_are_in_compat_v1() -> None:
    names = sorted(MISSING | DIFFERENT) if HAS_ALL else ["placeholder", "Session", "where", "data.Dataset"]
    assert not [name for name in names if not has(v1, name)]


def test_the_listed_modules_can_be_imported() -> None:
    for name in sorted(MODULES) if HAS_ALL else ("nn", "train", "data.experimental"):
        importlib.import_module("tensorflow.compat.v1." + name)


LISTED = {**PARAMETERS, **SESSION_PARAMETERS, **SESSION_METHOD_PARAMETERS}
IN_1 = [name for name in sorted(LISTED) if "gan" not in name]  # a package of its own


@pytest.mark.parametrize("name", IN_1 if IS_1 else ["tensorflow.Session"])
def test_the_listed_parameters_are_those_of_the_function(name: str) -> None:
    name, words = name.partition(".")[2], LISTED[name]
    contrib, _, rest = name.partition("contrib.")
    of_function = parameters(inspect.unwrap(of_contrib(rest) if not contrib else found(v1, name)))
    # Later versions have more of them, and calls give the last ones by name.
    assert of_function[: len(words)] == [word for word in words if word in of_function]
    assert len(of_function) > len(words) or list(words[: len(of_function)]) == of_function


@pytest.mark.parametrize("name", sorted(REPLACEMENTS) if HAS_ALL else ["framework.get_or_create_global_step"])
def test_a_replacement_takes_the_listed_arguments(name: str) -> None:
    replacement = REPLACEMENTS[name]
    there = found(v1, replacement.name)
    if replacement.after:
        assert parameters(there)[: len(replacement.after)] == list(replacement.after)
    if IS_1 and replacement.before:
        assert parameters(of_contrib(name)) == list(replacement.before)
    elif IS_1 and replacement.is_plain and of_contrib(name) is not there:
        given = parameters(of_contrib(name))
        assert parameters(there)[: len(given)] == given


if IS_1:

    def test_tensorflow_1_has_the_removed_names_and_none_of_the_new_ones() -> None:
        assert not [name for name in sorted(GONE) if not has(tf, name)]
        assert not [name for name in sorted(ONLY_IN_2) if has(tf, name)]
        assert not [name for name in CHANGED if not has(tf, name)]
else:

    @pytest.mark.parametrize("name", ["where", "nn.dropout", "data.Dataset", "image.resize", "device"])
    def test_names_that_differ_are_other_objects_in_tensorflow_2(name: str) -> None:
        assert name in DIFFERENT and found(tf, name) is not found(v1, name)

    @pytest.mark.parametrize(
        "name", ["Session", "train.AdamOptimizer", "AUTO_REUSE", "layers", "gfile", "random_normal"]
    )
    def test_missing_names_are_not_in_tensorflow_2(name: str) -> None:
        assert name in MISSING and not has(tf, name)
