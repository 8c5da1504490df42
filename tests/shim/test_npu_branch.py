"""On the NPU, every name of the vendor's interface is the vendor's own: checked with a made-up package."""

from __future__ import annotations

import ast
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).with_name("card_checks.py")
HELPERS = ("write", "vendors")
NAMES = [
    node.name
    for node in ast.parse(SCRIPT.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name not in HELPERS
]


@pytest.fixture(scope="module")
def results(repo_root, tmp_path_factory):
    """Return what each check printed; they run in a process of their own, because names are loaded once."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT), str(tmp_path_factory.mktemp("package"))],
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(repo_root)),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if line.split(" ", 1)[0] in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_on_a_card(results, name):
    assert results[name] == "ok"
