"""The corpus of the tool benchmarks: public Python code, sampled by whole folders.

python benchmarks/tool_corpus.py FOLDER      removes the files that this Python cannot parse
"""

from __future__ import annotations

import argparse
import ast
import os
import pathlib
import subprocess
import sys
import warnings
from typing import Iterator, NamedTuple, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Corpus(NamedTuple):
    """A folder of Python files, with the numbers of files and lines."""

    folder: pathlib.Path
    files: int
    lines: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose the corpus."""
    parser.add_argument(
        "--python", action="append", default=[], help="measure on the site-packages of this interpreter"
    )
    parser.add_argument("--corpus", action="append", default=[], help="measure on this folder of Python files")
    parser.add_argument("--packages", action="store_true", help="also measure on the packages of docs/public_code.txt")


def chosen(args: argparse.Namespace, parser: argparse.ArgumentParser, work: pathlib.Path) -> dict[str, str]:
    """Return the folders that the arguments choose, by name.

    Args:
        args: what the parser found.
        parser: reports an error if nothing is chosen.
        work: a folder for downloads.
    """
    folders = [site_packages(python) for python in args.python] + args.corpus
    sources = {f"corpus{index}": path for index, path in enumerate(folders)}
    if args.packages:
        sources.update(packages(work / "packages"))
    if not sources:
        parser.error("missing corpus. Give --python, --corpus or --packages")
    return sources


def site_packages(python: str) -> str:
    """Return the site-packages folder of an interpreter."""
    return subprocess.run(
        [python, "-c", 'import sysconfig; print(sysconfig.get_paths()["purelib"])'],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout.strip()


def packages(folder: pathlib.Path) -> dict[str, str]:
    """Download the packages of docs/public_code.txt from PyPI, with their hashes."""
    sys.path.insert(0, str(ROOT / "docs"))
    import make_shares

    return make_shares.fetch(str(folder))


def copied(sources: dict[str, str], target: pathlib.Path, share: int = 1, most: int = sys.maxsize) -> Corpus:
    """Copy the Python files of some folders.

    Links are skipped, and files that this Python cannot parse, because the floor could not either.

    Args:
        sources: the folders, by their names in the copy.
        target: the folder to create.
        share: copy every n-th folder; subfolders count as folders.
        most: the highest number of files.
    """
    files = lines = 0
    for name, source in sources.items():
        for folder in list(_folders(source))[::share]:
            for path in sorted(pathlib.Path(folder).glob("*.py")):
                raw = b"" if path.is_symlink() else path.read_bytes()
                if files >= most or path.is_symlink() or not is_readable(raw):
                    continue
                written = target / name / path.relative_to(source)
                written.parent.mkdir(parents=True, exist_ok=True)
                written.write_bytes(raw)
                files += 1
                lines += raw.count(b"\n")
    return Corpus(target, files, lines)


def readable_by(corpus: Corpus, python: str) -> Corpus:
    """Remove the files that another Python cannot parse, and return the rest of the corpus."""
    subprocess.run([python, os.path.abspath(__file__), str(corpus.folder)], check=True)
    paths = python_files(corpus.folder)
    return Corpus(corpus.folder, len(paths), sum(path.read_bytes().count(b"\n") for path in paths))


def _folders(source: str) -> Iterator[str]:
    """Return the folders with Python files below a folder, by name."""
    for folder, below, names in os.walk(source):
        below[:] = sorted(name for name in below if name != "__pycache__")
        if any(name.endswith(".py") for name in names):
            yield folder


def is_readable(raw: bytes) -> bool:
    """Return True if the bytes of a file are Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(raw)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def python_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the Python files below a folder."""
    return sorted(folder.rglob("*.py"))


def wrong(source: pathlib.Path, made: dict[str, pathlib.Path], frameworks: Sequence[bytes]) -> list[str]:
    """Check the output of the tools for a folder.

    Args:
        source: the folder.
        made: the output folder of each tool, by the tool's name.
        frameworks: no tool has a reason to change a file without these words.

    Returns:
        a line for each file that is missing, is not Python, or was changed without a reason.
    """
    found: list[str] = []
    for path in python_files(source):
        raw = path.read_bytes()
        for name, folder in made.items():
            written = folder / path.relative_to(source)
            new = written.read_bytes() if written.exists() else None
            if new is None:
                found.append(f"{name}: {path} is missing")
            elif new != raw and not is_readable(new):
                found.append(f"{name}: its output for {path} is not Python")
            elif new != raw and not any(word in raw for word in frameworks):
                found.append(f"{name}: {path} was changed, but does not mention TensorFlow")
    return found


if __name__ == "__main__":
    for found in python_files(pathlib.Path(sys.argv[1])):
        if not is_readable(found.read_bytes()):
            found.unlink()
