"""Build the wheel and the source archive of a release, byte for byte the same for one commit.

    python tools/release.py v1.2.3            from the tag, into dist/
    python tools/release.py --untagged        from the last commit, to try it

It needs git, tar, setuptools and wheel, and no network. Uncommitted changes are not built. Order, dates and permissions
in both archives come from the commit. The version of setuptools stands in the wheel, and zlib chooses the compressed
bytes: build with the same ones to compare digests. SHA256SUMS in the folder has the digests.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import pathlib
import re
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
_FIRST_OF_ZIP = 315532800  # 1980-01-01, the first date that a zip archive can have
_HOOKS = """
import sys, setuptools, wheel
from setuptools import build_meta
out = sys.argv[1]  # setuptools replaces sys.argv
build_meta.build_sdist(out)
build_meta.build_wheel(out)
print("setuptools", setuptools.__version__ + ", wheel", wheel.__version__)
"""


class ReleaseError(Exception):
    """Raised if a release cannot be built."""


def build(tag: str | None, out: pathlib.Path, root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """Build both archives, and write the file of their digests.

    Args:
        tag: the tag, which names the version; None for the last commit.
        out: the folder for the archives, made if it is missing.
        root: the checkout.
    Returns:
        The paths of the archives.
    Raises:
        ReleaseError: the tag is missing or names another version, or a tool is missing or fails.
    """
    if tag is not None and tag not in _run("git", "tag", "--list", cwd=root).split():
        raise ReleaseError(f"there is no tag {tag} in this checkout. Make it, or try the last commit with --untagged.")
    commit = _run("git", "rev-parse", f"refs/tags/{tag}^{{commit}}" if tag else "HEAD", cwd=root)
    seconds = int(_run("git", "log", "-1", "--format=%ct", commit, cwd=root))
    with tempfile.TemporaryDirectory(prefix="npu_shim_release_") as folder:
        source, built = pathlib.Path(folder, "source"), pathlib.Path(folder, "built")
        source.mkdir()
        archive = pathlib.Path(folder, "source.tar")
        _run("git", "archive", "--format=tar", "-o", str(archive), commit, cwd=root)
        _run("tar", "-xf", str(archive), cwd=source)
        version = _version(source)
        if tag not in (None, f"v{version}"):
            raise ReleaseError(f"the tag {tag} has the version {version}. Set __version__ and tag that commit.")
        with_what = _run(sys.executable, "-c", _HOOKS, str(built), cwd=source, SOURCE_DATE_EPOCH=str(seconds))
        out.mkdir(parents=True, exist_ok=True)
        made = [_rewrite_archive(path, out / path.name, seconds) for path in sorted(built.iterdir())]
    digests = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made]
    (out / "SHA256SUMS").write_text("".join(digests), encoding="ascii")
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"commit {commit}, Python {python}, {with_what.splitlines()[-1]}, zlib {zlib.ZLIB_RUNTIME_VERSION}")
    print("".join(digests), end="")
    return made


def next_commands(made: list[pathlib.Path], tag: str | None) -> str:
    """Return the commands that sign and upload the archives."""
    archives = " ".join(map(str, made))
    tagged = [] if tag else ["git tag --sign vX.Y.Z && python tools/release.py vX.Y.Z   # release from a tag"]
    return "\n".join(
        [
            "To check, sign and upload them:",
            *tagged,
            "git push origin " + (tag or "vX.Y.Z"),
            f"python -m twine check --strict {archives}",
            *(f"gpg --armor --detach-sign {path}" for path in [*made, made[0].parent / "SHA256SUMS"]),
            f"python -m twine upload {archives}",
        ]
    )


def _version(source: pathlib.Path) -> str:
    text = (source / "npu_shim" / "__init__.py").read_text(encoding="utf-8")
    assigned = re.search(r'^__version__ = "(.+)"$', text, re.M)
    if assigned is None:
        raise ReleaseError('npu_shim/__init__.py has no version. Add a line such as __version__ = "1.2.3".')
    return assigned[1]


def _run(*command: str, cwd: pathlib.Path, **variables: str) -> str:
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "0", **variables}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ReleaseError(
            f"{os.path.basename(command[0])} failed: {lines[-1]}. It needs a git checkout, setuptools and wheel."
        )
    return done.stdout.strip()


def _mode(mode: int) -> int:
    """Return the permissions of a file without those of the machine that builds it."""
    return 0o755 if mode & stat.S_IXUSR else 0o644


def _rewrite_archive(path: pathlib.Path, out: pathlib.Path, seconds: int) -> pathlib.Path:
    """Write an archive with sorted files, and with the date and permissions of the commit."""
    (_rewrite_wheel if path.suffix == ".whl" else _rewrite_sdist)(path, out, seconds)
    return out


def _rewrite_wheel(path: pathlib.Path, out: pathlib.Path, seconds: int) -> None:
    date = time.gmtime(max(seconds, _FIRST_OF_ZIP))[:6]
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for info in sorted(old.infolist(), key=_place_in_wheel):
            entry = zipfile.ZipInfo(info.filename, date)
            entry.create_system = 3  # Unix
            entry.external_attr = (stat.S_IFREG | _mode(info.external_attr >> 16)) << 16
            new.writestr(entry, old.read(info), zipfile.ZIP_DEFLATED, 9)


def _place_in_wheel(info: zipfile.ZipInfo) -> tuple[bool, bool, str]:
    """Return the place of a file: the metadata belongs at the end of a wheel, RECORD last."""
    return ".dist-info/" in info.filename, info.filename.endswith(".dist-info/RECORD"), info.filename


def _rewrite_sdist(path: pathlib.Path, out: pathlib.Path, seconds: int) -> None:
    with tarfile.open(path) as old, open(out, "wb") as raw:
        packed = gzip.GzipFile("", "wb", 9, raw, seconds)
        with packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
            for member in sorted(old.getmembers(), key=lambda member: member.name):
                entry = tarfile.TarInfo(member.name)
                entry.type, entry.size, entry.mtime = member.type, member.size, seconds
                entry.mode = 0o755 if member.isdir() else _mode(member.mode)
                new.addfile(entry, old.extractfile(member))


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the wheel and the source archive of a release.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("tag", nargs="?", help="the tag, as in v1.2.3")
    what.add_argument("--untagged", action="store_true", help="build the last commit")
    parser.add_argument("-o", "--out", type=pathlib.Path, default=pathlib.Path("dist"), help="default: dist")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="another checkout than that of this program")
    arguments = parser.parse_args()
    try:
        made = build(arguments.tag, arguments.out, arguments.root)
    except (ReleaseError, OSError) as error:
        print(f"release.py: error: {error}", file=sys.stderr)
        return 2
    print(next_commands(made, arguments.tag))
    return 0


if __name__ == "__main__":
    sys.exit(main())
