"""The line of its script that a rank is at, which other ranks ask for when it keeps them waiting."""

from __future__ import annotations

import threading
import time
from typing import Callable, Sequence

from npu_shim.distributed.collectives.errors import NO_ANSWER
from npu_shim.distributed.shm.segment import ANSWERED, ASKED, LINE_BYTES, LINE_TEXT, WORD, Segment, fence

_LOOK_INTERVAL_S, _ANSWER_TIMEOUT_S = 0.25, 2.0


class Answers:
    """Answer other ranks on a thread of this process.

    Args:
        world: the segment of the world group.
        rank: the rank of this process.
        where: returns the line of the script that this process is at.
    """

    def __init__(self, world: Segment, rank: int, where: Callable[[], str]) -> None:
        self._world, self._page, self._where = world, world.first_word_of_page(rank), where
        self._ended = threading.Event()
        world.words[self._page + ASKED] = world.words[self._page + ANSWERED] = 1
        self._thread = threading.Thread(target=self._answer_requests, name="npu_shim script line", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join(_ANSWER_TIMEOUT_S)

    def _answer_requests(self) -> None:
        words, page = self._world.words, self._page
        while not self._ended.wait(_LOOK_INTERVAL_S):
            asked = words[page + ASKED]
            if asked != words[page + ANSWERED]:
                self._world.write_text(page * WORD + LINE_TEXT, self._where(), LINE_BYTES)
                fence()
                words[page + ANSWERED] = asked


def ask_script_lines(world: Segment, ranks: Sequence[int]) -> list[str]:
    """Return where some ranks are in their scripts: ``at train.py:42 in load``.

    Args:
        world: the segment of the world group.
        ranks: world ranks.
    Returns:
        A text for each rank; empty if it answers no such question.
    """
    words, pages = world.words, [world.first_word_of_page(rank) for rank in ranks]
    asked = [page for page in pages if words[page + ANSWERED]]
    for page in asked:
        words[page + ASKED] += 1
    give_up = time.monotonic() + _ANSWER_TIMEOUT_S
    while any(words[page + ANSWERED] != words[page + ASKED] for page in asked) and time.monotonic() < give_up:
        time.sleep(_LOOK_INTERVAL_S / 10)
    fence()
    return [_read_answer(world, page) if page in asked else "" for page in pages]


def _read_answer(world: Segment, page: int) -> str:
    if world.words[page + ANSWERED] != world.words[page + ASKED]:
        return NO_ANSWER
    return world.read_text(page * WORD + LINE_TEXT)
