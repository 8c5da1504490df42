"""Each trouble of the field that a rule finds: the rule finds it in the trouble's own script."""

from __future__ import annotations

import ast

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings

from npu_shim.troubles.table import FINDERS, troubles
from tests.convert.test_rules import NEEDS
from tests.convert.trouble_examples import EXAMPLES

pytestmark = pytest.mark.once
PAIRS = {(row.id, code) for row in troubles() for code in row.found_by if code not in FINDERS}


def codes_in(script: str, code: str) -> set[str]:
    """Return the codes with which the tool changes or reports something in a script, at most the one."""
    result = Converter(Settings(select=(code,), **NEEDS[code])).convert(script.encode("utf-8"))
    return {diagnostic.code for diagnostic in result.diagnostics}


def test_each_trouble_of_a_rule_has_a_script_of_its_own() -> None:
    assert PAIRS - EXAMPLES.keys() == set() and EXAMPLES.keys() - PAIRS == set()
    scripts = [ast.dump(ast.parse(script)) for (row, code), script in EXAMPLES.items() if code != "NPU250"]
    assert len(set(scripts)) == len(scripts), "two rows have the same script"


@pytest.mark.parametrize("row, code", EXAMPLES, ids=[f"{code} {row}" for row, code in EXAMPLES])
def test_a_rule_finds_its_trouble(row: str, code: str) -> None:
    assert codes_in(EXAMPLES[row, code], code) == {code}


def test_a_script_without_the_trouble_is_not_reported() -> None:
    fixed = EXAMPLES["file-order-differs", "NPU288"].replace("'*.tfrecord'", "'*.tfrecord', shuffle=False")
    assert codes_in(fixed, "NPU288") == set()
