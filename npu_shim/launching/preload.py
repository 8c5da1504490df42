"""Decide how the ranks of a job start: forked from a process with TensorFlow, or each as a new Python."""

from __future__ import annotations

import os
from typing import Callable, Mapping, NamedTuple, Sequence

from npu_shim._host import host_device
from npu_shim.import_hook import reachable
from npu_shim.import_hook.before_tensorflow import read_before_tensorflow
from npu_shim.launching.plan import RankProcess


def preload_environment(
    target: Sequence[str], plan: Sequence[RankProcess], environ: Mapping[str, str], report: Callable[[str], None]
) -> dict[str, str] | None:
    """Return the environment variables with which a process imports TensorFlow for all ranks.

    Args:
        target: the script, or ``-m`` and the module, with its arguments.
        plan: the ranks of this host.
        environ: the variables of the launcher.
        report: prints a line for the user: why a script that imports TensorFlow cannot share the import.
    Returns:
        The variables, with those that the script itself sets before it imports TensorFlow; None if each rank must be a
        new Python: one rank, ranks on NPUs, a script without TensorFlow, variables that only the script knows, or ranks
        bound to processors, by which libraries choose their number of threads.
    """
    if len(plan) < 2 or host_device.detect_without_import().is_npu:
        return None
    before = read_before_tensorflow(*start_files(target))
    if not before.imports_tensorflow:
        return None
    problem = before.problem and f"{before.problem} sets environment variables before TensorFlow is imported"
    if plan[0].share.cores:
        problem = "--bind-cores gives each rank its own processors"
    if problem:
        report(f"ranks start as plain processes: {problem}")
        return None
    environments = [process.full_environment(environ) for process in plan]
    common = {
        name: value
        for name, value in environments[0].items()
        if all(other.get(name) == value for other in environments)
    }
    return before.with_script_variables(common)


class StartFiles(NamedTuple):
    """The files that run first, packages before the script, and the folders of the script's own modules."""

    files: list[str]
    folders: list[str]


def start_files(target: Sequence[str]) -> StartFiles:
    """Return the files and folders of a script, or of ``-m`` and a module."""
    if target[0] == "-m":
        folder = os.getcwd()
        return StartFiles(reachable.files_run_by_module(target[1], [folder]), [folder])
    path = os.path.realpath(target[0])
    if os.path.isdir(path):
        return StartFiles([os.path.join(path, "__main__.py")], [path])
    return StartFiles([path], [os.path.dirname(path)])
