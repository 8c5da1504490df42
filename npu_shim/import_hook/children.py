"""Install the hook, or the alias, in the child processes of multiprocessing.

A forked child has the hook already. A child that is spawned, or forked by the
fork server, starts as a new Python. It gets a description of its parent, from
which it imports the main script. This module extends that description.
"""

from __future__ import annotations

import multiprocessing.spawn
import pickle
from typing import Any, Callable

from npu_shim.import_hook import hook, tool
from npu_shim.import_hook.conversions import Conversions
from npu_shim.import_hook.hook import Finder
from npu_shim.import_hook.project_files import ProjectFiles

_JOIN = """import sys
sys.path.insert(0, {root!r})
from npu_shim.import_hook.children import convert_as_parent
sys.path.remove({root!r})
convert_as_parent({state!r})"""
_ALIAS = """import sys
sys.path.insert(0, {root!r})
import npu_shim.alias
sys.path.remove({root!r})"""


class _InstallOnUnpickle:
    """Install the hook in the process that unpickles this object.

    It is unpickled as a call of exec, because npu_shim may not be on the path
    of a new process.
    """

    def __init__(self, finder: Finder) -> None:
        conversions = finder.conversions
        self._state = pickle.dumps(
            (conversions.configuration, conversions.files.root, conversions.paths, finder.watch_shapes)
        )

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return exec, (_JOIN.format(root=tool.package_root(), state=self._state),)


class _AliasOnUnpickle:
    """Import npu_shim.alias in the process that unpickles this object."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return exec, (_ALIAS.format(root=tool.package_root()),)


def convert_in_children(finder: Finder) -> None:
    """Make every process that multiprocessing starts from now on convert the same files.

    Args:
        finder: of this process.
    """
    _extend_description(_InstallOnUnpickle(finder))


def alias_in_children() -> None:
    """Make every process that multiprocessing starts from now on use the alias."""
    _extend_description(_AliasOnUnpickle())


def _extend_description(first: object) -> None:
    """Make the description of the parent process begin with an object.

    Args:
        first: acts when the child unpickles it.
    """
    original = multiprocessing.spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        data = original(name)
        if name == "ignore":  # the fork server itself would import the main script without the hook
            return {key: value for key, value in data.items() if not key.startswith("init_main")}
        return {"npu_shim": first, **data}

    setattr(multiprocessing.spawn, "get_preparation_data", get_preparation_data)


def convert_as_parent(state: bytes) -> None:
    """Convert the same files in this process as in its parent.

    Args:
        state: pickled: the configuration of the tool, the root of the project, the files that the script may import,
            and True to report shapes that change.
    """
    tool.load()  # it has the class of the configuration
    configuration, root, paths, watch_shapes = pickle.loads(state)
    convert_in_children(hook.install(Conversions(configuration, ProjectFiles(root), paths), watch_shapes))
