"""The cache drops the least recently used values when their weights exceed the limit."""

from __future__ import annotations

import pytest
from convert_tf2npu.project.module_cache import LRU


@pytest.mark.parametrize(
    "uses,left",
    [
        ("a b c", "b c"),
        ("a b +a c", "a c"),
        ("a b a c", "a c"),
        ("a b +c c", "b c"),
        ("a b c d", "c d"),
    ],
    ids=[
        "the least recently used goes first",
        "what is asked for stays",
        "what is added again stays",
        "a question without an answer changes nothing",
        "one after the other",
    ],
)
def test_the_least_recently_used_value_is_dropped(uses: str, left: str) -> None:
    """``+`` marks a question, all others are additions."""
    kept: LRU[str, str] = LRU(20)
    gone: list[str] = []
    for use in uses.split():
        if use.startswith("+"):
            assert kept.get(use[1:]) == (use[1:].upper() if use[1:] in kept else None)
            continue
        gone += kept.put(use, use.upper(), 10)
    assert [key for key in "abcd" if key in kept] == left.split()
    assert sorted(gone) == sorted(set(uses.replace("+", "").upper().split()) - set(left.upper().split()))


def test_a_large_value_drops_several() -> None:
    kept: LRU[str, int] = LRU(30)
    assert [kept.put(key, number, 10) for number, key in enumerate("abc")] == [[], [], []]
    assert kept.put("d", 3, 25) == [0, 1, 2]


def test_a_value_of_the_same_key_is_replaced_with_its_weight() -> None:
    kept: LRU[str, int] = LRU(30)
    kept.put("a", 1, 25)
    assert kept.put("a", 2, 10) == [] and kept.get("a") == 2
    assert kept.put("b", 3, 20) == [] and "a" in kept


def test_one_value_stays_however_large_it_is() -> None:
    kept: LRU[str, int] = LRU(1)
    assert kept.put("a", 1, 10) == [] and kept.put("b", 2, 20) == [1]
    assert "b" in kept and kept.get("a") is None
