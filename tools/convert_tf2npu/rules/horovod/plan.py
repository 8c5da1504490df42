"""Plan the conversion of Horovod in one file, or find the obstacles."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from ...rewrite.call_edits import broken_string, rename
from ...rewrite.removal import remove_names, remove_statements
from ...semantics.call_sites import users
from ...semantics.module_index import Names
from ...syntax.source import Edit, Source
from ..base import Context, Finding
from .advice import advice
from .calls import GETTERS, File, Turn, Turned, is_option, turn_call
from .setup import turn_init, turn_shutdown
from .uses import Use, imports, uses


class Plan(NamedTuple):
    """The conversion of a file: the node to report, the edits, the names of npu_init in them, notes and obstacles."""

    node: ast.AST
    edits: tuple[Edit, ...]
    uses: tuple[str, ...]
    notes: tuple[Finding, ...]
    obstacles: tuple[Finding, ...]


def plan(context: Context) -> Plan | None:
    """Return the plan for a file, or None if it does not use Horovod."""
    names = context.names
    its_uses, its_imports = uses(names), imports(names)
    if not (its_uses or its_imports.names or its_imports.stars):
        return None
    nodes: list[ast.AST] = [use.node for use in its_uses]
    node = min(list(its_imports.names) + its_imports.stars or nodes, key=context.source.start)
    turns = _turns(context, its_uses)
    gone = _assigned_options(names, its_uses, turns)
    obstacles = _obstacles(names, its_uses, turns, gone) + [
        Finding(star, "a star import of Horovod hides the used names. Import them by name")
        for star in its_imports.stars
    ]
    edits, used = _merged(turns)
    whole = {s for s, places in its_imports.names.items() if len(places) == len(s.names)}  # type: ignore
    edits += remove_statements(context.source, names, gone | _with_their_try(names, whole))
    for statement in set(its_imports.names) - whole:
        edit = remove_names(context.source, statement, its_imports.names[statement])
        if edit is None:
            obstacles.append(
                Finding(
                    statement,
                    "a comment among the imported names prevents the conversion. Import Horovod in its own statement",
                )
            )
        else:
            edits.append(edit)
    edits = _outermost(edits)
    if not obstacles:
        obstacles = _in_strings(context, edits) or _left_over(context.source, its_uses, edits)
    notes = [
        Finding(use.call or use.node, turn.note)
        for use, turn in zip(its_uses, turns)
        if isinstance(turn, Turned) and turn.note
    ]
    return Plan(node, tuple(edits), tuple(sorted(used)), tuple(notes), tuple(obstacles))


def _turns(context: Context, its_uses: list[Use]) -> list[Turn | None]:
    started = [use.call for use in its_uses if use.name == "horovod.init" and use.call]
    ended = [use.call for use in its_uses if use.name == "horovod.shutdown" and use.call]
    return [_turn(context, use, started, ended) for use in its_uses]


def _turn(context: Context, use: Use, started: list[ast.Call], ended: list[ast.Call]) -> Turn | None:
    """Return the conversion of a use, or None if it depends on other uses."""
    string = context.names.strings.get(use.node)
    if string is not None and not context.source.is_placed(use.node, string):
        return Finding(string, f"{use.short} inside an f-string cannot be converted. Move it to a separate line")
    if use.name in GETTERS:
        return Turned([rename(context.source, use.node, GETTERS[use.name])], (GETTERS[use.name],))
    if is_option(use.name):
        return None
    if use.name == "horovod.init" and use.call is not None:
        return turn_init(context, use.call, started, ended)
    if use.name == "horovod.shutdown" and use.call is not None:
        return turn_shutdown(context, use.call, started)
    turned = turn_call(File(context.source, context.names), use)
    if turned is not None:
        return turned
    what = "the module horovod is passed on here" if use.name == "horovod" else f"{use.short} is unsupported on the NPU"
    return Finding(use.node, f"{what}. {advice(use.name)}")


def _assigned_options(names: Names, its_uses: list[Use], turns: list[Turn | None]) -> set[ast.stmt]:
    """Return the assignments of Horovod options (compression = hvd.Compression.fp16) that only its calls use."""
    dropped = _dropped(names, turns)
    found: set[ast.stmt] = set()
    for use, turn in zip(its_uses, turns):
        statement = use.where.statement
        if (
            turn is None
            and isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            name = statement.targets[0].id
            read = [
                n
                for n in ast.walk(names.tree)
                if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
            ]
            seen = use.where.scope is names.module and users(names, name) != []
            if read and all(n in dropped for n in read) and not seen:
                found.add(statement)
    return found


def _dropped(names: Names, turns: list[Turn | None]) -> set[ast.AST]:
    """Return all nodes that the converted calls remove."""
    return {node for turn in turns if isinstance(turn, Turned) for root in turn.dropped for node in ast.walk(root)}


def _obstacles(names: Names, its_uses: list[Use], turns: list[Turn | None], gone: set[ast.stmt]) -> list[Finding]:
    found = [turn for turn in turns if isinstance(turn, Finding)]
    told = {node for finding in found for node in ast.walk(finding.node)}
    dropped = _dropped(names, turns)
    for use, turn in zip(its_uses, turns):
        if turn is None and use.node not in dropped | told and use.where.statement not in gone:
            found.append(
                Finding(
                    use.node,
                    f"{use.short} is passed to a function that is not known to belong to Horovod. "
                    "Remove it: the NPU averages uncompressed gradients",
                )
            )
    return found


def _merged(turns: list[Turn | None]) -> tuple[list[Edit], set[str]]:
    edits: list[Edit] = []
    used: set[str] = set()
    for turn in turns:
        if isinstance(turn, Turned):
            edits += turn.edits
            used.update(turn.uses)
    return edits, used


def _outermost(edits: list[Edit]) -> list[Edit]:
    """Return the edits without those inside text that other edits remove."""
    wide = [e for e in edits if e.end > e.start]
    return [
        e
        for e in edits
        if not any(
            w is not e and w.start <= e.start and e.end <= w.end and (e.end > e.start or w.start < e.start < w.end)
            for w in wide
        )
    ]


def _with_their_try(names: Names, whole: set[ast.stmt]) -> set[ast.stmt]:
    """Return the imports, or the try statements around them that only handle a failed import."""
    found: set[ast.stmt] = set()
    for statement in whole:
        parent = names.parents[statement]
        tried = (
            isinstance(parent, ast.Try)
            and whole.issuperset(parent.body)
            and not parent.finalbody
            and not parent.orelse
            and all(_copes(s) for h in parent.handlers for s in h.body)
        )
        found.add(parent if tried else statement)  # type: ignore[arg-type]
    return found


def _copes(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, (ast.Pass, ast.Raise))
        or isinstance(statement, ast.Assign)
        and ast.dump(statement.value) == ast.dump(ast.parse("None", mode="eval").body)
    )


def _in_strings(context: Context, edits: list[Edit]) -> list[Finding]:
    """Return findings for the f-strings that cannot hold the converted code."""
    strings = {broken_string(context.source, context.names, edit) for edit in edits} - {None}
    return [
        Finding(
            string,
            "the converted code cannot stand inside this f-string. Compute the value on a separate line",
        )
        for string in strings
        if string is not None
    ]


def _left_over(source: Source, its_uses: list[Use], edits: list[Edit]) -> list[Finding]:
    """Return findings for the uses that would remain after the conversion."""
    found = []
    for use in its_uses:
        start, end = source.start(use.node), source.end(use.node)
        covering = [e for e in edits if e.start <= start and end <= e.end]
        still = re.compile(rf"(?<![\w.]){re.escape(source.segment(use.node))}\b")
        if not covering or any(still.search(e.new) for e in covering):
            found.append(
                Finding(use.node, f"{use.short} cannot be converted at this place. Move it to a separate line")
            )
    return found
