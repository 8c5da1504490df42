"""The file that rules look at, with the settings that change what they do."""

from __future__ import annotations

import ast
from typing import Any, Callable, NamedTuple, TypeVar

from ..semantics.model import Where
from ..semantics.module_index import Names, Types
from ..syntax.expressions import last_name
from ..syntax.source import Source

_Answer = TypeVar("_Answer")


class _Fields(NamedTuple):
    source: Source
    names: Names
    types: Types
    distributed: str = ""
    compat_v1: bool = False
    main: str = ""
    moves_contrib: bool = False
    tf: str = ""


class Context(_Fields):
    """All that a rule may look at. It resolves each expression once, however many rules ask for it.

    Attributes:
        source: the file as bytes, text and tree.
        names: name resolution in it.
        types: type inference in it.
        distributed: the kind of distributed training that the user converts to the NPU: ``horovod``,
            ``tf_strategy``, or the empty string.
        compat_v1: True if the script is to run on TensorFlow 2.
        main: the path of the entry script, if the user names it.
        moves_contrib: True if the rule is on that takes names of tf.contrib from their new homes.
        tf: the version of TensorFlow that the programs speak, 1 or 2, if the user names it.
        words: the last words of the names that the script can call; None allows all.
        known: the names of the expressions that were resolved.
    """

    words: frozenset[str] | None = None

    def __init__(self, *_: object, **__: object) -> None:
        self.known: dict[ast.AST, str | None] = {}
        self._called: dict[ast.Call, str] | None = None
        self._once: dict[tuple[object, ...], Any] = {}

    def once(self, find: Callable[..., _Answer], *args: object) -> _Answer:
        """Return ``find(self, *args)``, computed once. Names would keep the context with it, and so themselves."""
        key = find, args
        if key not in self._once:
            self._once[key] = find(self, *args)
        answer: _Answer = self._once[key]
        return answer

    def resolve(self, node: ast.AST, where: Where) -> str | None:
        """Return the canonical dotted name of an expression, or None."""
        known = self.known
        if node not in known:  # as a rule: an exception takes longer
            known[node] = self.names.resolve(node, where)
        return known[node]

    @property
    def called(self) -> dict[ast.Call, str]:
        """The canonical dotted name of the function of each call that has one, in the order of the script."""
        if self._called is None:
            words = self.words
            found = (
                (call.node, self.resolve(call.node.func, call.where))
                for call in self.names.calls
                if words is None or last_name(call.node.func) in words
            )
            self._called = {node: name for node, name in found if name}
        return self._called
