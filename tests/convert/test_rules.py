"""Each rule's docstring is its test: Before becomes After, Untouched and Reported stay unchanged."""

from __future__ import annotations

import ast
import re
import textwrap
from typing import Iterator

import pytest
from convert_tf2npu.analysis.tensorflow_evidence import evidence_of
from convert_tf2npu.engine.converter import FINDING, Converter, FileResult
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.project.project import Project
from convert_tf2npu.rules.base import Rule
from convert_tf2npu.rules.registry import Registry

pytestmark = pytest.mark.smoke

CONVERTER = Converter()
RULES = Registry().rules
NEEDS = {rule.code: rule.needed_settings for rule in RULES}
WITH = {code: Converter(Settings(**needs)) for code, needs in NEEDS.items() if needs}


def blocks(rule: Rule) -> list[tuple[str, str]]:
    """The labelled code blocks of a rule's docstring, in order."""
    found: list[tuple[str, str]] = []
    lines = (rule.module.__doc__ or "").split("\n")
    for number, line in enumerate(lines):
        if re.fullmatch("(Before|After|(Untouched|Reported)( in another file)?)::", line):
            body = []
            for following in lines[number + 1 :]:
                if following and not following.startswith(" "):
                    break
                body.append(following)
            found.append((line[:-2], textwrap.dedent("\n".join(body)).strip("\n") + "\n"))
    return found


def pairs() -> Iterator[tuple[str, str, str, str]]:
    for rule in RULES:
        found = blocks(rule)
        for index, (label, text) in enumerate(found):
            if label == "Before":
                assert found[index + 1][0] == "After", rule.code
                yield f"{rule.code} example {index} becomes what it says", rule.code, text, found[index + 1][1]


def untouched() -> Iterator[tuple[str, str, str]]:
    for rule in RULES:
        for index, (label, text) in enumerate(blocks(rule)):
            if label == "Untouched":
                yield f"{rule.code} example {index} stays", rule.code, text


def reported(label: str) -> Iterator[tuple[str, str, str]]:
    """The blocks with a label of the rules that have examples of their findings."""
    for rule in RULES:
        found = blocks(rule)
        for index, (its, text) in enumerate(found):
            if its == label and "Reported" in [other for other, _ in found]:
                yield f"{rule.code} example {index}", rule.code, text


def convert_by(code: str, text: str) -> FileResult:
    return Converter(Settings(select=(code,), **NEEDS[code])).convert(text.encode("utf-8"))


def convert(code: str, text: str) -> FileResult:
    return WITH.get(code, CONVERTER).convert(text.encode("utf-8"))


PAIRS = list(pairs())
UNTOUCHED = list(untouched())
REPORTED = list(reported("Reported"))
NOT_REPORTED = list(reported("Untouched"))


@pytest.mark.parametrize("code,before,after", [p[1:] for p in PAIRS], ids=[p[0] for p in PAIRS])
def test_before_becomes_after(code: str, before: str, after: str) -> None:
    result = convert(code, before)
    assert result.new is not None, result.diagnostics
    assert result.new.decode("utf-8") == after
    ast.parse(result.new)


@pytest.mark.parametrize("code,after", [(p[1], p[3]) for p in PAIRS], ids=[p[0] for p in PAIRS])
def test_a_second_run_changes_nothing(code: str, after: str) -> None:
    assert convert(code, after).new is None


def kinds(text: str) -> list[str]:
    """Return the kinds of evidence that a script shows."""
    found = evidence_of(Project().understand(text.encode()).names)
    return [kind for kind in ("one", "session", "eager", "two", "trains") if getattr(found, kind)]


# Lifting removes names of version 1 on purpose, and the new strategy is one of both versions.
@pytest.mark.parametrize(
    "before,after",
    [
        pytest.param(*pair[2:], id=pair[0])
        for pair in PAIRS
        if "compat_v1" not in NEEDS[pair[1]] and "contrib.distribute" not in pair[2]
    ],
)
def test_no_rule_changes_the_evidence_for_a_version(before: str, after: str) -> None:
    assert kinds(before) == kinds(after)


@pytest.mark.parametrize("newline", ["\r\n", "\r"], ids=["CRLF", "CR"])
@pytest.mark.parametrize("code,before,after", [p[1:] for p in PAIRS], ids=[p[0] for p in PAIRS])
def test_line_ends_survive(code: str, before: str, after: str, newline: str) -> None:
    result = convert(code, before.replace("\n", newline))
    assert result.new is not None
    assert result.new.decode("utf-8") == after.replace("\n", newline)


@pytest.mark.parametrize("code,before,after", [p[1:] for p in PAIRS], ids=[p[0] for p in PAIRS])
def test_comments_survive(code: str, before: str, after: str) -> None:
    assert [line.split("#", 1)[1] for line in before.split("\n") if "#" in line] == [
        line.split("#", 1)[1] for line in after.split("\n") if "#" in line
    ]


@pytest.mark.parametrize("code,text", [u[1:] for u in UNTOUCHED], ids=[u[0] for u in UNTOUCHED])
def test_untouched_is_unchanged(code: str, text: str) -> None:
    assert convert(code, text).new is None


@pytest.mark.parametrize("code,text", [t[1:] for t in REPORTED], ids=[t[0] + " is reported" for t in REPORTED])
def test_reported_is_reported_and_unchanged(code: str, text: str) -> None:
    result = convert_by(code, text)
    assert result.new is None
    assert [d.code for d in result.diagnostics if d.kind == FINDING] and {d.code for d in result.diagnostics} == {code}


@pytest.mark.parametrize(
    "code,text", [t[1:] for t in NOT_REPORTED], ids=[t[0] + " is not reported" for t in NOT_REPORTED]
)
def test_a_reporting_rule_does_not_report_the_untouched(code: str, text: str) -> None:
    assert convert_by(code, text).diagnostics == ()


@pytest.mark.parametrize("rule", RULES, ids=[r.code for r in RULES])
def test_a_rule_shows_at_least_as_much_untouched_as_changed(rule: Rule) -> None:
    labels = [label.split()[0] for label, _ in blocks(rule)]
    assert labels.count("Untouched") >= labels.count("Before") > 0 or (
        rule.code.startswith("NPU2") and labels.count("Untouched") > 0
    )


def test_rule_codes_are_unique_and_rewrites_come_before_findings() -> None:
    codes = [rule.code for rule in RULES]
    assert len(set(codes)) == len(codes)
    assert all(code[:4] in ("NPU1", "NPU2", "NPU3") and len(code) == 6 for code in codes)
    assert all(rule.title.endswith(".") for rule in RULES)
