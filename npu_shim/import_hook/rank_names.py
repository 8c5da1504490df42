"""A training script that never asks for its rank and averages nothing: on several ranks it trains independent copies.

The answer is read from the names in its files, so it is known before the ranks start, on NPUs too. Any name of ranks or
collectives in any of the files is a reason to be silent.
"""

from __future__ import annotations

import ast
import re
import sys
from typing import Iterator, Sequence

from npu_shim.import_hook.before_tensorflow import imported_names, parse_file
from npu_shim.import_hook.project_files import ProjectFiles, project_root
from npu_shim.import_hook.reachable import files_run_by_module, reachable_files

_RANKS = re.compile(  # in names of modules, functions, classes and variables, and in strings
    r"(?i:horovod|^hvd$|hccl|mpi4py|rank_?id|rank_?size|local_?rank|get_rank|workers_num"
    r"|npu_?strategy|distribut\w*_optimizer|npu_?distribut|keras_?distribut|npu_?allreduce|npu_?broadcast"
    r"|^data_parallel$|shard_batch|shard_and_rebatch|share_random_state)"
    r"|^(ASCEND_)?DEVICE_ID$|npu_device\.distribute|npu_shim\.(distributed|training)"
)
_TRAINING = ("fit", "fit_generator", "train_on_batch", "minimize", "apply_gradients", "train", "train_and_evaluate")
_TENSORFLOW = ("tf", "tensorflow", "keras", "npu_shim")


def files_training_alone(start: Sequence[str], folders: Sequence[str]) -> list[str]:
    """Return the files of a script that trains without the other ranks.

    Args:
        start: the script, or the files that ``python -m`` runs.
        folders: from which its imports are looked up.
    Returns:
        The files that it reaches by imports and that belong to its project; empty if one of them knows ranks, or none
        of them trains a model of TensorFlow.
    """
    if not start:
        return []
    path = [*folders, *sys.path]
    files = reachable_files(start, ProjectFiles(project_root(start[-1])), path)
    names, modules, called = _words_imports_and_methods_of_files(files)
    if called.isdisjoint(_TRAINING) or not any(_top_package(module) in _TENSORFLOW for module in modules):
        return []
    installed = {
        file
        for module in modules
        if _top_package(module) not in _TENSORFLOW
        for file in files_run_by_module(module, path)
    }
    # Such as an optimizer with MPI in a library.
    others, imported, _ = _words_imports_and_methods_of_files(sorted(installed.difference(files)))
    return [] if any(map(_RANKS.search, {*names, *modules, *others, *imported})) else files


def _words_imports_and_methods_of_files(files: Sequence[str]) -> tuple[set[str], set[str], set[str]]:
    """Return the names and words in strings of some files, the modules that they import, the methods that they call."""
    names: set[str] = set()
    modules: set[str] = set()
    called: set[str] = set()
    for tree in filter(None, map(parse_file, files)):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called.add(node.func.attr)
            modules.update(filter(None, (module.lstrip(".") for module in imported_names(node))))
            names.update(_words_of_node(node))
    return names, modules, called


def _top_package(module: str) -> str:
    return module.partition(".")[0]


def _words_of_node(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
        if node.attr == "distribute" and isinstance(node.value, ast.Name) and node.value.id not in _TENSORFLOW:
            yield "npu_distribute"
    elif isinstance(node, ast.arg):
        yield node.arg
    elif type(node).__name__ in ("Constant", "Str"):  # Str in Python 3.7
        text = getattr(node, "value", None) or getattr(node, "s", None)
        if isinstance(text, str) and text.isidentifier():
            yield text
