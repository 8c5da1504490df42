"""Helper functions of Horovod that scripts import."""

from __future__ import annotations

import pytest

from npu_shim.horovod.common import util


def test_helpers_return_what_horovods_do() -> None:
    assert [list(part) for part in util.split_list(range(7), 3)] == [[0, 1, 2], [3, 4], [5, 6]]
    assert [number for number in range(-1, 17) if util.num_rank_is_power_2(number)] == [1, 2, 4, 8, 16]
    assert util.is_iterable([]) and not util.is_iterable(1)
    assert not util.gpu_available("tensorflow")


@pytest.mark.parametrize(
    "version, target, is_at_least",
    [("2.6.0", "2.6.0", True), ("2.10.0", "2.6.0", True), ("2.5.9", "2.6.0", False), ("2.6.0rc1", "2.6.0", True)],
)
def test_versions_are_compared_by_number(version: str, target: str, is_at_least: bool) -> None:
    assert util.is_version_greater_equal_than(version, target) == is_at_least


def test_a_version_of_two_parts_is_an_error() -> None:
    with pytest.raises(ValueError, match="the version '2.6' is not allowed. Write it as major.minor.patch."):
        util.is_version_greater_equal_than("2.6", "2.6.0")
