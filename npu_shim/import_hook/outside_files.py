"""The files of the user that a program imports from outside of its folder, which are not converted or observed."""

from __future__ import annotations

import os
import re
import sys
from typing import Sequence

from npu_shim._host import whole_file
from npu_shim.distributed.ranktable.model import count_text
from npu_shim.import_hook.project_files import ProjectFiles

_FRAMEWORKS = re.compile(rb"tensorflow|keras|horovod")
_TRACED = "__autograph_generated_file"  # a module that TensorFlow writes


def imported_from_outside(root: str) -> list[str]:
    """Return the files with TensorFlow that this process imported from outside of a folder, sorted.

    Those of Python, of installed packages and of npu_shim are not among them.

    Args:
        root: the folder, or a single file in it.
    Returns:
        Paths relative to the folder, with slashes.
    """
    folder = root if os.path.isdir(root) else os.path.dirname(root)
    inside, anywhere = ProjectFiles(folder), ProjectFiles(os.path.abspath(os.sep))
    paths = {str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
    outside = [
        os.path.relpath(os.path.realpath(path), inside.root).replace(os.sep, "/")
        for path in paths
        if path.endswith(".py")
        and not os.path.basename(path).startswith(_TRACED)
        and anywhere.normalized_path(path)
        and not inside.normalized_path(path)
        and _FRAMEWORKS.search(whole_file.read_if_readable(path) or b"")
    ]
    return sorted(outside)


def paths_text(paths: Sequence[str]) -> str:
    """Return the first one of some paths, and the number of the others."""
    return paths[0] + (f" and {count_text(len(paths) - 1, 'more file')}" if paths[1:] else "")


def outside_sentence(verb: str, root: str, outside: Sequence[str], option: str) -> str:
    """Return the sentence that names such files.

    Args:
        verb: that was not done with them, as in "observe".
        root: the folder.
        outside: their paths, at least one.
        option: that takes a folder.
    """
    return (
        f"not {verb.rstrip('e')}ed, because outside of {root}: {paths_text(outside)}. "
        f"To {verb} all, give a folder that has all with {option}"
    )
