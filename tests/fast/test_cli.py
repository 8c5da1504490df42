"""The command ``npu-shim``: its verbs, and its errors for wrong ones."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

import pytest

from npu_shim import cli
from npu_shim.cli._values import add_options

VERBS = [
    "assess",
    "convert",
    "diagnose",
    "doctor",
    "dumps",
    "export",
    "launch",
    "migrate",
    "observe",
    "options",
    "profile",
    "ranktable",
    "run",
    "verify",
]


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_lists_the_verbs(arguments: list[str], capsys: Any) -> None:
    assert cli.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.split()[0] for line in lines if line.startswith("  ")) == VERBS
    assert [line[:-1] for line in lines if line.endswith(":")] == list(cli.GROUPS)
    assert all(line.rstrip().endswith(".") for line in lines if line.startswith("  "))


def test_help_explains_a_verb(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        cli.main(["help", "options"])
    assert capsys.readouterr().out.startswith("usage: npu-shim options ")
    assert cli.main(["help", "optoins"]) == 2
    assert "unknown verb 'optoins'. Did you mean options?" in capsys.readouterr().err


def test_an_unknown_verb_is_an_error_with_the_closest_name(capsys: Any) -> None:
    assert cli.main(["rum", "train.py"]) == 2
    assert capsys.readouterr().err == (
        "npu-shim: error: unknown verb 'rum'. Did you mean run? The verbs are {}.\n".format(", ".join(VERBS))
    )


def test_an_option_before_the_verb_is_an_error(capsys: Any) -> None:
    assert cli.main(["-v", "run", "train.py"]) == 2
    assert "'-v' comes before a verb. Write npu-shim VERB ..." in capsys.readouterr().err


def test_options_are_added_as_their_help_shows_them() -> None:
    parser = argparse.ArgumentParser()
    text = (
        "-r --report DIR  write the result\n    to DIR\n--fast  be quick\n\nnumbers:\n--one N  a\n| --two-parts N  b\n"
    )
    add_options(parser, text, one={"type": int})
    args = parser.parse_args(["-r", "out", "--fast", "--one", "3"])
    assert (args.report, args.fast, args.one, args.two_parts) == ("out", True, 3, None)
    assert "-r DIR, --report DIR  write the result to DIR" in parser.format_help()
    assert "numbers:\n  --one N" in parser.format_help()
    with pytest.raises(SystemExit):
        parser.parse_args(["--one", "3", "--two-parts", "4"])
    with pytest.raises(AssertionError):
        add_options(argparse.ArgumentParser(), "--one N  a", three={"type": int})


def test_version_prints_the_release(capsys: Any) -> None:
    from npu_shim import __version__

    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"npu_shim {__version__}\n"


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_help(verb: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([verb, "--help"])
    assert ended.value.code == 0
    name = "convert_tf2npu" if verb == "convert" else f"npu-shim {verb}"
    assert capsys.readouterr().out.startswith(f"usage: {name} ")


def test_listing_verbs_and_explaining_them_loads_neither_tensorflow_nor_numpy(repo_root: Any) -> None:
    code = (
        "import sys\nfrom npu_shim.cli import main, verb, verb_names\nmain([])\n"
        "for name in verb_names(): verb(name)\n"
        'print(sorted({"tensorflow", "numpy", "npu_bridge"} & set(sys.modules)))'
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=str(repo_root), stdout=subprocess.PIPE, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_module_runs_the_command(repo_root: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "npu_shim", "nonsense"], cwd=str(repo_root), stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 2 and "unknown verb 'nonsense'" in done.stderr
