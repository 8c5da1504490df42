"""Report which names of the vendor's packages and of Horovod a collection of models uses and npu_shim does not serve.

    python tools/survey_vendor_names.py FOLDER [--missing] [--json]

No file of FOLDER runs. Each is parsed, and each name that comes from npu_bridge, hccl, npu_device or horovod is looked
up in npu_shim, as an import with ``npu_shim.alias`` finds it: imported modules and names, and attributes of modules.
Names of a star import count where they are modules whose attributes the file uses, and no other star import may bring
them. Run it with the TensorFlow whose
names matter. A model is the outermost folder whose name contains ``_for_``, or else a folder directly below FOLDER.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import sys
import warnings
from types import ModuleType
from typing import Any, Iterator, NamedTuple, Sequence

import npu_shim.alias
from npu_shim.alias import ROOTS
from npu_shim.ops import npu_only


class Use(NamedTuple):
    """A vendor's name in a file: its full path, and the line."""

    name: str
    line: int


class Model(NamedTuple):
    """The uses of one model. ``missing`` holds ``name (file:line)``; ``unreadable`` are files that do not parse."""

    names: set[str]
    missing: dict[str, str]
    unreadable: list[str]


def uses(tree: ast.AST) -> Iterator[Use]:
    """Return the vendor's names that a file imports or reaches by attributes of what it imports.

    Functions may import one name from two places. An attribute then counts as that of the place that has it.
    """
    bound: dict[str, list[str]] = {}
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    stars: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_vendor(alias.name):
                    yield Use(alias.name, node.lineno)
                    root = alias.name.partition(".")[0]
                    bound.setdefault(alias.asname or root, []).append(alias.name if alias.asname else root)
                else:
                    own.add(alias.asname or alias.name.partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            if node.level or not _is_vendor(node.module or ""):
                own.update(alias.asname or alias.name for alias in node.names)
                continue
            for alias in node.names:
                if alias.name == "*":
                    yield Use(str(node.module), node.lineno)
                    stars.append(str(node.module))
                else:
                    yield Use(f"{node.module}.{alias.name}", node.lineno)
                    bound.setdefault(alias.asname or alias.name, []).append(f"{node.module}.{alias.name}")
    if "*" not in own:  # another star import may bring the same name
        for module in stars:
            bound.update({name: [f"{module}.{name}"] for name in _star_modules(module) if name not in bound})
    for node in ast.walk(tree):
        parts = _chain(node)
        if len(parts) > 1 and parts[0] in bound and parts[0] not in own:
            names = [".".join([place, *parts[1:]]) for place in bound[parts[0]]]
            yield Use(
                next((name for name in names if missing_part(name) is None), names[0]), getattr(node, "lineno", 0)
            )


def missing_part(name: str) -> str | None:
    """Return the beginning of a name up to the first part that npu_shim does not have, None if it has the whole name.

    Attributes of classes and of results are not looked up.
    """
    parts = name.split(".")
    found: Any = _module(parts[0])
    for end in range(1, len(parts) + 1):
        if found is None or npu_only.ONLY_ON_NPU in (getattr(found, "__doc__", None) or ""):
            return ".".join(parts[:end])
        if end < len(parts) and isinstance(found, ModuleType):
            inner = getattr(found, parts[end], None)
            found = inner if inner is not None else _module(".".join(parts[: end + 1]))
    return None


def survey(folder: str) -> dict[str, Model]:
    """Return the models of a folder that use a vendor's name, by their path below it."""
    models: dict[str, Model] = {}
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for file in sorted(name for name in files if name.endswith(".py")):
            path = os.path.join(parent, file)
            below = os.path.relpath(path, folder)
            model = models.setdefault(_model_of(below), Model(set(), {}, []))
            try:
                with open(path, "rb") as stream, warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # about the strings of the file
                    tree = ast.parse(stream.read())
            except (SyntaxError, ValueError, RecursionError):
                model.unreadable.append(below)
                continue
            for use in uses(tree):
                model.names.add(use.name)
                missing = missing_part(use.name)
                if missing:
                    model.missing.setdefault(missing, f"{below}:{use.line}")
    return {name: model for name, model in models.items() if model.names}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the models with names that are not served, and the share of the others."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--missing", action="store_true", help="list each missing name once, with its models")
    parser.add_argument("--json", action="store_true", help="print the models as JSON")
    args = parser.parse_args(arguments)
    if not os.path.isdir(args.folder):
        parser.error(f"{args.folder!r} is not a folder")
    models = survey(args.folder)
    if args.json:
        print(json.dumps({name: sorted(model.missing) for name, model in models.items()}, indent=1))
        return 0
    incomplete = {name: model for name, model in models.items() if model.missing}
    if args.missing:
        for name in sorted({name for model in incomplete.values() for name in model.missing}):
            where = [model.missing[name] for model in incomplete.values() if name in model.missing]
            print(f"{name}: {len(where)} model(s), first {where[0]}")
    else:
        for name, model in incomplete.items():
            print(name, *[f"  {missing} ({where})" for missing, where in model.missing.items()], sep="\n")
    unreadable = sum(len(model.unreadable) for model in models.values())
    served = len(models) - len(incomplete)
    share = 100 * served / len(models) if models else 100
    print(f"{len(models)} models use a vendor's name; npu_shim serves all names of {served} ({share:.1f} %)")
    print(f"{unreadable} of their files do not parse with Python {sys.version_info[0]}.{sys.version_info[1]}")
    return 0


def _is_vendor(module: str) -> bool:
    return module.partition(".")[0] in ROOTS


def _chain(node: ast.AST) -> list[str]:
    """Return the names of ``a.b.c``, an empty list for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else []


def _model_of(path: str) -> str:
    folders = path.split(os.sep)[:-1]
    named = [number for number, folder in enumerate(folders) if "_for_" in folder.lower()]
    return os.sep.join(folders[: named[0] + 1]) if named else os.sep.join(folders[:1]) or "."


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _star_modules(name: str) -> list[str]:
    """Return the modules that a star import of a module brings."""
    module = _module(name)
    names = getattr(module, "__all__", ())
    return [
        one
        for one in names
        if getattr(getattr(module, one, None), "__name__", "").startswith(npu_shim.__name__ + ".")
        and isinstance(getattr(module, one), ModuleType)
    ]


if __name__ == "__main__":
    sys.exit(main())
