"""Errors of ``npu-shim export`` for wrong input."""

from __future__ import annotations

import pathlib

import pytest

from npu_shim.cli import main

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing source. Give a SavedModel"),
        (["--script", "missing.py"], "file not found: missing.py"),
        (["missing"], "file not found: missing. Give a SavedModel"),
        (["{folder}"], "missing folder for the exported model. Give -o OUT"),
        (["{folder}", "-o", "out", "--range", "1", "1"], "--range 1 1 is empty"),
        (["{folder}", "-o", "out", "--for", "paper"], "invalid choice: 'paper'"),
        (["{folder}", "-o", "out", "--for", "atc"], "--for atc needs the processor. Give --soc-version"),
        (["{folder}", "-o", "out", "--dynamic-batch", "4"], "--dynamic-batch needs two sizes or more"),
        (["{folder}", "--list"], "no model found. Give a SavedModel"),
        (["{folder}/broken.pb", "--list"], "broken.pb is no GraphDef"),
    ],
)
def test_wrong_input_is_an_error_that_says_what_to_do(
    arguments: list[str], message: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.pb").write_bytes(b"\x0a\xff\xff")
    try:
        code = main(["export", *(each.format(folder=tmp_path) for each in arguments)])
    except SystemExit as error:  # argparse
        code = int(error.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err
