"""Verify two scripts that a test has as text."""

from __future__ import annotations

import pathlib
from typing import Any, Callable

import pytest

from tests.verify_command import VerifyCommand

Verify = Callable[..., Any]


@pytest.fixture
def verify(verify_command: VerifyCommand, tmp_path: pathlib.Path) -> Verify:
    """verify(original, migrated, *arguments) -> the result for two scripts."""

    def run(original: str, migrated: str, *arguments: str) -> Any:
        for name, text in (("original.py", original), ("migrated.py", migrated)):
            (tmp_path / name).write_text(text, encoding="utf-8")
        code, output, found = verify_command(tmp_path, "--copy", "original.py", "migrated.py", *arguments)
        assert code in (0, 1, 3), output
        return found

    return run
