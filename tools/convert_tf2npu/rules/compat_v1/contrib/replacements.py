"""The replacements in tf.compat.v1 of names of tf.contrib, with their arguments.

``tools/make_v1_names.py`` finds the names that are the same object in both places. ``tf_api/contrib_replacements.json``
lists the others, and the functions that were rewritten, with the arguments of both. It is written by hand. A test compares
the arguments with those of the functions.
"""

from __future__ import annotations

import ast
from typing import Iterable, Mapping, NamedTuple

from ....semantics.model import Where
from ....semantics.module_index import Names
from ....syntax.expressions import last_part
from ....tf_api.canonical_names import canonical_name
from ....tf_api.name_tables import CONTRIB, CONTRIB_BY_HAND, CONTRIB_CHANGED, MODULES
from ....tf_api.v1_fate import name_below_tensorflow


class Replacement(NamedTuple):
    """The replacement of a name of tf.contrib.

    Args:
        name: the name below ``tf``, as ``nn.rnn_cell.LSTMCell``.
        before: the parameters in tf.contrib if the call has to change, else empty.
        after: the parameters of the replacement; those with the same name mean the same.
        renamed: pairs of the old and the new name of a parameter.
        special: the function of ``calls`` that converts the call.
    """

    name: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    special: str = ""

    @property
    def is_plain(self) -> bool:
        """Return True if only the name changes."""
        return not (self.before or self.special)


def _replacement_with_arguments(
    name: str, before: str = "", after: str = "", renamed: Mapping[str, str] | None = None, special: str = ""
) -> Replacement:
    return Replacement(name, tuple(before.split()), tuple(after.split()), tuple((renamed or {}).items()), special)


REPLACEMENTS: dict[str, Replacement] = {
    **{name: Replacement(replacement) for name, replacement in {**CONTRIB, **CONTRIB_BY_HAND}.items()},
    **{name: _replacement_with_arguments(**row) for name, row in CONTRIB_CHANGED.items()},
}


def canonical_contrib_name(spelled: str) -> str:
    """Return ``rnn.LSTMCell`` for each dotted name of this object of tf.contrib, and "" for other names."""
    name = canonical_name(spelled) if ".python." in spelled else spelled
    rest = name_below_tensorflow(name) if name.startswith("tensorflow.") else ""
    return rest[len("contrib.") :] if rest.startswith("contrib.") else ""


def shared_module_of_replacements(moving: Iterable[tuple[str, Replacement | None]]) -> str:
    """Return the one module that has all the given names, as ``nn.rnn_cell``; "" if there is no importable one.

    Args:
        moving: pairs of the last part of a name and its replacement.
    """
    modules = {
        replacement.name.rpartition(".")[0]
        if replacement and replacement.is_plain and last_part(replacement.name) == last
        else ""
        for last, replacement in moving
    }
    module = modules.pop() if len(modules) == 1 else ""
    return module if module in MODULES else ""


def is_importable(replacement: str) -> bool:
    """Return True if a name below ``tf`` can be imported from a module in every TensorFlow."""
    module = replacement.rpartition(".")[0]
    return not module or module in MODULES


def replacement_of(name: str) -> Replacement | None:
    """Return the replacement of a name below tf.contrib, or None."""
    return Replacement(name) if name.partition(".")[0] == "keras" else REPLACEMENTS.get(name)


def part_with_replacement(names: Names, node: ast.expr, where: Where) -> tuple[ast.expr, str, Replacement] | None:
    """Return the longest part of a dotted name with a replacement, its name below tf.contrib, and the replacement."""
    while True:
        name = canonical_contrib_name(names.spelled_name(node, where) or "")
        replacement = replacement_of(name) if name else None
        if replacement is not None:
            return node, name, replacement
        if not isinstance(node, ast.Attribute):
            return None
        node = node.value
