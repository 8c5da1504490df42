"""The corpus of the fuzzers and their former finds, with this Python."""

from __future__ import annotations

import pathlib

import pytest
import seeds
import targets

STORED = [(target, path) for target in targets.TARGETS for path in seeds.stored(target)]


@pytest.mark.parametrize("target,path", STORED, ids=[f"{t} {p.name}" for t, p in STORED])
def test_a_stored_input(target: str, path: pathlib.Path) -> None:
    targets.TARGETS[target](path.read_bytes())


@pytest.mark.parametrize("target", list(targets.TARGETS))
def test_the_examples_of_the_rules(target: str) -> None:
    for raw in seeds.seeds(target):
        targets.TARGETS[target](raw)


@pytest.mark.parametrize(
    "target,raw",
    [
        ("script", b"import tensorflow as tf\nx = (tf.Session()  # c\n"),
        ("cell", b"%time\r\n!ls"),
        ("table", b"[tool.convert_tf2npu]\njobs = ["),
        ("places", b"\x00("),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_truncated_input_is_no_crash(target: str, raw: bytes) -> None:
    for end in range(len(raw) + 1):
        targets.TARGETS[target](raw[:end])
