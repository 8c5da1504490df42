"""The options for half precision of ``npu-shim run``: their spelling and errors."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import pytest

from npu_shim.cli import _half, main


def test_half_without_a_type_does_not_take_the_script() -> None:
    assert _half.with_type_of_half(["--half", "train.py"]) == ["--half=float16", "train.py"]
    assert _half.with_type_of_half(["--half", "bfloat16", "train.py"]) == ["--half", "bfloat16", "train.py"]
    assert _half.with_type_of_half(["train.py"]) == ["train.py"] and _half.with_type_of_half(["--half"]) == [
        "--half=float16"
    ]


@pytest.mark.parametrize(
    "options, text",
    [
        (["--saturate"], "--saturate needs --half. Add it."),
        (["--precision-mode", "force_fp16"], "--precision-mode needs --half. Add it."),
        (["--half=float8"], "invalid choice: 'float8'"),
        (["--half", "--precision-mode", "fast"], "invalid choice: 'fast'"),
        (["--half", "--mixlist", "missing.json"], "file not found: missing.json."),
    ],
)
def test_wrong_options_are_errors(
    options: list[str], text: str, tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        sys.exit(main(["run", *options, "train.py"]))
    assert end.value.code == 2 and text in capsys.readouterr().err


def test_the_script_may_have_an_option_of_the_same_name(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint(sys.argv[1:])\n")
    # A process of its own: the import hook of a script that runs stays in its process.
    command = [sys.executable, "-m", "npu_shim", "run", str(tmp_path / "train.py"), "--half", "x"]
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout == b"['--half', 'x']\n"
