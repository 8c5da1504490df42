"""The shared memory of a group of ranks: where each word, text and slot is.

All that is read without a lock is a 64-bit word on its own: the machine writes
an aligned word whole. Texts and data are written before the word that announces
them and read after it.

=============  ==========================================================
header         version, sizes, state; why the set-up failed; the go record
rank pages     who the rank is, its state, its counter, its announcements
records        what each announcement asks for
slots          [2 halves][rank][chunk]: the data
=============  ==========================================================
"""

from __future__ import annotations

import mmap
import os
import platform
import threading
from dataclasses import dataclass

import numpy as np

from npu_shim.distributed.collectives.errors import CollectiveError, Mismatch

PAGE = 4096
WORD = 8
MAGIC = 0x6E70755F73686D31
VERSION = 2
LANES = 1024  # collectives that one rank can have announced at a time
RECORD_BYTES = 512
_RANK_BYTES = PAGE + LANES * WORD

# Words of the header
_MAGIC, _VERSION, _SIZE, _CHUNK = range(4)
STATE, REFUSED = 8, 9
GO_NUMBER, GO_TOKEN, GO_VERDICT = 16, 17, 18
REFUSAL_TEXT, GO_TEXT = 1024, 2048
TEXT_BYTES = 1024
# Words of a rank's pages; the counter and the announcements have cache lines of their own
LIFE, PID, RANK_STATE = range(3)
COUNTER = 16
RANK_TEXT = 1024  # byte
TOKENS = PAGE // WORD

SETTING_UP, READY, FAILED = 0, 1, 2  # STATE; FAILED + the error's code
PRESENT, LEFT, BROKEN = 0, 1, 2  # RANK_STATE; BROKEN + the error's code


@dataclass(frozen=True)
class Layout:
    """Sizes of a segment of ``size`` ranks whose slots have ``chunk_bytes`` bytes."""

    size: int
    chunk_bytes: int

    @property
    def records_at(self) -> int:
        """Byte where the records begin."""
        return PAGE + self.size * _RANK_BYTES

    @property
    def slots_at(self) -> int:
        """Byte where the slots begin."""
        return self.records_at + self.size * LANES * RECORD_BYTES

    @property
    def total_bytes(self) -> int:
        """Bytes of the whole segment."""
        return self.slots_at + 2 * self.size * self.chunk_bytes


class Segment:
    """A mapped segment. ``words`` are its 64-bit words up to the records, ``slots`` its data."""

    def __init__(self, fd: int, layout: Layout) -> None:
        self.layout = layout
        self._unreserved = -1
        self.memory = mmap.mmap(fd, layout.total_bytes)
        self.words = memoryview(self.memory)[: layout.records_at].cast("Q")
        slots = np.frombuffer(self.memory, np.uint8, 2 * layout.size * layout.chunk_bytes, layout.slots_at)
        self.slots = slots.reshape(2, layout.size, layout.chunk_bytes)

    @classmethod
    def private(cls, layout: Layout) -> Segment:
        """The segment of a group of one rank: memory of this process."""
        return cls(-1, layout)

    @classmethod
    def create(cls, path: str, layout: Layout) -> Segment:
        """Makes a segment; its memory is only taken by reserve()."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(fd, layout.total_bytes)
        made = cls(fd, layout)
        made._unreserved = fd
        for word, value in ((_VERSION, VERSION), (_SIZE, layout.size), (_CHUNK, layout.chunk_bytes)):
            made.words[word] = value
        fence()
        made.words[_MAGIC] = MAGIC
        return made

    @classmethod
    def open(cls, path: str) -> Segment:
        """Maps a segment that another rank made.

        Raises:
            FileNotFoundError: it is not there, or not any more.
            Mismatch: another version of this package made it.
        """
        fd = os.open(path, os.O_RDWR)
        try:
            head = np.frombuffer(os.pread(fd, 4 * WORD, 0), np.uint64)
            if len(head) < 4 or head[_MAGIC] != MAGIC:  # not yet written in full
                raise FileNotFoundError(path)
            if head[_VERSION] != VERSION:
                raise Mismatch(
                    f"the other ranks' npu_shim shares memory in form {head[_VERSION]}, this one in form "
                    f"{VERSION}: install the same npu_shim for every rank."
                )
            return cls(fd, Layout(int(head[_SIZE]), int(head[_CHUNK])))
        finally:
            os.close(fd)

    def reserve(self) -> None:
        """Takes the memory now: taken page by page, a full file system would kill the process with SIGBUS.

        Raises:
            CollectiveError: there is not enough.
        """
        try:
            os.posix_fallocate(self._unreserved, 0, self.layout.total_bytes)
        except OSError as error:
            raise CollectiveError(
                f"{self.layout.size} ranks share {self.layout.total_bytes >> 20} MB of memory, which is not there "
                f"({error.strerror}): free some, or enlarge it (in a container: --shm-size)."
            ) from error
        finally:
            os.close(self._unreserved)

    def page(self, rank: int) -> int:
        """Index of the first word of a rank's pages."""
        return (PAGE + rank * _RANK_BYTES) // WORD

    def counters(self) -> list[int]:
        """Index of each rank's counter."""
        return [self.page(rank) + COUNTER for rank in range(self.layout.size)]

    def tokens_at(self, rank: int) -> int:
        """Byte where a rank's announcements begin."""
        return (self.page(rank) + TOKENS) * WORD

    def record_at(self, rank: int, lane: int) -> int:
        """Byte where the record of an announcement begins."""
        return self.layout.records_at + (rank * LANES + lane) * RECORD_BYTES

    def write_text(self, at: int, text: str, room: int = TEXT_BYTES) -> None:
        """Writes a text at a byte, cut to the room there is; the word that announces it is written afterwards."""
        raw = text.encode("utf-8")[: room - 2]
        self.memory[at : at + 2 + len(raw)] = len(raw).to_bytes(2, "little") + raw

    def read_text(self, at: int) -> str:
        """A text that write_text wrote."""
        count = int.from_bytes(self.memory[at : at + 2], "little")
        return self.memory[at + 2 : at + 2 + count].decode("utf-8", "ignore")

    def rank_text(self, rank: int) -> int:
        """Byte of the text in which a rank says why it ended or failed."""
        return self.page(rank) * WORD + RANK_TEXT


_first, _second = threading.Lock(), threading.Lock()


def _full_fence() -> None:
    # Releasing a lock keeps what is before it before; taking one keeps what is after it after. Between the release
    # of the first and the taking of the second both are locks of this thread, and those are never swapped.
    with _first:
        pass
    with _second:
        pass


def _no_fence() -> None:
    """x86 shows other cores the stores of one core in their order, and reads in order."""


# Between data and the word that announces it. The form for other machines is not tested on any (no ARM at hand).
fence = _no_fence if platform.machine() in ("x86_64", "AMD64", "i686", "i386") else _full_fence
