"""Make convert_tf2npu/tf_api/v1_names.json: the fate of the names of TensorFlow 1 in TensorFlow 2.

Each version of TensorFlow dumps its names. TensorFlow 1.15 is first, because the others look for its names::

    PYTHON115 tools/make_v1_names.py dump > 1.json
    PYTHON26  tools/make_v1_names.py dump 1.json > 26.json      (the same for 2.15 and 2.21)
    python tools/make_v1_names.py table 1.json 26.json 215.json 221.json > tools/convert_tf2npu/tf_api/v1_names.json

Names have no root: ``nn.dropout`` is ``tf.nn.dropout`` in TensorFlow 1, and in TensorFlow 2 both ``tf.nn.dropout`` and
``tf.compat.v1.nn.dropout``, which are two functions.
"""

from __future__ import annotations

import importlib
import inspect
import io
import json
import os
import pkgutil
import sys
import types
import warnings
from typing import Any, Dict, Iterator

# Private packages of TensorFlow that scripts import from. The others are for TensorFlow itself and its tests.
_IMPLEMENTATION = (
    "client",
    "data",
    "feature_column",
    "framework",
    "layers",
    "lib",
    "ops",
    "platform",
    "saved_model",
    "summary",
    "training",
    "util",
)
_NO_SCRIPT_NEEDS = ("test", "gen_", "serialization", "kernel", "benchmark", "deprecation", "debug_mode")
# Modules of tf.contrib that were removed as a whole, or that have names of other modules only by accident.
_WHOLE = ("slim", "quantization", "grid_rnn", "specs", "learn", "labeled_tensor", "tensor_forest", "keras")
# TensorFlow 2.16 and later have Keras 3 and no Estimator, so these names are not compared there.
_NOT_AFTER_2_15 = ("keras", "estimator", "losses", "metrics", "optimizers", "initializers", "layers", "nn.rnn_cell")


Names = Dict[str, Any]  # what a version of TensorFlow has, by kind and name


# --- the names of one TensorFlow ---------------------------------------------------------------------------------
def dump(asked: Names | None) -> Names:
    """Return the names of the TensorFlow of this Python.

    Args:
        asked: the dump of TensorFlow 1.15, whose private names are looked up here; None in TensorFlow 1.15.
    """
    import tensorflow as tf

    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.FATAL)
    version1 = tf.__version__.startswith("1.")
    plain, v1 = dict(_public(tf)), dict(_public(tf.compat.v1))
    made: Names = {
        "version": tf.__version__,
        "plain": sorted(plain),
        "v1": sorted(v1),
        "differs": sorted(
            n
            for n in plain
            if n in v1 and not isinstance(v1[n], types.ModuleType) and not any(f is v1[n] for f in _unwrapped(plain[n]))
        ),
        # private modules are attributes only after their import
        "beside": sorted(
            n
            for n, o in plain.items()
            if isinstance(o, types.ModuleType) and not _is_api(o) and getattr(o, "__name__", "") == "tensorflow." + n
        ),
        "parameters": dict(_all_parameters(plain if version1 else v1)),
        "modules": sorted(
            n
            for n, o in v1.items()
            if isinstance(o, types.ModuleType)
            and {name for name in _dir(o) if not name.startswith("_")}
            <= set(dir(_imported("tensorflow.compat.v1." + n)))
        ),
    }
    if version1:
        made["private"] = dict(_private(plain))
        made["contrib"] = dict(_contrib(plain))
    elif asked:
        made["private_gone"] = {
            module: [n for n in names if not _has(module, n)] for module, names in asked["private"].items()
        }
    return made


def _public(root: types.ModuleType) -> Iterator[tuple[str, object]]:
    """Yield the names below a root with their values. Only public modules are searched."""
    todo: list[tuple[str, types.ModuleType]] = [("", root)]
    seen: set[int] = {id(root)}
    while todo:
        prefix, module = todo.pop()
        for name in _dir(module):
            if name.startswith("_") and name != "__version__":
                continue
            try:
                value = getattr(module, name)
            except Exception:  # a lazily loaded part that is missing
                continue
            dotted = prefix + name
            if dotted.startswith(("compat.v1", "compat.v2", "contrib")):
                continue
            yield dotted, value
            if isinstance(value, types.ModuleType) and _is_api(value) and id(value) not in seen:
                seen.add(id(value))
                todo.append((dotted + ".", value))


def _unwrapped(value: object) -> Iterator[object]:
    """Yield a function and the functions that it wraps. TensorFlow 2.12 and later wrap some of them."""
    yield value
    while isinstance(value, types.FunctionType) and "__wrapped__" in vars(value):
        value = vars(value)["__wrapped__"]
        yield value


def _dir(module: types.ModuleType) -> list[str]:
    try:
        return sorted(dir(module))
    except Exception:  # a lazily loaded module that is missing
        return []


def _is_api(module: types.ModuleType) -> bool:
    name = getattr(module, "__name__", "")
    return (
        any(part in name for part in ("_api", "keras.api", "estimator.api", "_tf_keras", "summary._tf"))
        or name.startswith(("tensorflow.compat", "tensorflow.keras"))
        or name == "tensorflow"
    )


def _imported(name: str) -> types.ModuleType | None:
    try:
        return importlib.import_module(name)
    except Exception:
        return None


def _parameters(value: object) -> list[object] | None:
    """Return the positional parameters of a callable, two flags for * and **, and the keyword-only parameters."""
    from tensorflow.python.util import tf_inspect

    try:
        spec = tf_inspect.getfullargspec(value.__init__ if inspect.isclass(value) else value)
    except (TypeError, ValueError):
        return None
    names = list(spec.args)
    return [
        names[1:] if names[:1] in (["self"], ["cls"]) else names,
        bool(spec.varargs),
        bool(spec.varkw),
        list(spec.kwonlyargs),
    ]


def _all_parameters(names: Names) -> Iterator[tuple[str, list[object]]]:
    for name, value in names.items():
        if callable(value) and not name.startswith("raw_ops."):
            found = _parameters(value)
            if found:
                yield name, found


def _by_object(plain: Names) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for name, value in sorted(plain.items(), key=lambda item: (item[0].count("."), item[0])):
        if not isinstance(value, (int, float, str, bool, tuple, type(None))):
            found.setdefault(id(value), []).append(name)
    return found


def _private(plain: Names) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the private modules with the names that each defines, and the public names of these, if any."""
    known = _by_object(plain)
    for part in _IMPLEMENTATION:
        package = _imported("tensorflow.python." + part)
        paths = getattr(package, "__path__", None)
        names = (
            [info.name for info in pkgutil.walk_packages(paths, f"tensorflow.python.{part}.", onerror=lambda _: None)]
            if paths
            else []
        )
        for name in names:
            if any(word in name for word in _NO_SCRIPT_NEEDS):
                continue
            module = _imported(name)
            if module is not None:
                yield (
                    name,
                    {
                        n: (known.get(id(v)) or [""])[0]
                        for n, v in sorted(vars(module).items())
                        if not n.startswith("_") and _defined(v) in (name, "tensorflow.python._pywrap_utils")
                    },
                )


def _defined(value: object) -> str:
    return str(getattr(value, "__module__", "")).replace("tensorflow_core", "tensorflow")


def _has(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name)
    except Exception:  # modules that load others on attribute access
        return False


def _contrib(plain: Names) -> Iterator[tuple[str, list[str]]]:
    """Yield the names of tf.contrib that are objects of TensorFlow's core, with their names there."""
    import tensorflow.contrib as contrib  # type: ignore[import]

    known = _by_object(plain)
    for info in pkgutil.iter_modules(contrib.__path__):
        module = None if info.name in _WHOLE else _imported("tensorflow.contrib." + info.name)
        module = getattr(contrib, info.name, module) if module else None  # for some it is another module
        for name, value in _contrib_names(module, info.name, 2) if module else ():
            if id(value) in known:
                yield name, known[id(value)]


def _contrib_names(module: types.ModuleType, prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    for name in _dir(module):
        value = getattr(module, name, None)
        if name.startswith("_") or name in ("python", "ops", "core"):
            continue
        if not isinstance(value, types.ModuleType):
            yield prefix + "." + name, value
        elif depth > 1 and ".contrib." in value.__name__:
            yield from _contrib_names(value, prefix + "." + name, depth - 1)


# --- the comparison of all versions ---------------------------------------------------------------------------
def lifted(old: Names, new: list[Names]) -> list[str]:
    """Return the names that are only under compat.v1 in TensorFlow 2, or have another meaning outside of it."""
    found = set()
    for version in new:
        plain, v1, differs = set(version["plain"]), set(version["v1"]), set(version["differs"])
        for name in old["plain"]:
            if _counts(name, version) and name in v1 and (name not in plain or name in differs):
                found.add(name)
    return _topmost(found - set(gone(old, new)))


def missing(old: Names, new: list[Names]) -> list[str]:
    """Return the lifted names that TensorFlow 2 does not have outside of compat.v1."""
    return _topmost(
        {
            name
            for version in new
            for name in set(old["plain"]) & set(version["v1"])
            if _counts(name, version) and name not in set(version["plain"])
        }
        - set(gone(old, new))
    )


def only_in_2(old: Names, new: list[Names]) -> list[str]:
    """Return the names that TensorFlow 2 has only outside of compat.v1."""
    return _topmost(
        {
            name
            for version in new
            for name in set(version["plain"]) - set(version["v1"])
            if _counts(name, version) and name not in set(old["plain"]) | set(version["beside"])
        }
    )


def gone(old: Names, new: list[Names]) -> list[str]:
    """Return the names that TensorFlow 2 removed."""
    return _topmost(
        {
            name
            for version in new
            for name in old["plain"]
            if _has_estimator(version)
            and not name.startswith("raw_ops.")
            and name not in set(version["v1"]) | set(version["plain"])
        }
    )


def _counts(name: str, version: Names) -> bool:
    return _has_estimator(version) or not any(name == part or name.startswith(part + ".") for part in _NOT_AFTER_2_15)


def _has_estimator(version: Names) -> bool:
    return "estimator.Estimator" in set(version["v1"])


def _topmost(names: set[str]) -> list[str]:
    return sorted(n for n in names if not any(n[:i] in names for i, c in enumerate(n) if c == "."))


def changed(old: Names, new: list[Names]) -> dict[str, tuple[int, str]]:
    """Return the functions whose arguments changed: the number that may stay positional, and the removed names."""
    found: dict[str, tuple[int, str]] = {}
    for name, (before, more, _, only_named) in old["parameters"].items():
        before = [p for p in before if p != "_sentinel"]
        fine, lost = len(before), set()
        for version in new:
            if more or not _counts(name, version) or name not in version["parameters"]:
                continue
            after, after_more, after_named, after_only = version["parameters"][name]
            after = [p for p in after if p != "_sentinel"]
            same = next((i for i, p in enumerate(before) if after[i : i + 1] != [p]), len(before))
            renamed_first = same == 0 and len(after) == len(before)
            fine = min(fine, len(before) if after_more or renamed_first else same)
            if not after_named:
                lost |= set(before + only_named) - set(after + after_only)
        if fine < len(before) or lost:
            found[name] = fine, " ".join(sorted(lost))
    return found


def homes(old: Names, new: list[Names]) -> dict[str, str]:
    """Return the names in TensorFlow's core of the objects that tf.contrib has too."""
    everywhere = set.intersection(*(set(v["v1"]) for v in new if _has_estimator(v)))
    found: dict[str, str] = {}
    for name, places in old["contrib"].items():
        last = name.rsplit(".", 1)[1]
        kept = [p for p in places if p in everywhere and not p.startswith("keras.")]
        if kept:
            found[name] = next((p for p in kept if p.rsplit(".", 1)[-1] == last), kept[0])
    return found


def private_gone(old: Names, new: list[Names]) -> dict[str, str]:
    """Return the names removed from each private module, as ``name=public`` if there is a public name."""
    everywhere = set.intersection(*(set(v["v1"]) for v in new))
    found: dict[str, str] = {}
    for module, names in sorted(old["private"].items()):
        lost = {n for v in new for n in v["private_gone"][module]}
        if lost:
            found[module] = " ".join(n + "=" + names[n] if names[n] in everywhere else n for n in sorted(lost))
    return found


# --- the table -----------------------------------------------------------------------------------------------
def table(old: Names, new: list[Names]) -> Names:
    """Return the table; tf_api/name_tables.py explains its parts."""
    modules = set.intersection(set(old["modules"]), *(set(v["modules"]) for v in new if _has_estimator(v)))
    return {
        "missing": missing(old, new),
        "different": sorted(set(lifted(old, new)) - set(missing(old, new))),
        "only_in_2": only_in_2(old, new),
        "gone": gone(old, new),
        "modules": sorted(modules),
        "changed": dict(sorted(changed(old, new).items())),
        "contrib": dict(sorted(homes(old, new).items())),
        "private": private_gone(old, new),
    }


def main() -> int:
    warnings.simplefilter("ignore")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    tables = []
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as stream:
            tables.append(json.load(stream))
    if sys.argv[1:2] == ["dump"] and len(tables) < 2:
        out, sys.stdout = sys.stdout, io.StringIO()  # output of TensorFlow must not get into the table
        made = dump(tables[0] if tables else None)
        json.dump(made, out)
        return 0
    if sys.argv[1:2] == ["table"] and len(tables) > 1:
        print(json.dumps(table(tables[0], tables[1:]), indent=1))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
