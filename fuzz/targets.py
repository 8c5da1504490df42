"""Properties of the migration tool for arbitrary bytes; each target raises an error if one is violated.

A target takes the bytes of a file and returns nothing. None of them needs anything beside the tool, so that
what a fuzzer once found is tried again with every Python. Those that convert take a few rows of the table of options
by the bytes, or the rows that they are given.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import tempfile
import tokenize
import warnings
from typing import Any, Callable, Sequence

from convert_tf2npu.cli.toml_subset import TomlError, read_table
from convert_tf2npu.engine.converter import Converter, FileResult
from convert_tf2npu.engine.results import TOOL_FAILS
from convert_tf2npu.engine.run import Run, convert_source
from convert_tf2npu.files.extensions import NOTEBOOK
from convert_tf2npu.syntax.ipython_magics import python_of
from convert_tf2npu.syntax.py37.node_ends import add_ends
from convert_tf2npu.syntax.source import Source, SourceError
from option_table import converter, settings, some_rows

# With these IPython itself has to guess.
_COMMAND = re.compile(r"(?:^|\r)[ \t]*(?:cat|cd|conda|cp|ls|mkdir|mv|pip3?|rm|rmdir)\b", re.MULTILINE)
_FILE = re.compile(rb"^# file (\w{1,20})\.py\n", re.MULTILINE)
_LINE_END = re.compile(r"\r\n|\r|\n")


def script(raw: bytes, rows: Sequence[str] = ()) -> None:
    """A script: never a crash, always Python, nothing lost, and a second run changes nothing."""
    text = _readable(raw)
    for row in rows or some_rows(raw):
        result = _converted(converter(row), raw, "a.py")
        if result.unreadable:
            refused = result.diagnostics[0].message.startswith("not Python")
            assert not (refused and text is not None), f"Python reads it: {result.diagnostics}"
        if text is not None and not result.unreadable:
            _check_places(result, len(_LINE_END.findall(text)) + 1)
        if result.new is None:
            continue
        written = Source(result.new)
        assert text is not None
        comments = _comments(text), _comments(written.text)
        assert None in comments or comments[0] == comments[1], "a comment is lost, or another one is there"
        again = converter(row).convert(result.new, "a.py")
        assert again.new is None or not _can_run(text), f"a second run with {row!r} changes it again: {again.new!r}"


def notebook(raw: bytes, rows: Sequence[str] = ()) -> None:
    """A notebook: as a script, and nothing but the sources of code cells changes."""
    for row in rows or some_rows(raw):
        result = _converted(converter(row), raw, "a" + NOTEBOOK)
        if result.new is None:
            continue
        before, after = _without_code(raw), _without_code(result.new)
        assert before == after, "more than the code cells changed"
        again = converter(row).convert(result.new, "a" + NOTEBOOK)
        assert again.new is None, f"a second run with {row!r} changes it again: {again.new!r}"


def project(raw: bytes, rows: Sequence[str] = ()) -> None:
    """The files of a folder, which know of each other: no crash, always Python, and a second run changes nothing."""
    parts = _FILE.split(raw)
    files = {f"{name.decode()}.py": text for name, text in zip(parts[1::2], parts[2::2])}
    for row in rows or some_rows(raw):
        with tempfile.TemporaryDirectory(prefix="fuzz_project_") as folder:
            _write(folder, files)
            run = _checked(folder, row)
            for new in run.new_bytes_by_path.values():
                Source(new)
            _write(folder, run.new_bytes_by_path)
            again = _checked(folder, row)
            may_change = not all(_can_run(text) for text in map(_readable, files.values()) if text is not None)
            assert not again.new_bytes_by_path or may_change, (
                f"a second run with {row!r} changes it again: {again.new_bytes_by_path!r}"
            )


def _checked(folder: str, row: str) -> Run:
    run = convert_source(folder, settings(row), jobs=1)
    failed = [f"{e.relative}: {d.message}" for e, r in run.results for d in r.diagnostics if TOOL_FAILS in d.message]
    assert not failed, f"with {row!r}: {failed}"
    return run


def _write(folder: str, files: dict[str, bytes]) -> None:
    for name, raw in files.items():
        with open(os.path.join(folder, name), "wb") as stream:
            stream.write(raw)


def cell(raw: bytes) -> None:
    """The text of a cell: what is not Python is masked in place, and Python never is."""
    text = raw.decode("utf-8", "replace")
    masked = python_of(text)
    if masked is not None:
        assert len(masked) == len(text)
        assert _LINE_END.findall(masked) == _LINE_END.findall(text)
        assert [m.start() for m in _LINE_END.finditer(masked)] == [m.start() for m in _LINE_END.finditer(text)]
    if _parsed(text) is not None and not _COMMAND.search(text):
        assert masked == text, f"this is Python, and was changed into {masked!r}"


def table(raw: bytes) -> None:
    """A pyproject.toml: where Python's own reader and ours both take it, they read the same."""
    text = raw.decode("utf-8", "replace")
    try:
        found: dict[str, Any] | None = read_table(text, "tool", "convert_tf2npu")
    except TomlError:
        found = None
    if sys.version_info < (3, 11):
        return
    import tomllib

    try:
        whole = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    expected: Any = whole.get("tool", {})
    expected = expected.get("convert_tf2npu", {}) if isinstance(expected, dict) else {}
    assert found is None or found == expected, f"{expected!r} is read as {found!r}"


def places(raw: bytes) -> None:
    """The positions that nodes get for Python 3.7 are those that newer Pythons give them."""
    if sys.version_info < (3, 9):
        return
    text = _readable(raw)
    tree = _parsed(text) if text is not None else None
    again = _parsed(text) if text is not None else None
    if text is None or tree is None or again is None or _has_formatted(tree):
        return
    add_ends(tree, text)
    for ours, theirs in zip(ast.walk(tree), ast.walk(again)):
        if _is_placed_elsewhere(theirs):
            continue
        for field in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            assert getattr(ours, field, None) == getattr(theirs, field, None), (
                f"{field} of {ast.dump(theirs)}: {getattr(ours, field)}"
            )


TARGETS: dict[str, Callable[..., None]] = {
    "script": script,
    "notebook": notebook,
    "project": project,
    "cell": cell,
    "table": table,
    "places": places,
}


CONVERTING: tuple[str, ...] = ("script", "notebook", "project")  # targets that take rows of the table


def _converted(tool: Converter, raw: bytes, path: str) -> FileResult:
    result = tool.convert(raw, path)
    assert not result.unreadable or result.new is None, "a file that cannot be read was changed"
    for said in result.diagnostics:
        assert "tool itself" not in said.message, said.message
    return result


def _check_places(result: FileResult, lines: int) -> None:
    for said in result.diagnostics:
        assert 1 <= said.line <= lines and said.col >= 1, said


def _readable(raw: bytes) -> str | None:
    """The text of a file that Python itself reads."""
    try:
        source = Source(raw)
    except SourceError:
        return raw.decode("utf-8") if _compiles(raw) else None
    return source.text


def _compiles(raw: bytes) -> bool:
    try:
        text = raw.decode("ascii")
    except UnicodeDecodeError:
        return False  # what encodings are refused, and why, is the business of tests
    return "coding" not in text and _parsed(text) is not None


def _can_run(text: str) -> bool:
    """Return True if the compiler accepts it, which refuses more than the parser: import * in a function, say."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "script", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _comments(text: str) -> list[str] | None:
    lines = iter(re.split(r"(?<=\n)", _LINE_END.sub("\n", text)))
    try:
        return [
            token.string.rstrip()
            for token in tokenize.generate_tokens(lambda: next(lines, ""))
            if token.type == tokenize.COMMENT
        ]
    except (tokenize.TokenError, SyntaxError):
        return None  # not every text that the parser takes is one for the tokenizer


def _without_code(raw: bytes) -> Any:
    content = json.loads(raw.decode("utf-8-sig"))
    for one in content["cells"]:
        if isinstance(one, dict) and one.get("cell_type") == "code":
            one["source"] = type(one["source"]).__name__
    return content


def _has_formatted(tree: ast.AST) -> bool:
    return any(isinstance(node, (ast.JoinedStr, getattr(ast, "TemplateStr", ast.JoinedStr))) for node in ast.walk(tree))


def _is_placed_elsewhere(node: ast.AST) -> bool:
    """Return True for a pattern or a type parameter, whose places nobody asks for."""
    return any(isinstance(node, getattr(ast, name)) for name in ("pattern", "type_param") if hasattr(ast, name))
