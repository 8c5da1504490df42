"""Has the child processes of multiprocessing convert as their parent does.

A forked child has the hook already. One that is spawned, or forked by the fork
server, starts as a new Python, gets a description of its parent, and imports the
main script by it. That description is what is extended here.
"""

from __future__ import annotations

import multiprocessing.spawn
from typing import Any, Mapping, Sequence

from npu_shim.import_hook import hook, tool
from npu_shim.import_hook.conversions import Conversions
from npu_shim.import_hook.hook import Finder
from npu_shim.import_hook.own import Own

_JOIN = """import sys
sys.path.insert(0, {root!r})
from npu_shim.import_hook.children import join
sys.path.remove({root!r})
join(*{state!r})"""


class _Joining:
    """Installs the hook in the process that unpickles it.

    It is unpickled as a call of exec: npu_shim need not be on the path of a
    process that has just begun.
    """

    def __init__(self, finder: Finder) -> None:
        conversions, own = finder.conversions, finder.conversions.own
        self._state = (
            conversions.settings,
            (own.root, own.exclude, own.folder),
            conversions.paths,
            finder.watch_shapes,
        )

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return exec, (_JOIN.format(root=tool.package_root(), state=self._state),)


def follow(finder: Finder) -> None:
    """Makes every process that multiprocessing starts from now on convert the same files.

    Args:
        finder: of this process.
    """
    original = multiprocessing.spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        data = original(name)
        if name == "ignore":  # for the fork server itself, which would import the main script as it is
            return {key: value for key, value in data.items() if not key.startswith("init_main")}
        return {"npu_shim": _Joining(finder), **data}

    setattr(multiprocessing.spawn, "get_preparation_data", get_preparation_data)


def join(
    settings: Mapping[str, Any], own: tuple[str, Sequence[str], str], paths: list[str], watch_shapes: bool
) -> None:
    """Converts in this process what its parent converts.

    Args:
        settings: which rules act.
        own: the arguments of Own.
        paths: its files that the script may import.
        watch_shapes: whether it tells shapes that change.
    """
    tool.load()
    follow(hook.install(Conversions(settings, Own(*own), paths), watch_shapes))
