"""Errors of ``npu-shim dumps`` for wrong input."""

from __future__ import annotations

import pathlib

import pytest

from npu_shim.cli import main

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: compare | overflow"),
        (["compare", "missing", "{folder}"], "folder not found: missing. Give the dump_path"),
        (["compare", "{folder}", "missing"], "folder not found: missing"),
        (["compare", "{folder}", "{folder}", "--graph", "missing"], "folder not found: missing"),
        (["compare", "{folder}", "{folder}", "--tolerance", "0"], "'0' is not allowed: it must be a positive number"),
        (["compare", "{folder}/empty", "{folder}"], "has no dump files, TYPE.NAME.TASK.STREAM.TIMESTAMP"),
        (["compare", "{folder}/card", "{folder}"], "has a counterpart in {folder}"),
        (["overflow", "missing"], "folder not found: missing"),
        (["overflow", "{folder}", "--loss-scale", "many"], "file not found: many. Give a number, or a file"),
        (["overflow", "{folder}", "--loss-scale", "{folder}/scales.csv"], "scales.csv:2: 'two' is not STEP,SCALE"),
    ],
)
def test_wrong_input_is_an_error_that_says_what_to_do(
    arguments: list[str], message: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scales.csv").write_text("1,2\ntwo\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / "Op.op.1.2.3").write_bytes(b"\0" * 8)
    try:
        code = main(["dumps", *(each.format(folder=tmp_path) for each in arguments)])
    except SystemExit as error:  # argparse
        code = int(error.code or 0)
    assert code == 2
    assert message.format(folder=tmp_path) in capsys.readouterr().err
