"""Programs of the record, others each night: none is worse than its row."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
_NIGHTLY = 2  # programs


def test_a_sample_of_the_record_is_not_worse_than_its_rows() -> None:
    command = [sys.executable, str(ROOT / "docs" / "make_record.py"), "--check", "--quick", "--sample", str(_NIGHTLY)]
    done = subprocess.run(
        command,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    output = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, output
    # a program without its checkout, or without its packages, is named with what brings them
    outcome = r"(?m)^\S.*@2\.15: (?:ran \w+, |no checkout\. Run: git clone |not measured\. ModuleNotFoundError)"
    assert len(re.findall(outcome, output)) == _NIGHTLY, output
