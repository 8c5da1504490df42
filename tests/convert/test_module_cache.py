"""Which modules stay in memory when there is no place for all."""

from __future__ import annotations

import pytest
from convert_tf2npu.project.module_cache import AtHand
from convert_tf2npu.project.project import Module, Project

NODES = 40  # about, of each module


def module(path: str) -> Module:
    return Project().understand(b"x = f(y, z)\n" * (NODES // 6), "/" + path)


@pytest.mark.parametrize(
    "reads,left",
    [
        ("a b c", "b c"),
        ("a b +a c", "a c"),
        ("?a ?b ?c", "b c"),
        ("?a b c", "a c"),
        ("?a b c d", "a d"),
        ("a ?b ?c", "a c"),
        ("?a b a c", "a c"),
        ("?a a b c", "b c"),
    ],
    ids=[
        "the longest unused goes first",
        "what is used stays",
        "also of those that are asked for",
        "what is asked for stays",
        "and stays",
        "in half of the place",
        "what is converted is as new",
        "what was converted is asked for no more",
    ],
)
def test_what_is_most_likely_to_be_asked_for_stays(reads: str, left: str) -> None:
    """``?`` marks what is read because somebody asks, ``+`` what is used and not read."""
    size = len(module("a").names.parents)
    kept = AtHand(2 * size)
    gone: list[str] = []
    for read in reads.split():
        if read.startswith("+"):
            assert kept.get("/" + read[1:])
            continue
        gone += [each.path[1:] for each in kept.keep(module(read.lstrip("?")), read.startswith("?"))]
    assert [path for path in "abcd" if "/" + path in kept] == left.split()
    assert set(gone) | set(left.split()) == set(reads.replace("?", "").replace("+", "").split())


def test_half_of_the_place_is_for_those_that_were_converted() -> None:
    size = len(module("a").names.parents)
    kept = AtHand(4 * size)
    for number in range(4):
        kept.keep(module(f"asked{number}"), True)
    gone = [each.path for path in "abc" for each in kept.keep(module(path), False)]
    assert gone == ["/asked0", "/asked1", "/a"]


def test_one_module_stays_however_large_it_is() -> None:
    kept = AtHand(1)
    assert [each.path for path in "ab" for each in kept.keep(module(path), True)] == ["/a"]
    assert "/b" in kept and kept.get("/a") is None
