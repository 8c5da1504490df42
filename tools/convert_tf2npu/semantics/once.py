"""Answers that are computed once."""

from __future__ import annotations

from typing import Any, Callable, TypeVar

_Answer = TypeVar("_Answer")


class Once:
    """An object that keeps the answers of functions about it."""

    def __init__(self) -> None:
        self._answers: dict[tuple[object, ...], Any] = {}

    def once(self, find: Callable[..., _Answer], *args: object) -> _Answer:
        """Return ``find(self, *args)``, computed once. The answer lives as long as this object."""
        key = find, args
        try:
            answer: _Answer = self._answers[key]
        except KeyError:
            answer = self._answers[key] = find(self, *args)
        return answer
