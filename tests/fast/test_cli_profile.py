"""Errors of ``npu-shim profile`` for wrong input."""

from __future__ import annotations

import pathlib

import pytest

from npu_shim.cli import main

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: DIR"),
        (["missing"], "folder not found: missing. Give the folder of a profile"),
        (["{folder}", "missing"], "folder not found: missing"),
        (["{folder}", "--graph", "missing"], "folder not found: missing"),
        (["{folder}"], "{folder} has no op_summary*.csv, msprof*.db or msprof*.json. Give the DIR of npu-shim run"),
        (["{folder}", "{folder}", "--html", "page.html"], "are for one profile. Give one folder"),
        (["{folder}/bad"], "its first line has no column 'op name', 'task start time'. Export the profile again"),
        (["{folder}", "--product", "ascend911"], "--product ascend911: no such product"),
    ],
)
def test_wrong_input_is_an_error_that_says_what_to_do(
    arguments: list[str], message: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad").mkdir()
    if "bad" in str(arguments):
        (tmp_path / "bad" / "op_summary_20240101000000.csv").write_text("Task Duration(us)\n1\n", encoding="utf-8")
    try:
        code = main(["profile", *(each.format(folder=tmp_path) for each in arguments)])
    except SystemExit as error:  # argparse
        code = int(error.code or 0)
    assert code == 2
    assert message.format(folder=tmp_path) in capsys.readouterr().err


def test_only_what_msprof_collects_is_exported_by_it(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "PROF_1").mkdir()
    assert main(["profile", str(tmp_path)]) == 2
    assert f"Run msprof --export=on --output={tmp_path}" in capsys.readouterr().err
