"""A file of facts: the runs of a program, and what they saw in its files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import Any, NamedTuple

from ..files.errors import UsageError
from .checks import check_facts, parse_json
from .seen import FileFacts, Place, Seen

SCHEMA, VERSION = "npu_shim_facts", 1


class ObservedRun(NamedTuple):
    """A run that was observed.

    Attributes:
        command: the script and its arguments.
        tensorflow, python: the versions; tensorflow is empty if the run did not import it.
        steps: the number of training steps.
        ended: ``returned``, ``stopped`` after its steps, or ``error``.
        outside: the files with TensorFlow that it imported from elsewhere, and not from an installed package, by path
            relative to the root.
    """

    command: tuple[str, ...]
    tensorflow: str
    python: str
    steps: int
    ended: str
    outside: tuple[str, ...] = ()


class Facts:
    """The runs of a project, and their answers about its files.

    Attributes:
        root: the folder of the project, an absolute path.
        runs: the observed ones.
        files: by path relative to the root, with slashes.
        other_roots: the folders of other scripts that were observed, absolute paths.
    """

    def __init__(
        self,
        root: str,
        runs: tuple[ObservedRun, ...] = (),
        files: dict[str, FileFacts] | None = None,
        other_roots: tuple[str, ...] = (),
    ):
        self.root, self.runs, self.files, self.other_roots = root, runs, files or {}, other_roots

    def __repr__(self) -> str:  # names the results of the tool that are kept
        return f"Facts({self.root!r}, {_checksum(self.content_without_checksum(''))})"

    def facts_of_file(self, path: str, raw: bytes) -> FileFacts | None:
        """Return the facts about a file with these bytes; None without any."""
        known = self.files.get(self.relative_path_of(path))
        return known if known is not None and known.sha256 == digest(raw) else None

    def relative_path_of(self, path: str) -> str:
        """Return the relative path by which the facts know a file."""
        return os.path.relpath(os.path.realpath(path), self.root).replace(os.sep, "/")

    def is_never_loaded(self, path: str) -> bool:
        """Return True if no run loaded a file of the project, nor may have. Of files elsewhere that is not known."""
        real, roots = os.path.realpath(path), (self.root, *self.other_roots)
        return self.relative_path_of(path) not in self.files and any(
            real.startswith(os.path.join(root, "")) for root in roots
        )

    def stale_files(self) -> list[str]:
        """Return the relative paths of files that have changed since they were observed, or that are gone."""
        return [
            name
            for name in sorted(self.files)
            if _digest_of_file(os.path.join(self.root, name)) != self.files[name].sha256
        ]

    def update(self, other: Facts) -> None:
        """Add other runs, also of scripts in another folder.

        Raises:
            UsageError: a file is another one than before.
        """
        self.runs += other.runs
        roots = {*self.other_roots, other.root, *other.other_roots}
        self.other_roots = tuple(sorted(roots - {self.root}))
        for name, facts in other.files.items():
            name = self.relative_path_of(os.path.join(other.root, name))
            known = self.files.setdefault(name, FileFacts(facts.sha256))
            if known.sha256 != facts.sha256:
                raise UsageError("{0} has changed since it was observed. Observe again with npu-shim observe", name)
            known.update(facts)

    def to_text(self, path: str) -> str:
        """Return the text of the file at a path."""
        folder = os.path.dirname(os.path.realpath(path))
        content = self.content_without_checksum(_relative_folder(self.root, folder))
        return json.dumps({**content, "checksum": _checksum(content)}, indent=1) + "\n"

    def content_without_checksum(self, root: str) -> dict[str, object]:
        runs = [_run_as_json(run) for run in self.runs]
        files = {name: self.files[name].to_json() for name in sorted(self.files)}
        content: dict[str, object] = {"schema": SCHEMA, "version": VERSION, "root": root, "runs": runs, "files": files}
        others = [_relative_folder(folder, self.root) for folder in self.other_roots]
        return {**content, "other_roots": others} if others else content


def read_facts(path: str) -> Facts:
    """Return the facts in a file.

    Args:
        path: of the file.
    Raises:
        UsageError: it cannot be read, is not what npu-shim observe wrote, or a file has changed since.
    """
    try:
        with open(path, "rb") as stream:
            content = parse_json(stream)
    except OSError as error:
        raise UsageError("{0}: {1}", path, error.strerror or error)
    except (ValueError, RecursionError):  # nested too deeply
        raise UsageError("{0} is no file of facts. Give one that npu-shim observe wrote", path)
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise UsageError("{0} is no file of facts. Give one that npu-shim observe wrote", path)
    if type(content.get("version")) is not int or content["version"] != VERSION:
        raise UsageError(
            "{0} has facts of version {1}, and this tool reads version {2}. Observe again with npu-shim observe",
            path,
            content.get("version"),
            VERSION,
        )
    checksum = content.pop("checksum", None)
    try:
        if checksum != _checksum(content):
            raise ValueError
        check_facts(content)
        facts = _facts_of(content, os.path.dirname(os.path.realpath(path)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UsageError("{0} is damaged or was edited. Observe again with npu-shim observe", path)
    stale = facts.stale_files()
    if stale:
        raise UsageError(
            "{0}: {1} has changed since it was observed. Observe again with npu-shim observe", path, stale[0]
        )
    return facts


def _facts_of(content: dict[str, Any], folder: str) -> Facts:
    runs = tuple(
        ObservedRun(**{**run, "command": tuple(run["command"]), "outside": tuple(run.get("outside", ()))})
        for run in content["runs"]
    )
    files = {name: FileFacts.from_json(part) for name, part in content["files"].items()}
    root = os.path.realpath(os.path.join(folder, content["root"]))
    others = tuple(os.path.realpath(os.path.join(root, other)) for other in content.get("other_roots", ()))
    return Facts(root, runs, files, others)


def _run_as_json(run: ObservedRun) -> dict[str, object]:
    content = {**run._asdict(), "command": list(run.command), "outside": list(run.outside)}
    if not run.outside:
        del content["outside"]
    return content


def _relative_folder(folder: str, base: str) -> str:
    return os.path.relpath(folder, base).replace(os.sep, "/")


def digest(raw: bytes) -> str:
    """Return the digest of the bytes of a file."""
    return hashlib.sha256(raw).hexdigest()


def _digest_of_file(path: str) -> str:
    with contextlib.suppress(OSError, ValueError):  # a name with a null byte
        if os.path.isfile(path):
            with open(path, "rb") as stream:
                return digest(stream.read())
    return ""


def _checksum(content: dict[str, object]) -> str:
    return digest(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass"))


__all__ = ["Facts", "FileFacts", "ObservedRun", "Place", "Seen", "digest", "read_facts"]
