"""``npu-shim options``: the rows of the table, as text and as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from npu_shim import cli
from npu_shim.options.page import documented_options, option_paragraph
from npu_shim.options.table import KEYS, TABLE


def test_without_a_name_each_option_is_listed(capsys: Any) -> None:
    assert cli.main(["options"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [row.name for row in documented_options()]
    for line, row in zip(lines, documented_options()):
        assert row.doc in line and line.endswith("(deprecated)") == bool(row.deprecated)


def test_a_name_prints_everything_about_the_option(capsys: Any) -> None:
    assert cli.main(["options", "precision_mode", "modify_mixlist"]) == 0
    assert capsys.readouterr().out == "{}\n\n{}\n".format(
        option_paragraph(KEYS["precision_mode"]), option_paragraph(KEYS["modify_mixlist"])
    )


@pytest.mark.parametrize("name", ["mix_compile_mode", "iterations_per_loop", "in_out_pair"])
def test_rules_between_options_are_printed_for_each_of_them(name: str, capsys: Any) -> None:
    assert cli.main(["options", name]) == 0
    assert "  with others: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "spelling, name",
    [
        ("enable_profiling", "profiling_mode"),
        ("profiling_config.enable_profiling", "profiling_mode"),
        ("model_dir", "model_dir"),
        ("dump_config", "dump_config"),
    ],
)
def test_an_option_is_found_by_its_argument(spelling: str, name: str, capsys: Any) -> None:
    assert cli.main(["options", spelling]) == 0
    assert capsys.readouterr().out.startswith(name + "\n")


def test_an_argument_that_is_not_a_key_has_no_field_and_no_tf_2_path(capsys: Any) -> None:
    assert cli.main(["options", "save_summary_steps"]) == 0
    out = capsys.readouterr().out
    assert "given by: NPURunConfig(save_summary_steps=0)\n" in out
    assert "set by hand" not in out and "global_options" not in out


def test_an_unknown_name_is_an_error_with_the_closest_names(capsys: Any) -> None:
    assert cli.main(["options", "precision_mod"]) == 2
    done = capsys.readouterr()
    assert done.out == ""
    assert done.err.startswith(
        "npu-shim options: error: unknown option 'precision_mod'. Did you mean precision_mode or "
    )


@pytest.mark.parametrize("names", [[], ["aoe_mode"], ["dump_path", "dump_step"]])
def test_json_has_everything(names: Any, capsys: Any) -> None:
    assert cli.main(["options", "--json", *names]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found] == (names or [row.name for row in documented_options()])
    for one in found:
        (row,) = [r for r in TABLE if r.name == one["name"]]
        assert (one["what"], one["allowed"], one["effect"]) == (row.doc, row.allowed.text, row.cpu)
        assert (one["not_with"], one["needs"]) == (list(row.excludes), list(row.requires))
        assert one["default_in_session"] == row.session and one["argument"] == row.arg


def test_a_closed_pipe_is_no_error(repo_root: Any) -> None:
    done = subprocess.run(
        f'"{sys.executable}" -m npu_shim options --json | head -n 1',
        shell=True,
        cwd=str(repo_root),
        capture_output=True,
    )
    assert (done.stdout, done.stderr) == (b"[\n", b"")
