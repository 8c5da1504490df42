"""A cache of values with weights that drops the least recently used ones."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class LRU(Generic[_Key, _Value]):
    """A least recently used cache with a limit for the sum of the weights. One value always stays.

    Args:
        most: the limit.

    Attributes:
        most: the limit, which holds from the next value on.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._size = 0
        self._values: OrderedDict[_Key, tuple[_Value, int]] = OrderedDict()

    def __contains__(self, key: _Key) -> bool:
        return key in self._values

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key and mark it as used now; None if there is none."""
        entry = self._values.get(key)
        if entry is None:
            return None
        self._values.move_to_end(key)
        return entry[0]

    def put(self, key: _Key, value: _Value, weight: int) -> list[_Value]:
        """Add a value, or replace the value of a key, and return the values that are dropped for it."""
        old = self._values.pop(key, None)
        if old is not None:
            self._size -= old[1]
        self._values[key] = value, weight
        self._size += weight
        dropped = []
        while self._size > self.most and len(self._values) > 1:
            _, (least, its_weight) = self._values.popitem(last=False)
            self._size -= its_weight
            dropped.append(least)
        return dropped
