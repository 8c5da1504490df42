"""Install the hook in the child processes of multiprocessing.

A forked child has the hook already. A child that is spawned, or forked by the
fork server, starts as a new Python. It gets a description of its parent, from
which it imports the main script. This module extends that description.
"""

from __future__ import annotations

import multiprocessing.spawn
from typing import Any, Callable, Mapping, Sequence

from npu_shim.import_hook import hook, tool
from npu_shim.import_hook.conversions import Conversions
from npu_shim.import_hook.hook import Finder
from npu_shim.import_hook.project_files import ProjectFiles

_JOIN = """import sys
sys.path.insert(0, {root!r})
from npu_shim.import_hook.children import join
sys.path.remove({root!r})
join(*{state!r})"""


class _InstallOnUnpickle:
    """Install the hook in the process that unpickles this object.

    It is unpickled as a call of exec, because npu_shim may not be on the path
    of a new process.
    """

    def __init__(self, finder: Finder) -> None:
        conversions, files = finder.conversions, finder.conversions.files
        self._state = (
            conversions.settings,
            (files.root, files.exclude, files.folder),
            conversions.paths,
            finder.watch_shapes,
        )

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return exec, (_JOIN.format(root=tool.package_root(), state=self._state),)


def follow(finder: Finder) -> None:
    """Make every process that multiprocessing starts from now on convert the same files.

    Args:
        finder: of this process.
    """
    original = multiprocessing.spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        data = original(name)
        if name == "ignore":  # the fork server itself would import the unconverted main script
            return {key: value for key, value in data.items() if not key.startswith("init_main")}
        return {"npu_shim": _InstallOnUnpickle(finder), **data}

    setattr(multiprocessing.spawn, "get_preparation_data", get_preparation_data)


def join(
    settings: Mapping[str, Any], files: tuple[str, Sequence[str], str], paths: list[str], watch_shapes: bool
) -> None:
    """Convert the same files in this process as in its parent.

    Args:
        settings: the settings of the rules.
        files: the arguments of ProjectFiles.
        paths: files that the script may import.
        watch_shapes: True to report shapes that change.
    """
    tool.load()
    follow(hook.install(Conversions(settings, ProjectFiles(*files), paths), watch_shapes))
