"""The shared memory segment of a group: the layout of its words, texts and slots.

Only single 64-bit words are read without a lock: the hardware writes an aligned
word atomically. Texts and data are written before the word that announces them,
and read after it.

=============  ==========================================================
header         version, sizes, state; the setup error; the schedule
rank pages     each rank's process, state, barrier counter and announcements
records        the request of each announcement
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
VERSION = 3
ENTRIES = 1024  # announcements of one rank at a time
RECORD_BYTES = 512
_RANK_BYTES = PAGE + ENTRIES * WORD

# Words of the header
_MAGIC, _VERSION, _SIZE, _CHUNK = range(4)
STATE, REJECTED = 8, 9
SCHEDULED_NUMBER, SCHEDULED_TOKEN, SCHEDULED_IS_MISMATCH = 16, 17, 18
SETUP_TEXT, MISMATCH_TEXT = 1024, 2048
TEXT_BYTES = 1024
# Words of a rank's pages; the counter and the announcements have their own cache lines
INCARNATION, PID, RANK_STATE = range(3)
COUNTER = 16
ASKED, ANSWERED = 24, 25  # numbers of the questions where the script is, and of the answers
RANK_TEXT, LINE_TEXT = 1024, 2048  # bytes
LINE_BYTES = 512
TOKENS = PAGE // WORD

SETTING_UP, READY, FAILED = 0, 1, 2  # STATE; FAILED + error_code()
PRESENT, LEFT, BROKEN = 0, 1, 2  # RANK_STATE; BROKEN + error_code()


@dataclass(frozen=True)
class Layout:
    """Sizes of a segment of ``size`` ranks whose slots have ``chunk_bytes`` bytes."""

    size: int
    chunk_bytes: int

    @property
    def records_at(self) -> int:
        """Return the byte offset of the records."""
        return PAGE + self.size * _RANK_BYTES

    @property
    def slots_at(self) -> int:
        """Return the byte offset of the slots."""
        return self.records_at + self.size * ENTRIES * RECORD_BYTES

    @property
    def total_bytes(self) -> int:
        """Return the size of the segment in bytes."""
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
    def create_private(cls, layout: Layout) -> Segment:
        """Return a segment in private memory, for a group of one rank."""
        return cls(-1, layout)

    @classmethod
    def create(cls, path: str, layout: Layout) -> Segment:
        """Create a segment; reserve() allocates its memory."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(fd, layout.total_bytes)
        segment = cls(fd, layout)
        segment._unreserved = fd
        for word, value in ((_VERSION, VERSION), (_SIZE, layout.size), (_CHUNK, layout.chunk_bytes)):
            segment.words[word] = value
        fence()
        segment.words[_MAGIC] = MAGIC
        return segment

    @classmethod
    def open(cls, path: str) -> Segment:
        """Map a segment that another rank created.

        Raises:
            FileNotFoundError: it does not exist, or is incomplete.
            Mismatch: another version of npu_shim created it.
        """
        fd = os.open(path, os.O_RDWR)
        try:
            head = np.frombuffer(os.pread(fd, 4 * WORD, 0), np.uint64)
            if len(head) < 4 or head[_MAGIC] != MAGIC:  # not completely written yet
                raise FileNotFoundError(path)
            if head[_VERSION] != VERSION:
                raise Mismatch(
                    f"the other ranks use version {head[_VERSION]} of the shared memory layout, this rank version "
                    f"{VERSION}. Install the same npu_shim for every rank."
                )
            return cls(fd, Layout(int(head[_SIZE]), int(head[_CHUNK])))
        finally:
            os.close(fd)

    def allocate_memory(self) -> None:
        """Allocate the memory now: on demand, a full file system would kill the process with SIGBUS.

        Raises:
            CollectiveError: there is not enough memory.
        """
        try:
            os.posix_fallocate(self._unreserved, 0, self.layout.total_bytes)
        except OSError as error:
            raise CollectiveError(
                f"{self.layout.size} ranks need {self.layout.total_bytes >> 20} MB of shared memory, which is not "
                f"available ({error.strerror}). Free some, or enlarge it (in a container: --shm-size)."
            ) from error
        finally:
            os.close(self._unreserved)

    def first_word_of_page(self, rank: int) -> int:
        """Return the index of the first word of a rank's pages."""
        return (PAGE + rank * _RANK_BYTES) // WORD

    def barrier_counter_indices(self) -> list[int]:
        """Return the index of each rank's barrier counter."""
        return [self.first_word_of_page(rank) + COUNTER for rank in range(self.layout.size)]

    def tokens_offset(self, rank: int) -> int:
        """Return the byte offset of a rank's announcements."""
        return (self.first_word_of_page(rank) + TOKENS) * WORD

    def record_offset(self, rank: int, entry: int) -> int:
        """Return the byte offset of the record of an announcement."""
        return self.layout.records_at + (rank * ENTRIES + entry) * RECORD_BYTES

    def write_text(self, offset: int, text: str, max_bytes: int = TEXT_BYTES) -> None:
        """Write a text at a byte offset, truncated to max_bytes. The caller announces it afterwards."""
        raw = text.encode("utf-8")[: max_bytes - 2]
        self.memory[offset : offset + 2 + len(raw)] = len(raw).to_bytes(2, "little") + raw

    def read_text(self, offset: int) -> str:
        """Read a text that write_text wrote."""
        count = int.from_bytes(self.memory[offset : offset + 2], "little")
        return self.memory[offset + 2 : offset + 2 + count].decode("utf-8", "ignore")

    def text_offset(self, rank: int) -> int:
        """Return the byte offset of the text in which a rank writes why it exited or failed."""
        return self.first_word_of_page(rank) * WORD + RANK_TEXT


_first, _second = threading.Lock(), threading.Lock()


def _full_fence() -> None:
    # Accesses before a lock's release stay before it, and accesses after an acquisition stay after it. The release of
    # the first lock and the acquisition of the second, by the same thread, are never reordered.
    with _first:
        pass
    with _second:
        pass


def _no_fence() -> None:
    """Do nothing: x86 keeps the order of stores and of loads."""


# Orders data and the word that announces it. The version for other processors is not tested on one.
fence = _no_fence if platform.machine() in ("x86_64", "AMD64", "i686", "i386") else _full_fence
