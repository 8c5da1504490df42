"""The English texts of the tool's source, which are the keys of a catalogue: ``{0}``, ``{1}`` stand for values."""

from __future__ import annotations

import argparse
import ast
import errno
import functools
import os
import pathlib
import re
from typing import Iterator

import convert_tf2npu
from convert_tf2npu.engine.results import NOT_READ
from convert_tf2npu.report import content, explanation, support, text_report
from convert_tf2npu.report.html import apis, page, parts
from convert_tf2npu.rules.registry import Registry

FOLDER = pathlib.Path(convert_tf2npu.__file__).parent
_PROSE = re.compile(
    r"[A-Za-z]\w*'?,? [a-z]+\b|\w: \Z|[a-z] \Z|\A\{0\} [a-z]{3,}\Z"
    r"|\A(?!(?:def|as|if|import|from|class|with|return|print) )[A-Za-z][a-z]+ (?:\{|\w+\()"
)
_CODE = re.compile(
    r"\s*(?:async )?(?:def|class) \Z|from [\w.{}]+ import|import [\w.{}]+( as \w+)?\Z|.*<[/!a-z]|.*=\"|print\||return \Z",
    re.DOTALL,
)
_ARGUMENTS = re.compile(r"(?<=[\w.])\([^()]*\)")
_FIELD = re.compile(r"\{\d+\}")
_TRANSLATE = re.compile(r"(.*\.)?translate|self\._language|(text\.)?count_text")
# The places of the template in the arguments.
_TEMPLATES = {
    **dict.fromkeys(("Message", "UsageError", "SourceError", "CellError", "TomlError", "failed_result"), (0, 1)),
    **dict.fromkeys(("Change", "Finding"), (1, 2)),
}
# Tables of names, and words that only other code reads.
_NAMES_ONLY = (
    "rules/data/last_batch.py:and its mask",
    "semantics",
    "syntax/py37",
    "syntax/walk.py",
    "tf_api",
    "rules/compat_v1/contrib/import_lines.py",
    "rules/compat_v1/contrib/replacements.py",
    "rules/horovod/horovod_import.py:horovod as horovod",
    "rules/compat_v1/lift_names.py: as tensorflow",
    "rules/compat_v1/removed_names.py:call of ",
    "rules/tf_strategy/replica_gradients.py:[({0}(g), v) for g, v in ",
    "analysis/gelu_formula.py",
    "analysis/slices.py:empty full ones zeros random.normal random.uniform",
    "analysis/slices.py:fill ones zeros random.normal random.truncated_normal random.uniform",
    "analysis/gradient_sources.py",
    "analysis/row_functions.py",
    "analysis/optimizers.py",
    "report/content.py",
    "report/sarif.py:cell {0}",
    "files/staging.py:convert_tf2npu, process ",
    "files/git_status.py:not a git repository",
    "files/git_status.py:must be run in a work tree",
)


def key_of(node: ast.AST) -> str | None:
    """Return a string of the source; None for other code."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def is_prose(text: str) -> bool:
    """Return True if words of English stand in a text outside of the arguments of calls."""
    while _ARGUMENTS.search(text):
        text = _ARGUMENTS.sub("", text)
    return bool(_PROSE.search(text))


@functools.lru_cache(maxsize=None)
def messages() -> dict[str, str]:
    """Return the keys that a catalogue must have, and the file of each."""
    found: dict[str, str] = {}
    for path in sorted(FOLDER.rglob("*.py")):
        relative = path.relative_to(FOLDER).as_posix()
        for key in messages_in(_tree(path), relative):
            found.setdefault(key, relative)
    for key in _words():
        found.setdefault(key, "report")
    for code, key in docs():
        found.setdefault(key, code)
    return found


def everything() -> set[str]:
    """Return all keys that the source could have, those of argparse and of errors of the system included."""
    found = set(messages())
    paths = [*FOLDER.rglob("*.py"), pathlib.Path(argparse.__file__)]
    for path in paths:
        found |= {key for node in ast.walk(_tree(path)) for key in [key_of(node)] if key}
    return found | set(map(os.strerror, errno.errorcode)) | {"optional arguments"}  # of argparse before Python 3.10


def docs() -> Iterator[tuple[str, str]]:
    """Return the titles and the paragraphs of the rules, each with the code of its rule."""
    for code, doc in [(rule.code, rule.doc) for rule in Registry().rules] + [(NOT_READ, content.NOT_READ_DOC)]:
        yield code, doc.split("\n")[0].rstrip(".")
        for block in explanation.doc_blocks(doc):
            if block.kind == "list":
                yield from ((code, item) for item in explanation.list_items(block))
            elif block.kind == "table":
                yield from ((code, row) for row in block.text.split("\n") if not row.startswith("| ---"))
            elif block.kind != "code":
                yield code, block.text


def _words() -> Iterator[str]:
    """Return the words of tables, which are too short to be recognized as messages."""
    yield from (word for status in support.STATUSES.values() for word in status)
    yield from [*parts.LABEL.values(), *parts.LABELS.values(), *page.SCRIPT_WORDS]
    yield from (meaning for _, meaning in page.KEYS)
    yield from (title for title, _ in apis.COLUMNS)
    yield from (title for _, title in text_report.SECTIONS)


def messages_in(tree: ast.AST, relative: str) -> Iterator[str]:
    """Return the templates of messages, what is translated at once, and all other sentences of a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for each in _said(node):
                yield from (key for key in map(key_of, each) if key and re.search("[a-z]", _FIELD.sub("", key)))
    yield from filter(None, map(key_of, _prose_in(tree, relative)))


def finished_in(tree: ast.AST, relative: str) -> Iterator[str]:
    """Return the sentences that a file makes of parts, so that they have no template any more."""
    sentences = set(_prose_in(tree, relative))
    for node in sentences:
        if isinstance(node, ast.JoinedStr):
            yield f"line {node.lineno}"
    for node in ast.walk(tree):
        if isinstance(node, (ast.BinOp, ast.Attribute)):
            yield from (f"line {node.lineno}" for part in ast.iter_child_nodes(node) if part in sentences)


def finished() -> list[str]:
    """Return the sentences of the source without a template."""
    found = []
    for path in sorted(FOLDER.rglob("*.py")):
        relative = path.relative_to(FOLDER).as_posix()
        found += [f"{relative}: {text}" for text in finished_in(_tree(path), relative)]
    return found


def _said(call: ast.Call) -> Iterator[list[ast.AST]]:
    """Return the arguments of a call that are texts, with both branches of conditional ones."""
    name = _dotted(call.func)
    begin, end = (0, 2) if _TRANSLATE.fullmatch(name) else _TEMPLATES.get(name, (0, 0))
    for argument in call.args[begin:end]:
        yield [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]


def _prose_in(tree: ast.AST, relative: str) -> Iterator[ast.AST]:
    if relative.startswith(tuple(name for name in _NAMES_ONLY if ":" not in name)):
        return
    others = set(_no_messages(tree))
    for node in ast.walk(tree):
        text = "" if node in others else _text_of(node)
        if text and is_prose(text) and not _CODE.match(text) and f"{relative}:{text}" not in _NAMES_ONLY:
            yield node


def _text_of(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{0}" for part in node.values)
    return key_of(node) or ""


def _tree(path: pathlib.Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


def _dotted(node: ast.AST) -> str:
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else _name(node)


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _no_messages(tree: ast.AST) -> Iterator[ast.AST]:
    """Return the docstrings, the parts of f-strings, the lists of names that are split, and the words of rules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield from (part for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Attribute) and node.attr == "split":
            yield node.value
        elif isinstance(node, ast.Assign) and _name(node.targets[0]) == "DELIBERATE":  # for npu-shim verify
            yield node.value
