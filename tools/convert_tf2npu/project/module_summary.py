"""What remains of a module of the project when its tree is let go: what its names are to those that import it.

Most questions that files ask about each other are answered by it. So a large project is read once, though its trees do
not fit into memory. It is one text and holds nothing else, so that it is small and can be handed to other processes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Callable, NamedTuple

from ..semantics.model import Binding
from ..semantics.resolver import agreed, is_named
from ..syntax.expressions import constant, is_none

if TYPE_CHECKING:
    from ..semantics.resolver import Names

DEFINED, CLASS, _IMPORTED, _NOTHING, _UNKNOWN, _IN_TREE = "dcin?t"
_LINE, _NAME, _NEXT = "\n", "\t", "\r"
_ALL = "*"


class Outline(NamedTuple):
    """The names of one module.

    ``text`` has a line for each: the name, a tab, and what binds it, parted by returns: a letter, behind that of an
    import the dotted name. ``offered`` are the names of ``__all__``, in lines too, ``*`` for all that there are, or None
    where it has none.
    """

    path: str
    text: str
    stars: tuple[str, ...]
    offered: str | None

    def bindings(self, name: str) -> list[str]:
        """What binds a name; nothing where the module has no such name."""
        start = self.text.find(_LINE + name + _NAME)
        if start < 0:
            return []
        start += len(name) + 2
        return self.text[start : self.text.index(_LINE, start)].split(_NEXT)

    def offers(self, name: str) -> bool:
        """Whether a star import of the module brings a name that it binds."""
        if self.offered is None:
            return not name.startswith("_")
        return self.offered == _ALL or _LINE + name + _LINE in self.offered

    def exported(self, name: str, follow: Callable[[str, str], str | None]) -> tuple[bool, str | None]:
        """What a name that the module binds is to others, see :meth:`names.Names.exported`.

        Args:
            name: the name.
            follow: tells what an imported name is, by its dotted name and the importing file.

        Returns:
            whether the outline tells it, and what it tells.
        """
        bindings = self.bindings(name)
        if _IN_TREE in bindings:
            return False, None
        found = {self._named(name, each, follow) for each in bindings if len(bindings) == 1 or each != _NOTHING}
        return True, agreed(found)

    def _named(self, name: str, binding: str, follow: Callable[[str, str], str | None]) -> str | None:
        if binding.startswith(_IMPORTED):
            return follow(binding[1:], self.path)
        return f"{self.path}:{name}" if binding in (DEFINED, CLASS) else None


def outline(names: Names) -> Outline:
    """The outline of a module."""
    lines = [
        name + _NAME + _NEXT.join(_kind(each, names) for each in bindings)
        for name, bindings in names.module.bindings.items()
    ]
    return Outline(
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
    return _IN_TREE if is_named(binding) else _UNKNOWN


def _offered(bindings: list[Binding]) -> str | None:
    if len(bindings) != 1 or not isinstance(bindings[0].node, (ast.List, ast.Tuple)):
        return _ALL if bindings else None
    given = [constant(element) for element in bindings[0].node.elts]
    return _ALL if None in given else _LINE + "".join(f"{each[0]}\n" for each in given if each)
