"""The seeds of fuzzing: the files of ``corpus/`` and the examples in the rules' docstrings."""

from __future__ import annotations

import json
import pathlib

from convert_tf2npu.report.explanation import doc_blocks
from convert_tf2npu.rules.registry import Registry

_APART = 11  # two examples of different rules
_CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def stored(target: str) -> list[pathlib.Path]:
    """The files of a target's corpus: seeds, and what was once found."""
    return sorted(path for path in (_CORPUS / target).iterdir() if path.is_file())


def seeds(target: str) -> list[bytes]:
    """All that a target begins with."""
    examples = [
        block.text + "\n" for rule in Registry().rules for block in doc_blocks(rule.doc) if block.kind == "code"
    ]
    made = [path.read_bytes() for path in stored(target)]
    if target == "notebook":
        made += [_notebook(text) for text in examples]
    elif target == "project":
        made += [_project(first, second) for first, second in zip(examples, examples[_APART:])]
    elif target != "table":
        made += [text.encode("utf-8") for text in examples]
    return made


def _project(first: str, second: str) -> bytes:
    """Two files; the second imports the first unless it begins with what must be its first statement."""
    imported = "" if "__future__" in second else "import a\n"
    return f"# file a.py\n{first}# file b.py\n{imported}{second}".encode()


def _notebook(text: str) -> bytes:
    cells = [{"cell_type": "code", "source": part.splitlines(True)} for part in text.split("\n\n")]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}, indent=1).encode("utf-8")
