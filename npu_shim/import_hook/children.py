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

_RUN = """import sys
sys.path.insert(0, {root!r})
import npu_shim.{module}
sys.path.remove({root!r})
{then}"""


class _RunOnUnpickle:
    """Run code in the process that unpickles this object.

    It is unpickled as a call of exec, because npu_shim may not be on the path
    of a new process.
    """

    def __init__(self, code: str) -> None:
        self._code = code

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return exec, (self._code,)


def convert_in_children(finder: Finder) -> None:
    """Make every process that multiprocessing starts from now on convert the same files.

    Args:
        finder: of this process.
    """
    conversions = finder.conversions
    state = pickle.dumps((conversions.configuration, conversions.files.root, conversions.paths, finder.watch_shapes))
    _make_children_import("import_hook.children", f"npu_shim.import_hook.children.convert_as_parent({state!r})")


def alias_in_children() -> None:
    """Make every process that multiprocessing starts from now on use the alias."""
    _make_children_import("alias")


def _make_children_import(module: str, then: str = "") -> None:
    """Let a child import a module of npu_shim first, and run a line of code."""
    first = _RunOnUnpickle(_RUN.format(root=tool.package_root(), module=module, then=then))
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
    tool.make_importable()  # it has the class of the configuration
    configuration, root, paths, watch_shapes = pickle.loads(state)
    convert_in_children(hook.install_finder(Conversions(configuration, ProjectFiles(root), paths), watch_shapes))
