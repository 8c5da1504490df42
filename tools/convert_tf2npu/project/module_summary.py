"""The summary of a module: what its names refer to for the files that import it.

The summary stays when the module's tree is dropped and answers most questions that files ask about each other. So a
large project is parsed once, though its trees do not fit into memory. A summary is small, because it consists of one
string.
"""

from __future__ import annotations

import ast
from typing import Callable, NamedTuple

from ..semantics.model import Binding
from ..semantics.module_index import Names
from ..semantics.resolved_name import ResolvedName, agreed
from ..semantics.resolver import needs_tree
from ..syntax.expressions import constant, is_none

DEFINED, CLASS, _IMPORTED, _NOTHING, _UNKNOWN, _IN_TREE = "dcin?t"
_LINE, _NAME, _NEXT = "\n", "\t", "\r"
_ALL = "*"


class ModuleSummary(NamedTuple):
    """The names of one module.

    Attributes:
        path: its file.
        text: a line for each name: the name, a tab, and its bindings, separated by carriage returns. A binding is a
            letter; an import has its dotted name after it.
        stars: the modules of its star imports.
        offered: the names of ``__all__`` as lines, ``*`` for all names, or None without ``__all__``.
    """

    path: str
    text: str
    stars: tuple[str, ...]
    offered: str | None

    def bindings(self, name: str) -> list[str]:
        """Return the bindings of a name; none if the module has no such name."""
        start = self.text.find(_LINE + name + _NAME)
        if start < 0:
            return []
        start += len(name) + 2
        return self.text[start : self.text.index(_LINE, start)].split(_NEXT)

    def offers(self, name: str) -> bool:
        """Return True if a star import of the module exports a name that it binds."""
        if self.offered is None:
            return not name.startswith("_")
        return self.offered == _ALL or _LINE + name + _LINE in self.offered

    def exported(
        self, name: str, follow: Callable[[str, str], ResolvedName | None]
    ) -> tuple[bool, ResolvedName | None]:
        """Return what a name of the module is to others, see :meth:`Names.exported`.

        Args:
            name: the name.
            follow: resolves an imported name, given its dotted name and the importing file.

        Returns:
            True and the name, or False if only the tree can answer.
        """
        bindings = self.bindings(name)
        if _IN_TREE in bindings:
            return False, None
        found = {self._named(name, each, follow) for each in bindings if len(bindings) == 1 or each != _NOTHING}
        return True, agreed(found)

    def _named(self, name: str, binding: str, follow: Callable[[str, str], ResolvedName | None]) -> ResolvedName | None:
        if binding.startswith(_IMPORTED):
            return follow(binding[1:], self.path)
        return ResolvedName(name, self.path) if binding in (DEFINED, CLASS) else None


def summary(names: Names) -> ModuleSummary:
    """Return the summary of a module."""
    lines = [
        name + _NAME + _NEXT.join(_kind(each, names) for each in bindings)
        for name, bindings in names.module.bindings.items()
    ]
    return ModuleSummary(
        names.path,
        _LINE + "".join(line + _LINE for line in lines),
        tuple(star.module for star in names.stars),
        _offered(names.module.bindings.get("__all__", [])),
    )


def _kind(binding: Binding, names: Names) -> str:
    if binding.kind == "import":
        return _IMPORTED + binding.target
    if binding.kind in ("def", "class"):
        at_top = names.path and binding.where.scope is names.module
        return (DEFINED if binding.kind == "def" else CLASS) if at_top else _UNKNOWN
    if binding.kind == "value" and is_none(binding.node):
        return _NOTHING
    return _IN_TREE if needs_tree(binding) else _UNKNOWN


def _offered(bindings: list[Binding]) -> str | None:
    if len(bindings) != 1 or not isinstance(bindings[0].node, (ast.List, ast.Tuple)):
        return _ALL if bindings else None
    given = [constant(element) for element in bindings[0].node.elts]
    return _ALL if None in given else _LINE + "".join(f"{each[0]}\n" for each in given if each)
