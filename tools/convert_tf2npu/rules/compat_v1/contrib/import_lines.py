"""Rewrite import statements of tf.contrib so that names are imported from their replacements."""

from __future__ import annotations

import ast

from ....rewrite.removal import remove_statements
from ....semantics.module_index import Names
from ....syntax.source import Edit, Source
from ....tf_api.v1_fate import V1
from .replacements import is_importable


def import_statement_of(replacement: str, local: str) -> str:
    """Return the statement that imports a name below ``tf`` under a local name.

    Returns:
        The statement; "" if the module cannot be imported in every TensorFlow.
    """
    if not is_importable(replacement):
        return ""
    module, _, last = replacement.rpartition(".")
    line = "from {} import {}".format(V1 + "." + module if module else V1, last)
    return line if last == local else f"{line} as {local}"


def edit_to_import_from_elsewhere(source: Source, names: Names, statement: ast.stmt, lines: dict[str, str]) -> Edit:
    """Return the edit that imports some names from elsewhere, or removes them.

    Args:
        source: the file.
        names: name resolution in it.
        statement: the import, or the assignment that binds a module to a name.
        lines: for each local name that moves, the statement that binds it; "" if the name is removed.
    """
    kept = _statement_without_names(statement, lines)
    new = _merge_imports(([kept] if kept else []) + sorted({line for line in lines.values() if line}))
    if not new:
        return remove_statements(source, names, [statement])[0]
    start = source.start(statement)
    indent = source.text[source.line_start(start) : start]
    between = source.newline + indent if not indent.strip() else "; "
    return Edit(start, source.end(statement), between.join(new))


def _statement_without_names(statement: ast.stmt, removed: dict[str, str]) -> str | None:
    """Return a statement without some of the names that it binds; None if nothing remains."""
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        return None
    names = [
        a.name + (" as " + a.asname if a.asname else "")
        for a in statement.names
        if (a.asname or a.name.partition(".")[0]) not in removed
    ]
    head = (
        "import "
        if isinstance(statement, ast.Import)
        else "from {}{} import ".format("." * statement.level, statement.module or "")
    )
    return head + ", ".join(names) if names else None


def _merge_imports(lines: list[str]) -> list[str]:
    """Merge imports from one module into one line."""
    heads: dict[str, list[str]] = {}
    for line in lines:
        head, word, names = line.partition(" import ")
        heads.setdefault(head + word if word else "", []).append(names or line)
    return [head + ", ".join(names) for head, names in heads.items() if head] + heads.get("", [])
