"""A recording that travels: runs of an original in one folder, with a manifest, which stand for the original elsewhere.

The folder has the files of a run as they are: ``recording.jsonl``, ``tensors.bin`` and ``output.log``, those of the
second run in ``again``, and those of perturbed runs in ``perturbed_1`` and so on. ``manifest.json`` has the version of
the format, the SHA-256 of each file, and the settings of the runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from dataclasses import dataclass, field, fields
from typing import Iterator, Mapping, Sequence

import numpy as np

import npu_shim
from npu_shim._host.messages import system_error_text
from npu_shim._tensorflow.types import JsonObject
from npu_shim.rehearsal.comparing.read_recording import Recording, RecordingError
from npu_shim.rehearsal.half_run import Half
from npu_shim.rehearsal.recording.settings import Changes
from npu_shim.rehearsal.recording.writer import FILE, SMALLER, TENSORS, gigabytes_text
from npu_shim.rehearsal.reproducing import AGAIN
from npu_shim.rehearsal.running import Run

FORMAT, VERSION, MANIFEST = "npu-shim verify recording", 3, "manifest.json"
_FILES = (FILE, TENSORS, "output.log")
_FIELDS = ("script", "script_sha256", "arguments", "seed", "every", "steps", "environment", "exit_code", "files")


@dataclass(frozen=True)
class Manifest:
    """The settings of the runs of a recording, and the SHA-256 of each file."""

    script: str = ""
    script_sha256: str = ""
    arguments: Sequence[str] = ()
    seed: int = 1
    every: int = 1
    steps: int | None = None
    tensors: Sequence[int] = ()
    deliberate: Changes | None = None
    environment: Mapping[str, str | None] = field(default_factory=dict)
    exit_code: int = 0
    half: Half | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    tool_version: str = npu_shim.__version__

    def to_json(self) -> JsonObject:
        """Return it for ``manifest.json``."""
        values = {setting.name: getattr(self, setting.name) for setting in fields(self)}
        parts = {name: values[name] and values[name].to_json() for name in ("deliberate", "half")}
        return {"format": FORMAT, "version": VERSION, "tool_version": values.pop("tool_version"), **values, **parts}

    @classmethod
    def from_json(cls, content: JsonObject) -> Manifest:
        """Return what to_json() made."""
        values = {setting.name: content[setting.name] for setting in fields(cls) if setting.name in content}
        half, changes = content.get("half"), Changes.from_json(content.get("deliberate"))
        return cls(**{**values, "deliberate": changes, "half": Half.from_json(half) if half else None})


@dataclass(frozen=True)
class Recorded(Run):
    """An original that has run elsewhere.

    Attributes:
        manifest: of the recording.
    """

    manifest: Manifest = field(default_factory=Manifest)

    @property
    def can_repeat(self) -> bool:
        """True if the recording has a second run of the script."""
        return os.path.isfile(os.path.join(self.folder, AGAIN, FILE))

    @property
    def run_text(self) -> str:
        """Text about run_script() for the progress."""
        return f"reading the recording of {self.script}"

    def run_script(self) -> int:
        """Return the exit code of the script."""
        return self.manifest.exit_code


def target_problem(folder: str) -> str | None:
    """Return why a recording cannot be written to a folder; None if it can. An older recording is replaced."""
    if os.path.isdir(folder) and os.listdir(folder) and not os.path.isfile(os.path.join(folder, MANIFEST)):
        return f"--record {folder} has other files in it. Name a new folder."
    return f"--record {folder} is a file. Name a folder." if os.path.isfile(folder) else None


def replace_recording(
    folder: str, run: Run, exit_code: int, recorded: Recording, half: Half | None, max_bytes: float
) -> None:
    """Write a recording.

    Args:
        folder: is made, or replaced.
        run: of the original.
        exit_code: of its script.
        recorded: its recording.
        half: of half precision; None without it.
        max_bytes: that it may take.
    Raises:
        RecordingError: if it is larger.
    """
    names = sorted(_files_of_runs(run.folder))
    size = sum(os.path.getsize(os.path.join(run.folder, name)) for name in names)
    if size > max_bytes:
        raise RecordingError(
            f"the recording takes {gigabytes_text(size)}, more than {gigabytes_text(max_bytes)}. {SMALLER}"
        )
    shutil.rmtree(folder, ignore_errors=True)
    for name in names:
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(os.path.join(run.folder, name), target)
    manifest = Manifest(
        script=os.path.basename(run.script),
        script_sha256=digest_of(run.script),
        arguments=list(run.arguments),
        seed=run.seed,
        every=run.every,
        steps=run.steps,
        tensors=list(run.whole.steps) if run.whole is not None else [],
        deliberate=run.deliberate,
        environment={
            "python": recorded.python,
            "tensorflow": recorded.notes.tensorflow,
            "numpy": np.__version__,
            "platform": platform.platform(),
        },
        exit_code=exit_code,
        half=half,
        files={name: digest_of(os.path.join(folder, name)) for name in names},
    )
    with open(os.path.join(folder, MANIFEST), "w", encoding="utf-8") as file:  # last, so that it stands for all files
        file.write(json.dumps(manifest.to_json(), indent=2) + "\n")


def load_recording(folder: str) -> Recorded:
    """Read the manifest of a recording, and check its files.

    Raises:
        RecordingError: if the folder is no recording, or is damaged or of another release that writes other fields.
    """
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as error:
        raise RecordingError(f"{system_error_text(error)}. Name a folder of verify --record.") from None
    except (ValueError, RecursionError):  # nested too deeply
        raise RecordingError(f"{path} is no JSON. Record again.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RecordingError(f"{path} is not of a recording. Name a folder of verify --record.")
    if content.get("version") != VERSION:
        raise RecordingError(
            f"{path} has version {content.get('version')} of the format, and this release reads {VERSION}. Record "
            "again with this release."
        )
    missing = [name for name in _FIELDS if name not in content]
    if missing or not isinstance(content["files"], dict) or FILE not in content["files"]:
        raise RecordingError(f"{path} lacks {', '.join(missing) or FILE}. Record again.")
    for name, digest in content["files"].items():
        _check_digest(folder, name, digest)
    manifest = _manifest_of(content, path)
    return Recorded(
        "original",
        manifest.script,
        manifest.arguments,
        os.path.abspath(folder),
        seed=manifest.seed,
        every=manifest.every,
        steps=manifest.steps,
        manifest=manifest,
    )


def _manifest_of(content: JsonObject, path: str) -> Manifest:
    """Return the manifest in a file. A field that is not known here could change what the runs mean."""
    try:
        manifest = Manifest.from_json(content)
        unknown = set(content) - set(manifest.to_json())
    except (ValueError, TypeError, LookupError, AttributeError):
        unknown = {"deliberate", "half"}
    if unknown:
        raise RecordingError(
            f"{path} is of npu_shim {content.get('tool_version')}, and this release cannot read its "
            f"{', '.join(sorted(unknown))}. Record again with this release."
        )
    return manifest


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file."""
    sha256 = hashlib.sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            sha256.update(part)
    return sha256.hexdigest()


def _check_digest(folder: str, name: str, digest: str) -> None:
    if os.path.basename(name) not in _FILES or os.path.isabs(name) or os.pardir in name.split("/"):
        raise RecordingError(f"{folder} lists {name!r}, which is no file of a recording. Record again.")
    path = os.path.join(folder, name)
    try:
        actual = digest_of(path)
    except OSError as error:
        raise RecordingError(f"{system_error_text(error)}. Copy the recording again.") from None
    if actual != digest:
        raise RecordingError(f"{path} is damaged: its SHA-256 differs from the manifest. Copy the recording again.")


def _files_of_runs(folder: str) -> Iterator[str]:
    """Yield the files of the run in a folder, of its second run and of the perturbed ones, from this folder."""
    for subfolder in ("", "again", *(name for name in os.listdir(folder) if name.startswith("perturbed_"))):
        for name in _FILES:
            if os.path.isfile(os.path.join(folder, subfolder, name)):
                yield os.path.join(subfolder, name)
