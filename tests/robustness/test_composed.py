"""Scripts composed of the rules' examples, spelled in all ways: what is done to each does not depend on that.

By default the same few hundred scripts every time. ``NPU_SHIM_EXAMPLES=20000 python -m pytest
tests/robustness/test_composed.py`` tries so many others, and makes what fails smaller, which may take minutes.
"""

from __future__ import annotations

import ast
import builtins
import os
import random
import re
import tokenize
import warnings
from typing import Any

import option_table
from composing import Script, alone, composed, encoded, without_import
from convert_tf2npu.engine.converter import CHANGE, Converter, FileResult
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.rules.registry import Registry
from convert_tf2npu.syntax.source import Source
from examples import COMPOSABLE, EXAMPLES, RULES, Example
from formatting import spelled_otherwise
from hypothesis import HealthCheck, Phase, given, note, settings, strategies as st
from option_table import ROWS

_MANY = int(os.environ.get("NPU_SHIM_EXAMPLES", "0"))
CONVERTERS = {str(rule.needed_settings): Converter(Settings(**rule.needed_settings)) for rule in RULES}


def times(number: int) -> settings:
    """Return the number of scripts on which a property is tried."""
    phases = tuple(Phase) if _MANY else (Phase.generate,)
    return settings(
        max_examples=_MANY or number,
        derandomize=not _MANY,
        deadline=None,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )


def converted(raw: bytes, mode: str) -> FileResult:
    result = (CONVERTERS.get(mode) or option_table.converter(mode)).convert(raw, "script.py")
    assert not result.unreadable, result.diagnostics
    return result


def check(raw: bytes, newline: str, mode: str) -> FileResult:
    """Check what is true for every script."""
    result = converted(raw, mode)
    if result.new is None:
        assert CHANGE not in {d.kind for d in result.diagnostics}
        return result
    before, after = Source(raw), Source(result.new)
    assert comments(after.text) == comments(before.text)
    assert set(re.findall(r"\r\n|\r|\n", after.text)) <= set(re.findall(r"\r\n|\r|\n", before.text)) | {newline}
    assert result.new[:3] == raw[:3] or raw[:3] != b"\xef\xbb\xbf"
    assert missing(before.tree, after.tree) == set()
    assert converted(result.new, mode).new is None
    return result


def comments(text: str) -> list[str]:
    lines = iter(
        (re.sub(r"\r\n?", "\n", text) + "\n").splitlines(True)
        if "\f" not in text
        else [line + "\n" for line in re.split(r"\r\n|\r|\n", text)]
    )
    return [t.string.rstrip() for t in tokenize.generate_tokens(lambda: next(lines, "")) if t.type == tokenize.COMMENT]


def missing(before: ast.AST, after: ast.AST) -> set[str]:
    """The names that are used after and not before, and that nothing imports or binds."""
    names = [{n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} for tree in (before, after)]
    given_ = {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(after)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    made = {n.id for n in ast.walk(after) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return set() if "*" in given_ else names[1] - names[0] - given_ - made - set(dir(builtins))


def tree_of(text: str) -> str:
    """The syntax tree of a script without the import of npu_shim."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                setattr(
                    node,
                    field,
                    [s for s in body if not (isinstance(s, ast.ImportFrom) and s.module == "npu_shim.npu_init")],
                )
    return ast.dump(tree)


def mode_of(example: Example) -> str:
    rule = Registry().by_code(example.code)
    return str(rule.needed_settings if rule else {})


def compare(script: Script, text: str, result: FileResult, raw: bytes, may_stay: bool) -> None:
    """The script became what its examples become."""
    new = Source(raw if result.new is None else result.new).text
    if tree_of(new) == tree_of(script.after):
        return
    # A use that a comment parts is not converted, and is reported; or what it is of comes from where it lives now, under the same name.
    stayed = [
        d
        for d in result.diagnostics
        if any(words in d.message for words in ("comment", "its own line", "imported from outside tf.contrib"))
    ]
    assert may_stay and stayed, f"{text}\n---- became\n{new}\n---- and not\n{script.after}\n{result.diagnostics}"


@times(150)
@given(st.sampled_from(EXAMPLES), st.randoms(use_true_random=False))
def test_an_example_in_another_spelling_becomes_the_same(example: Example, chance: random.Random) -> None:
    script = alone(example, chance)
    with_comments = chance.random() < 0.3
    text = spelled_otherwise(script.before, chance, with_comments)
    assert tree_of(text) == tree_of(script.before), text
    raw, newline = encoded(text, chance)
    note(text)
    result = check(raw, newline, mode_of(example))
    compare(script, text, result, raw, with_comments)


@times(200)
@given(st.lists(st.sampled_from(COMPOSABLE), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_examples_in_one_script_become_what_they_become_alone(parts: list[Example], chance: random.Random) -> None:
    script = composed(parts, chance)
    with_comments = chance.random() < 0.3
    text = spelled_otherwise(script.before, chance, with_comments)
    assert tree_of(text) == tree_of(script.before), text
    raw, newline = encoded(text, chance)
    note(text)
    compare(script, text, check(raw, newline, "{}"), raw, with_comments)


@times(150)
@given(st.lists(st.sampled_from(COMPOSABLE), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_lines_without_an_edit_keep_every_byte(parts: list[Example], chance: random.Random) -> None:
    script = composed(parts, chance)
    raw, newline = encoded(script.before, chance)
    result = check(raw, newline, "{}")
    new = Source(raw if result.new is None else result.new).text.replace(newline, "\n")
    head = "# -*- coding: latin-1 -*-  \xfc\n" if b"coding: latin" in raw else ""
    assert without_import(new).rstrip("\n") == (head + without_import(script.after)).rstrip("\n")
    if all(part.stays for part in parts):
        assert result.new is None


@times(150)
@given(st.lists(st.sampled_from(EXAMPLES), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_any_mixture_is_converted_once_and_for_all(parts: list[Example], chance: random.Random) -> None:
    text = (
        "".join(part.before for part in parts)
        if chance.random() < 0.3
        else composed(
            [part for part in parts if "*" not in part.before.split("\n", 3)[1]] or [COMPOSABLE[0]], chance
        ).before
    )
    raw, newline = encoded(spelled_otherwise(text, chance, True), chance)
    note(text)
    for mode in (*CONVERTERS, *chance.sample(ROWS, 2)):
        check(raw, newline, mode)


def test_every_example_is_one_of_the_scripts() -> None:
    codes: set[Any] = {example.code for example in EXAMPLES}
    assert codes == {rule.code for rule in RULES}
    assert len({example.code for example in COMPOSABLE}) > len(codes) // 2
