"""The import of npu_shim: whether a file needs one, in which form, and where.

It is the star import that users write by hand, unless one of the star's names means something else
in the file; then only what is used is imported, by name.
"""
from __future__ import annotations

import ast
from typing import Iterable, List, Optional, Set

from .names import STAR, Names
from .source import Edit, Source
from .tfnames import canonical

MODULE = 'npu_shim.npu_init'
# What a name of the star stands for, where a file may have imported the very same thing itself.
_SAME = {'os': {'os'}, 'tf': {'tensorflow'},
         'config_pb2': {'tensorflow.core.protobuf.config_pb2'},
         'rewriter_config_pb2': {'tensorflow.core.protobuf.rewriter_config_pb2'},
         'RewriterConfig': {'tensorflow.core.protobuf.rewriter_config_pb2.RewriterConfig'},
         'session': {'tensorflow.python.client.session'},
         'session_run_hook': {'tensorflow.python.training.session_run_hook'}}


def taken(uses: Iterable[str], names: Names) -> Optional[str]:
    """The first of some names of npu_init that the file binds to something else."""
    scopes = [names.module] + [f.scope for f in names.functions]
    for use in uses:
        for scope in scopes:
            for binding in scope.bindings.get(use, ()):
                if not (binding.kind == 'import' and canonical(binding.target).startswith('npu_shim.')):
                    return use
    return None


def import_edit(source: Source, names: Names, uses: Set[str], first: int) -> Optional[Edit]:
    """The edit that imports what the changes of a file use.

    Args:
        source: the file.
        names: its names.
        uses: names of npu_init.
        first: the text offset of the first change.

    Returns:
        None when nothing has to be imported.
    """
    missing = sorted(u for u in uses if not _available(u, names))
    if not missing:
        return None
    what = '*' if _star_is_safe(names) else ', '.join(missing)
    line = 'from %s import %s' % (MODULE, what)
    if len(line) > 100:
        line = 'from %s import (\n    %s)' % (MODULE, ',\n    '.join(missing))
        line = line.replace('\n', source.newline)
    after = _after(source, names.tree, first)
    if after is None:
        head = _head(source, names.tree)
        return Edit(head, head, line + source.newline)
    end = source.end(after)
    if source.text[end:end + 1] == ';':
        return Edit(end, end, '; ' + line)
    position = source.next_line(end)
    if position == len(source.text) and not source.text.endswith(('\n', '\r')):
        return Edit(position, position, source.newline + line)
    return Edit(position, position, line + source.newline)


def _available(name: str, names: Names) -> bool:
    if any(canonical(star.module) == MODULE for star in names.stars):
        return True
    return any(b.kind == 'import' and canonical(b.target).startswith('npu_shim.')
               for b in names.module.bindings.get(name, ()))


def _star_is_safe(names: Names) -> bool:
    if names.stars:
        return False  # what another star binds is not known here
    scopes = [names.module] + [f.scope for f in names.functions]
    for scope in scopes:
        for name in STAR.intersection(scope.bindings):
            for binding in scope.bindings[name]:
                if binding.kind != 'import' or binding.target not in _SAME.get(name, ()):
                    return False
    return True


def _after(source: Source, tree: ast.Module, first: int) -> Optional[ast.stmt]:
    """The statement behind which the import goes: the last of TensorFlow's imports before the first
    change, else the last of the leading imports."""
    chosen: Optional[ast.stmt] = None
    leading: Optional[ast.stmt] = None
    in_head = True
    for index, statement in enumerate(tree.body):
        if source.end(statement) > first:
            break
        imports = _imported(statement)
        if any(name.split('.')[0].startswith('tensorflow') for name in imports):
            chosen = statement
        if in_head and imports:
            leading = statement
        elif not _is_docstring(statement, index):
            in_head = False
    if chosen or leading:
        return chosen or leading
    return tree.body[0] if tree.body and _is_docstring(tree.body[0], 0) else None


def _imported(statement: ast.stmt) -> List[str]:
    """The modules that a top-level statement imports, in itself or in the blocks of try and if."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    if isinstance(statement, ast.ImportFrom):
        return [statement.module or '.']
    found: List[str] = []
    if isinstance(statement, (ast.Try, ast.If)):
        for node in ast.walk(statement):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                found += _imported(node)
    return found


def _is_docstring(statement: ast.stmt, index: int) -> bool:
    return index == 0 and isinstance(statement, ast.Expr) and \
        type(statement.value).__name__ in ('Str', 'Constant')


def _head(source: Source, tree: ast.Module) -> int:
    """The line of the first statement, which comes after the leading comments."""
    return source.line_start(source.start(tree.body[0])) if tree.body else 0
