"""The results of earlier runs, for a run over the same unchanged files.

The name of an entry is a digest of everything that the results depend on: the bytes of the tool itself, the version of
Python, the settings, and the paths and bytes of all files, because the result of one file may depend on every other. So
an entry is never out of date. It has three parts: a checksum of the others; a line of JSON with the diagnostics of each
file and the number of its new bytes; these bytes, file after file. A damaged entry is ignored. Entries are written to a
temporary file and renamed, so that parallel runs never see half of one.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from typing import Any, Iterable, NamedTuple, Sequence

from .results import PASSING, UNTOUCHED, FileResult, result_from_plain, result_to_plain

_MOST_ENTRIES, _MOST_BYTES = 64, 256_000_000
_PIECE_BYTES = 1 << 20
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Question(NamedTuple):
    """The digest of everything that the results depend on, and the change times of the files."""

    digest: str
    changed_ns: tuple[int, ...]


def question_of_run(options: Sequence[object], paths: Iterable[str]) -> Question | None:
    """Return the question of a run, or None if a file is unreadable.

    Args:
        options: everything else that the results depend on; also the folder of the files, if their paths are relative.
        paths: all files that the run may read.
    """
    digest = hashlib.blake2b(digest_size=32)
    changed_ns: list[int] = []
    _add_bytes(digest, repr((sys.version, sys.getrecursionlimit(), tuple(options))).encode("utf-8", "surrogatepass"))
    try:
        for path in _own_files():
            _add_file_and_return_ctime(digest, path, path[len(_HERE) :])
        for path in paths:
            changed_ns.append(_add_file_and_return_ctime(digest, path, path))
    except OSError:
        return None
    return Question(digest.hexdigest(), tuple(changed_ns))


def _add_bytes(digest: hashlib.blake2b, part: bytes) -> None:
    digest.update(b"%d:" % len(part))
    digest.update(part)


def _add_file_and_return_ctime(digest: hashlib.blake2b, path: str, name: str) -> int:
    """Add the name and content of a file to a digest, and return the time of its last change."""
    _add_bytes(digest, name.encode("utf-8", "surrogateescape"))
    with open(path, "rb", buffering=0) as stream:
        changed_ns = os.fstat(stream.fileno()).st_ctime_ns
        while True:
            piece = stream.read(_PIECE_BYTES)
            if not piece:
                digest.update(b";")
                return changed_ns
            _add_bytes(digest, piece)


def _own_files() -> list[str]:
    """Return the files of the tool, in a fixed order."""
    return sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(_HERE)
        for name in names
        if os.path.basename(folder) != "__pycache__"
    )


def cache_folder() -> str:
    """Return the folder of the entries, in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification requires an absolute path
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "convert_tf2npu")


class Memory:
    """The results of earlier runs.

    Its errors are silent: without it, a run only takes longer.

    Args:
        folder: the folder of the entries.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def recall(self, question: Question) -> list[FileResult] | None:
        """Return the results of a question, in the order of its files; None if there is no entry."""
        path = self._path(question)
        try:
            with open(path, "rb") as stream:
                checksum, _, content = stream.read().partition(b"\n")
            if checksum != _checksum([content]):
                return None
            said, _, new = content.partition(b"\n")
            results = _results_from_json(json.loads(said.decode("ascii")), new)
            os.utime(path)  # the longest unused entries are deleted first
            return results
        except (OSError, ValueError, TypeError):
            return None

    def store(self, question: Question, results: Sequence[FileResult]) -> None:
        """Keep the results of a question, unless they have an error that the next run may not have."""
        if any(d.message.startswith(PASSING) for result in results for d in result.diagnostics):
            return
        import tempfile  # only here: it takes long to load

        content = [
            json.dumps([_result_to_json(result) for result in results], separators=(",", ":")).encode("ascii"),
            b"\n",
        ]
        content += [result.new for result in results if result.new]  # not joined: they may be large
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            number, writing = tempfile.mkstemp(dir=self._folder, suffix=".new")
            try:
                with os.fdopen(number, "wb") as stream:
                    stream.writelines([_checksum(content), b"\n"] + content)
                os.replace(writing, self._path(question))
            except BaseException:
                os.unlink(writing)
                raise
            self._forget_oldest()
        except OSError:
            pass  # a full disk or a read-only folder: the next run converts again

    def _path(self, question: Question) -> str:
        return os.path.join(self._folder, question.digest + ".run")

    def _forget_oldest(self) -> None:
        entries: dict[str, os.stat_result] = {}
        for entry in os.scandir(self._folder):
            entries[entry.path] = entry.stat()
        used = 0
        for count, path in enumerate(sorted(entries, key=lambda one: -entries[one].st_mtime_ns)):
            used += entries[path].st_size
            if count >= _MOST_ENTRIES or used > _MOST_BYTES and count:
                os.unlink(path)


def _checksum(content: Iterable[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    for piece in content:
        digest.update(piece)
    return digest.hexdigest().encode("ascii")


def _result_to_json(result: FileResult) -> object:
    """Return a result for JSON, with the number of its new bytes."""
    return 0 if result == UNTOUCHED else [None if result.new is None else len(result.new), *result_to_plain(result)[1:]]


def _results_from_json(said: list[Any], new: bytes) -> list[FileResult]:
    results: list[FileResult] = []
    place = 0
    for values in said:
        if not values:
            results.append(UNTOUCHED)
            continue
        size, *more = values
        results.append(result_from_plain([None if size is None else new[place : place + size], *more]))
        place += size or 0
    return results
