"""The corpus of the fuzzers and their former finds, with this Python."""

from __future__ import annotations

import argparse
import pathlib
from typing import Sequence

import pytest
import seeds
import targets
from convert_tf2npu.cli.arguments import add_rule_arguments
from option_table import ROWS, settings, some_rows

# By day each n-th example of the targets that convert it: tests/convert/test_rules.py has all examples.
BY_DAY = {"script": 6, "notebook": 6, "project": 40}
STORED = [(target, path) for target in targets.TARGETS for path in seeds.stored(target)]


@pytest.mark.parametrize("target,path", STORED, ids=[f"{t} {p.name}" for t, p in STORED])
def test_a_stored_input(target: str, path: pathlib.Path) -> None:
    run(target, path.read_bytes(), ROWS)


@pytest.mark.parametrize("rows", [(), pytest.param(ROWS, marks=pytest.mark.nightly)], ids=["a few options", "all"])
@pytest.mark.parametrize("target", list(targets.TARGETS))
def test_the_examples_of_the_rules(target: str, rows: Sequence[str]) -> None:
    made = seeds.seeds(target)
    for raw in made if rows else made[:: BY_DAY.get(target, 1)]:
        run(target, raw, rows)


def run(target: str, raw: bytes, rows: Sequence[str]) -> None:
    """Run a target, with rows of the table of options if it takes them."""
    if target in targets.CONVERTING:
        targets.TARGETS[target](raw, rows)
    else:
        targets.TARGETS[target](raw)


def test_the_table_of_options_has_all_that_rules_take() -> None:
    made = argparse.ArgumentParser()
    add_rule_arguments(made)
    values = {action.dest: {getattr(settings(row), action.dest) for row in ROWS}
              for action in made._actions if action.dest not in ("help", "select", "ignore", "facts", "no_facts_for")}  # fmt: skip
    choices = {action.dest: {"", *action.choices} for action in made._actions if action.choices}
    assert values == {"compat_v1": {False, True}, **choices}
    assert len(set(map(settings, ROWS))) == len(ROWS) == 24


def test_many_inputs_have_all_options() -> None:
    assert {row for number in range(100) for row in some_rows(b"%d" % number)} == set(ROWS)
    assert all(len(set(some_rows(b"%d" % number))) == 3 for number in range(100))


@pytest.mark.parametrize(
    "target,raw",
    [
        ("script", b"import tensorflow as tf\nx = (tf.Session()  # c\n"),
        ("cell", b"%time\r\n!ls"),
        ("table", b"[tool.convert_tf2npu]\njobs = ["),
        ("places", b"\x00("),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_truncated_input_is_no_crash(target: str, raw: bytes) -> None:
    for end in range(len(raw) + 1):
        targets.TARGETS[target](raw[:end])
