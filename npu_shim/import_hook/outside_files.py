"""The files of the user that a program imports from outside of its folder."""

from __future__ import annotations

import os
import re
import sys

from npu_shim._host import whole_file
from npu_shim.import_hook.project_files import ProjectFiles

_FRAMEWORKS = re.compile(rb"tensorflow|keras|horovod")
_TRACED = "__autograph_generated_file"  # a module that TensorFlow writes


def imported_from_outside(root: str) -> list[str]:
    """Return the files with TensorFlow that this process imported from outside of a folder, sorted.

    Those of Python, of installed packages and of npu_shim are not among them.

    Args:
        root: the folder.
    Returns:
        Paths relative to the folder, with slashes.
    """
    inside, anywhere = ProjectFiles(root), ProjectFiles(os.path.abspath(os.sep))
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
