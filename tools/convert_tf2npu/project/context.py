"""The file that rules look at, with the settings that change what they do."""

from __future__ import annotations

import ast

from ..facts.facts import Facts
from ..facts.seen import FileFacts, Place, Seen
from ..semantics.model import Where
from ..semantics.module_index import Module, Names
from ..semantics.once import Once
from ..syntax.expressions import last_name
from ..syntax.source import Source


class Context(Once):
    """All that a rule may look at. It resolves each expression once, however many rules ask for it.

    What ``names.once`` keeps must not refer to the context, which has the names. ``once`` of the context may.

    Attributes:
        source: the file as bytes, text and tree.
        names: name resolution in it.
        types: type inference in it.
        distributed: the kind of distributed training that is converted to the NPU in the file: ``horovod``,
            ``tf_strategy``, or the empty string.
        compat_v1: True if the script is to run on TensorFlow 2.
        main: the path of the entry script, if the user names it.
        moves_precision: True if the rules are on that replace a graph rewrite with the precision mode of sessions.
        moves_contrib: True if the rule is on that takes names of tf.contrib from their new homes.
        tf: the version of TensorFlow that the programs speak, 1 or 2, if the user names it.
        words: the last words of the names that the script can call; None allows all.
        facts: what observed runs saw in the file; None without them.
        program_facts: what they saw in all files.
        no_facts_for: the codes, or their beginnings, of rules that use no facts, also as ``CODE:LINE`` for one line.
    """

    def __init__(
        self,
        module: Module,
        *,
        distributed: str = "",
        compat_v1: bool = False,
        main: str = "",
        moves_contrib: bool = False,
        moves_precision: bool = False,
        tf: str = "",
        words: frozenset[str] | None = None,
        program_facts: Facts | None = None,
        no_facts_for: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self.source, self.names, self.types = module.source, module.names, module.types
        self.distributed, self.compat_v1, self.main = distributed, compat_v1, main
        self.moves_contrib, self.moves_precision = moves_contrib, moves_precision
        self.tf, self.words = tf, words
        self.program_facts, self.no_facts_for = program_facts, no_facts_for
        self.facts: FileFacts | None = None
        if program_facts is not None:
            self.facts = program_facts.facts_of_file(module.path, module.source.raw)
        self._known: dict[ast.AST, str | None] = {}
        self._called: dict[ast.Call, str] | None = None

    def resolve(self, node: ast.AST, where: Where) -> str | None:
        """Return the canonical dotted name of an expression, or None."""
        known = self._known
        if node not in known:  # as a rule: an exception takes longer
            known[node] = self.names.resolve(node, where)
        return known[node]

    @property
    def called_names(self) -> dict[ast.Call, str]:
        """The canonical dotted name of the function of each call that has one, in the order of the script."""
        if self._called is None:
            words = self.words
            names_of_calls = (
                (call.node, self.resolve(call.node.func, call.where))
                for call in self.names.calls
                if words is None or last_name(call.node.func) in words
            )
            self._called = {node: name for node, name in names_of_calls if name}
        return self._called

    def observed_at(self, code: str, kind: str, node: ast.AST) -> Seen | None:
        """Return what observed runs saw at an expression; None if none reached it, or if the rule uses no facts.

        Args:
            code: of the rule.
            kind: one of ``facts.kinds``.
            node: the expression, as in the question of the rule.
        """
        if self.facts is None:
            return None
        place = place_of(self.source, kind, node)
        return self.facts.seen.get(place) if self.uses_facts(code, place.line) else None

    def ran_with_tensorflow(self, version: str, code: str, node: ast.AST) -> bool:
        """Return True if observed runs, all with one version of TensorFlow, reached a node, and none failed there.

        Args:
            version: its beginning, as ``2.6.``.
            code: of the rule.
            node: of the file.
        """
        facts = self.program_facts
        first, last = self.source.first_and_last_line(self.names.place(node).statement or node)
        return (
            facts is not None
            and all(run.tensorflow.startswith(version) for run in facts.runs)
            and self.uses_facts(code, self.source.line_col_of_node(node)[0])
            and bool(self.runs_at(first))
            and (self.facts is None or not self.facts.ends_at(last) or all(run.ended != "error" for run in facts.runs))
        )

    def uses_facts(self, code: str, line: int) -> bool:
        """Return True if the user lets a rule use facts in a line."""
        return f"{code}:{line}" not in self.no_facts_for and not code.startswith(self.no_facts_for or ("-",))

    def runs_at(self, line: int) -> int | None:
        """Return the number of observed runs that reached a line of the file; None if that is not known."""
        if self.facts is not None:
            return self.facts.runs_at(line)
        return 0 if self.program_facts is not None and self.program_facts.is_never_loaded(self.names.path) else None

    def is_unreached(self, names: Names, line: int) -> bool:
        """Return True if observed runs reached the program, but not a line, which may be in another file."""
        if self.program_facts is None:
            return False
        known = self.facts
        if names is not self.names:
            known = self.program_facts.facts_of_file(names.path, names.project.raw(names.path))
        return known is None or known.runs_at(line) == 0


def place_of(source: Source, kind: str, node: ast.AST) -> Place:
    """Return the place of an expression in a file, for its facts."""
    return Place(*source.line_col(source.start(node)), *source.line_col(source.end(node)), kind)
