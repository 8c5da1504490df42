"""Give Python and NumPy the same entropy in every run: generators without a seed, os.urandom, seeds from the clock.

The numbers follow from the function that asks, and from how often it has asked. The standard library and npu_shim get
true entropy for themselves, as for names of temporary files. So do texts of the modules uuid and secrets: scripts name
folders by them, and a second run must not continue in the folder of the first.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import itertools
import linecache
import os
import random
import re
import sys
import sysconfig
import time
import uuid
from collections import defaultdict
from types import FrameType
from typing import Callable

import numpy as np

from npu_shim._host.packages import SITE_FOLDERS
from npu_shim._tensorflow.types import Result, Value

Note = Callable[[str, object, str], None]  # receives each seed that a script sets: call, value and line

_PYTHON = os.path.join(sysconfig.get_path("stdlib"), "")
_OWN = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "")
_SOURCES = ("random", "secrets", "uuid", __name__)  # modules that pass entropy on
_TEXTS = ("token_hex", "token_urlsafe")
_CLOCK = re.compile(r"\b(time|time_ns|now|utcnow|today|perf_counter|perf_counter_ns|monotonic|getpid)\(\)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_START = time.time()
_UNITS = (1.0, 1e3, 1e6, 1e9)  # of a clock, per second
_WRAPS = (2**32, 2**32 - 1, 2**31, 2**31 - 1)  # by which scripts reduce a time in ms
_RECENT = 60.0  # seconds in which such a time becomes a seed


class Entropy:
    """The entropy of a run.

    Args:
        seed: changes all numbers.
        note: receives the seeds that the script sets.
    """

    def __init__(self, seed: int, note: Note) -> None:
        self._seed = seed
        self._note = note
        self._forks = 0
        self._counts: dict[str, itertools.count[int]] = defaultdict(itertools.count)

    def replace_entropy_functions(self) -> None:
        """Replace the functions and classes with which scripts draw entropy and set seeds."""
        self._true = os.urandom
        os.urandom = self.urandom
        setattr(random, "_urandom", self.urandom)  # of SystemRandom, and so of secrets and of NumPy's SeedSequence
        uuid.uuid4 = self._repeatable_uuid4
        seed = random.Random.seed

        def seed_random(generator: random.Random, a: Value = None, version: int = 2) -> None:
            seed(generator, self.repeatable_seed("random.seed", a), version)

        setattr(random.Random, "seed", seed_random)
        random.seed = getattr(random.seed, "__self__").seed
        # Python seeds its generator in each process that is forked, and does so before this function.
        os.register_at_fork(before=self._count_fork, after_in_child=self._seed_child)
        seed_numpy = np.random.seed
        np.random.seed = lambda seed=None: seed_numpy(self.repeatable_seed("numpy.random.seed", seed))
        setattr(np.random, "RandomState", self._random_state_class())
        default_rng = getattr(np.random, "default_rng", None)  # from NumPy 1.17 on
        if default_rng is not None:
            setattr(
                np.random,
                "default_rng",
                lambda seed=None: default_rng(self.repeatable_seed("numpy.random.default_rng", seed)),
            )

    def _count_fork(self) -> None:
        self._forks += 1

    def _seed_child(self) -> None:
        random.seed(int.from_bytes(hashlib.shake_128(f"{self._seed} {self._forks}".encode()).digest(4), "little"))

    def urandom(self, size: int) -> bytes:
        """Return random bytes."""
        asker = _frame_asking_for_entropy()
        return self._true(size) if asker is None else self._repeatable_bytes("entropy", asker, size)

    def repeatable_seed(self, call: str, value: Value) -> Value:
        """Return the seed that a generator gets: the value, or a number of its own if that is None or from a clock."""
        asker = _frame_asking_for_entropy()
        if asker is None:
            return value
        if value is None or is_from_clock(value) or (np.ndim(value) == 0 and reads_clock(asker, value)):
            return int.from_bytes(self._repeatable_bytes(call, asker, 4), "little") >> 1  # any generator takes 31 bits
        if isinstance(value, (int, float, np.number)):
            self._note(call, value, f"{os.path.relpath(asker.f_code.co_filename)}:{asker.f_lineno}")
        return value

    def _repeatable_bytes(self, source: str, asker: FrameType, size: int) -> bytes:
        key = f"{self._seed} {source} {asker.f_code.co_name}"
        return hashlib.shake_128(f"{key} {next(self._counts[key])}".encode()).digest(size)

    def _repeatable_uuid4(self) -> uuid.UUID:
        return _Uuid(bytes=self.urandom(16), version=4).with_text_of(uuid.UUID(bytes=self._true(16), version=4))

    def _random_state_class(self) -> type:
        original, repeatable_seed = np.random.RandomState, self.repeatable_seed

        class OfOriginal(type):
            """The class of a class whose objects are also those of the original."""

            def __instancecheck__(cls, instance: object) -> bool:
                return isinstance(instance, original)

        class RandomState(original, metaclass=OfOriginal):  # type: ignore[misc, valid-type]
            """A generator whose seed does not come from the clock."""

            def __init__(self, seed: Value = None) -> None:
                super().__init__(repeatable_seed("numpy.random.RandomState", seed))

        return RandomState


class _Uuid(uuid.UUID):
    """A UUID whose number is the same in every run, and whose text is not."""

    def with_text_of(self, other: uuid.UUID) -> _Uuid:
        """Set the UUID that has the text. Return this object."""
        object.__setattr__(self, "_other", other)
        return self

    def __str__(self) -> str:
        return super().__str__() if self._other is None else str(self._other)

    @property
    def hex(self) -> str:
        """The text without hyphens."""
        return str(self).replace("-", "")

    _other: uuid.UUID | None = None  # copies and pickles have the number only


def is_from_clock(value: Result) -> bool:
    """Return True for a number that is the time of this run: in s, ms, us or ns, or in ms modulo 2**32 or 2**31."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        return False
    now, number = time.time(), float(value)
    if any((_START - 1) * unit <= number <= now * unit for unit in _UNITS):
        return True
    return number > 1e6 and any((now * 1e3 - number) % wrap <= _RECENT * 1e3 for wrap in _WRAPS)


def _frame_asking_for_entropy() -> FrameType | None:
    """Return the frame that asks for entropy; None for the standard library, npu_shim, and texts."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in _SOURCES:
        if frame.f_code.co_name in _TEXTS:
            return None
        frame = frame.f_back
    if frame is None:
        return None
    path = os.path.abspath(frame.f_code.co_filename)
    is_python = path.startswith(_PYTHON) and not any(package in path for package in SITE_FOLDERS)
    return None if is_python or path.startswith(_OWN) else frame


def reads_clock(frame: FrameType, value: Value) -> bool:
    """Return True if the line of a frame reads a clock, or has a name that the function gets from a clock before it.

    If the function sets this name in another way, too, only large numbers come from the clock.
    """
    path, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(path, line)
    if _CLOCK.search(text):
        return True
    names, first = set(_NAME.findall(text)), frame.f_code.co_firstlineno
    from_clock: dict[str, list[bool]] = defaultdict(list)
    for at, name, source in _name_assignments(path):
        if name in names and first <= at < line:
            from_clock[name].append(bool(_CLOCK.search(source)))
    return any(any(flags) and (all(flags) or abs(value) > 1e6) for flags in from_clock.values())


@functools.lru_cache(maxsize=None)
def _name_assignments(path: str) -> list[tuple[int, str, str]]:
    """Return line, name and text of each assignment to a name in a file."""
    lines = linecache.getlines(path)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return []
    assignments = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            last = max(getattr(part, "lineno", 0) for part in ast.walk(node))
            text = "".join(lines[node.lineno - 1 : last])
            assignments += [(node.lineno, target.id, text) for target in node.targets if isinstance(target, ast.Name)]
    return assignments
