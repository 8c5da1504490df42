"""Find the first cause of a failure in logs of any length."""

from __future__ import annotations

import functools
import gzip
import io
import os
import re
import zlib
from typing import Callable, Iterable, Iterator, NamedTuple

from npu_shim.troubles.table import KINDS, Trouble, troubles

_GZIP, _UTF_16 = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")  # the first bytes of files
_BLOCK = 1 << 20  # bytes; a longer line is cut
_SHOWN = 300  # characters of a line
_HEAD = 200  # characters of a line in which its time and level stand
_TIME = re.compile(r"(20\d\d-[01]\d-[0-3]\d)[-T ]([0-2]\d:[0-5]\d:[0-6]\d)(?:[.,](\d{1,6})(?:\.(\d{1,3}))?)?")
# A line that calls itself information is no error. TensorFlow reports errors of its threads as INFO:tensorflow.
_INFORMATION = re.compile(r"\[(?:INFO|DEBUG|EVENT|TRACE)\]|\d: I (?:tensorflow|tf_adapter)|\bI\d{4} \d\d:\d\d:\d\d")
_COLOR = re.compile(r"\x1b\[[\d;]*m")
_LOG_NAME = re.compile(r"\.(?:log|txt|out|err)\b|(?:^|[._-])(?:log|stdout|stderr)(?:[._-]|$)")


class Sighting(NamedTuple):
    """The place at which a log first shows a trouble. ``time`` is empty if the log has no times."""

    trouble: Trouble
    path: str
    line: int
    time: str
    text: str


class Explanation(NamedTuple):
    """The sightings in logs, the first cause first; the files that were read; problems of reading, by path."""

    sightings: list[Sighting]
    paths: list[str]
    problems: dict[str, str]


def explain_logs(paths: Iterable[str], on_block: Callable[[int], None] = lambda size: None) -> Explanation:
    """Read logs, and order what they show: causes first, each kind by time, what has no time behind it.

    Args:
        paths: files, also compressed by gzip, and folders, of which each file with the name of a log is read.
        on_block: called with the number of bytes after each block.
    """
    files = list({os.path.realpath(path): path for path in [*_log_file_paths(paths)][::-1]}.values())[::-1]
    problems: dict[str, str] = {}
    sightings: list[Sighting] = []
    for path in files:
        log = _Log(path)
        try:
            with open(path, "rb") as stream:
                beginning = stream.peek(2)[:2]
                if beginning in _UTF_16:
                    problems[path] = "UTF-16; convert it to UTF-8"
                    continue
                log.read(gzip.GzipFile(fileobj=stream) if beginning == _GZIP else stream, on_block)
        except (OSError, EOFError, zlib.error) as error:  # what was read before counts
            problems[path] = getattr(error, "strerror", None) or str(error)
        sightings += log.sightings()
    return Explanation(_sort_sightings(sightings), files, problems)


def troubles_in_text(text: str) -> list[Trouble]:
    """Return the troubles whose symptoms the output of a process has, the first cause first."""
    log = _Log("")
    log.scan_for_troubles(text)
    return [sighting.trouble for sighting in _sort_sightings(log.sightings())]


def _sort_sightings(sightings: list[Sighting]) -> list[Sighting]:
    """Order sightings. What has no time keeps the order of files and lines: the sort is stable."""
    return sorted(sightings, key=lambda it: (KINDS.index(it.trouble.kind), not it.time, it.time))


def _log_file_paths(paths: Iterable[str]) -> Iterator[str]:
    for path in dict.fromkeys(paths):
        if not os.path.isdir(path):
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders.sort()
            files = (os.path.join(folder, name) for name in sorted(names) if _LOG_NAME.search(name))
            yield from (file for file in files if os.path.isfile(file))


@functools.lru_cache(maxsize=None)
def _search_patterns() -> list[tuple[re.Pattern[str], list[Trouble]]]:
    """Return a search for each beginning of patterns, and the trouble of each of its groups. Most codes begin alike."""
    alike: dict[str, list[tuple[str, Trouble]]] = {}
    for trouble in troubles():
        for pattern in trouble.patterns:
            alike.setdefault(pattern[:2], []).append((pattern[2:], trouble))
    return [
        (re.compile(f"{begin}(?:{'|'.join(f'({rest})' for rest, _ in ends)})"), [trouble for _, trouble in ends])
        for begin, ends in alike.items()
    ]


class _Log:
    """Keeps the first sighting of each trouble in a log, which it reads block by block.

    A line without a time has that of the line above it, lines before the first time have that one.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lines = 0  # in the blocks before
        self._first_time = self._last_time = ""
        self._sightings: dict[str, Sighting] = {}

    def read(self, stream: io.BufferedIOBase, on_block: Callable[[int], None]) -> None:
        rest = b""
        while True:
            block = stream.read1(_BLOCK)  # what can be read now: a compressed log may be cut off
            whole, newline, rest = (rest + block).rpartition(b"\n") if block else (rest, b"", b"")
            if len(rest) > _BLOCK:
                whole, newline, rest = whole + newline + rest, b"", b""
            self.scan_for_troubles((whole + newline).decode("utf-8", "replace"))
            on_block(len(block))
            if not block:
                return

    def scan_for_troubles(self, text: str) -> None:
        """Look for the troubles in a block of whole lines."""
        if not self._first_time:
            self._first_time = _time_text(_TIME.search(text))
        for search, group_troubles in _search_patterns():
            for match in search.finditer(text):
                self._add_first_sighting(group_troubles[(match.lastindex or 0) - 1], text, match.start())
        times = list(_TIME.finditer(text, max(0, len(text) - _BLOCK // 16)))
        self._last_time = _time_text(times[-1]) if times else self._last_time
        self._lines += text.count("\n")

    def sightings(self) -> list[Sighting]:
        seen = sorted(self._sightings.values(), key=lambda sighting: sighting.line)
        return [sighting._replace(time=sighting.time or self._first_time) for sighting in seen]

    def _add_first_sighting(self, trouble: Trouble, text: str, place: int) -> None:
        """Keep a sighting if it is the first one of its trouble."""
        begin = text.rfind("\n", 0, place) + 1
        head = text[begin : begin + _HEAD].split("\n")[0]
        before, time = self._sightings.get(trouble.id), _time_text(_TIME.search(head))
        if before and (not time or before.time <= time):  # first, because errors repeat
            return
        if _COLOR.sub("", text[max(0, place - 9) : place])[-1:].isalnum() or _INFORMATION.search(head):
            return
        if not time:
            above = list(_TIME.finditer(text, max(0, begin - _BLOCK // 16), begin))
            time = _time_text(above[-1]) if above else self._last_time
        begin = max(begin, text.rfind("\r", begin, place) + 1, place - _SHOWN // 2)
        shown = _COLOR.sub("", text[begin : begin + _SHOWN].split("\n")[0].split("\r")[0]).strip()
        line = self._lines + text.count("\n", 0, place) + 1
        self._sightings[trouble.id] = Sighting(trouble, self._path, line, time, shown)


def _time_text(match: re.Match[str] | None) -> str:
    """Return a time in a form that sorts; an empty string if there is none."""
    if match is None:
        return ""
    day, clock, *fraction = match.groups("")
    return f"{day} {clock}.{''.join(fraction).ljust(6, '0')[:6]}"
