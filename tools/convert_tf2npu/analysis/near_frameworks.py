"""The files of a project that name TensorFlow, or import a file that does.

Type inference in the other files, such as those of a numeric library beside the scripts, takes long and finds nothing.
"""

from __future__ import annotations

from ..project.source_files import mentions_frameworks
from ..semantics.module_index import ModuleIndex, Names


def is_near_framework(names: Names) -> bool:
    """Return True if a file names a framework or imports a file that does, directly or not; and for a file outside the
    project."""
    return not names.is_in_project or names.path in names.project.once(near_frameworks)


def near_frameworks(project: ModuleIndex) -> frozenset[str]:
    """Return the files that name a framework, and those that import one of them, directly or not."""
    return project.with_importers([path for path in project.paths if mentions_frameworks(project.raw(path))])
