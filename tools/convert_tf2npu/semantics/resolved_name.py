"""The result of name resolution: a frozen name with its kind."""

from __future__ import annotations

import enum
from typing import Callable, NamedTuple

from ..tf_api.canonical_names import canonical_name, location_outside_contrib


class NameKind(enum.Enum):
    """The owner of what a name refers to."""

    TENSORFLOW = "TensorFlow"
    HOROVOD = "Horovod"
    PROJECT = "project"
    OTHER = "other"


_KINDS = {
    "tensorflow": NameKind.TENSORFLOW,
    "tensorflow_estimator": NameKind.TENSORFLOW,
    "tf_slim": NameKind.TENSORFLOW,
    "horovod": NameKind.HOROVOD,
}


class ResolvedName(NamedTuple):
    """The thing that an expression refers to: something in a library, or a module or definition of the project.

    Attributes:
        dotted: the dotted name in a library, as in ``tensorflow.Session``; for the project the name of a function or
            class of a module, or the empty string for the module itself.
        path: the module's file for the project; empty for a library.
    """

    dotted: str
    path: str = ""

    @property
    def kind(self) -> NameKind:
        """The owner of what the name refers to."""
        return NameKind.PROJECT if self.path else _KINDS.get(self.dotted.partition(".")[0], NameKind.OTHER)

    @property
    def is_module_of_project(self) -> bool:
        """True for a module of the project itself."""
        return bool(self.path) and not self.dotted

    @property
    def is_definition(self) -> bool:
        """True for a function or class that a module of the project defines."""
        return bool(self.path) and bool(self.dotted)

    @property
    def text(self) -> str:
        """The name in one string, which differs for different names. Do not parse it; ask for the kind."""
        if not self.path:
            return self.dotted
        return f"{self.path}:{self.dotted}" if self.dotted else self.path


def common_name(
    candidates: set[ResolvedName | None], spelling: Callable[[str], str] = canonical_name
) -> ResolvedName | None:
    """Return the one name that all candidates have, or None.

    Args:
        candidates: the candidates.
        spelling: returns the canonical name of a dotted name.
    """
    if len(candidates) > 1 and None not in candidates:
        # import tensorflow.compat.v1 as tf, or plain tensorflow if that fails: one thing
        if len({f.text if f.path else location_outside_contrib(spelling(f.dotted)) for f in candidates if f}) == 1:
            return max(candidates, key=lambda f: len(f.dotted) if f else 0)
    return candidates.pop() if len(candidates) == 1 else None
