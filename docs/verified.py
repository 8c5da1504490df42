"""Parts of the scripts that run public code: entries of a list, projects, ``npu-shim verify``, results and tables."""

from __future__ import annotations

import argparse
import contextlib
import csv
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Container, Iterable, Iterator, Sequence

from record_list import Edit, Program

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
TOOL = os.path.join(ROOT, "tools/convert_tf2npu/main.py")
PAGES = os.path.join(HERE, "verify.md"), os.path.join(HERE, "zh", "verify.md")
SOURCES = os.path.join(
    os.environ.get("NPU_SHIM_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "npu_shim"), "public"
)


# --- projects ----------------------------------------------------------------------------------------------------
def git(repository: str, sources: str, *arguments: str, text: bytes = b"") -> bytes:
    """Return the output of git for an input, in a bare clone, which is made if it is missing."""
    clone = os.path.join(sources, repository)
    if not os.path.isdir(clone):
        address = f"https://github.com/{repository}"
        environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}  # an error where the repository is gone, no question
        subprocess.run(["git", "clone", "-q", "--bare", address, clone], check=True, env=environment)
    return subprocess.check_output(["git", "--git-dir", clone, *arguments], input=text)


def checkout(repository: str, commit: str, folder: str, sources: str, target: str) -> None:
    """Write a folder of a repository, "" for all of it, into an empty one, without files that the clone lacks."""
    entries = git(repository, sources, "ls-tree", "-r", "-z", commit, *filter(None, [folder])).split(b"\0")[:-1]
    blobs = b"".join(entry.split()[2] + b"\n" for entry in entries)
    kinds = git(repository, sources, "cat-file", "--batch-check", text=blobs).splitlines()
    lacking = [entry.split(b"\t", 1)[1] for entry, kind in zip(entries, kinds) if kind.endswith(b" missing")]
    paths = [folder or ".", *(f":(exclude,literal){os.fsdecode(path)}" for path in lacking)]
    archive = git(repository, sources, "archive", commit, "--", *paths)
    subprocess.run(["tar", "-x", "-C", target], input=archive, check=True)


def own_commit() -> str:
    """Return the commit of npu_shim."""
    return subprocess.check_output(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"]).decode().strip()


def known_commit(repository: str, commit: str, sources: str) -> str:
    """Return a commit, or the newest one of a clone that does not have it, as one without history."""
    try:
        git(repository, sources, "cat-file", "-e", commit + "^{commit}")
    except subprocess.CalledProcessError:
        return git(repository, sources, "rev-parse", "--short", "HEAD").decode().strip()
    return commit


def project(program: Program, sources: str, target: str) -> str:
    """Write the project of a program, with its data and edits. Return the commit that it is of.

    Args:
        program: which.
        sources: a folder with bare clones at OWNER/NAME; a missing one is made.
        target: a folder that is made.
    """
    commit = known_commit(program.repository, program.commit, sources)
    with tempfile.TemporaryDirectory() as folder:
        checkout(program.repository, commit, program.folder, sources, folder)
        shutil.copytree(os.path.join(folder, program.folder), target, symlinks=True)
    for link, name in program.links:
        os.symlink(name, os.path.join(target, link))
    for kind, place, *rest in program.data:
        run([os.path.join(HERE, "public_data.py"), kind, os.path.join(target, place), *rest], codes=(0,))
    edit(target, program.edits)
    return commit


def edit(folder: str, edits: Sequence[Edit]) -> None:
    """Edit files of a folder.

    Raises:
        ValueError: an edit changes nothing.
    """
    for each in edits:
        if not sum(_edit(path, each) for path in glob.glob(os.path.join(folder, each.file), recursive=True)):
            raise ValueError(f"{each.file}: the edit {each.pattern!r} changes nothing")


def _edit(path: str, edit: Edit) -> bool:
    """Edit a file. Return True if that changes it."""
    with open(path, encoding="utf-8", newline="") as stream:
        text = stream.read()
    changed = re.sub(edit.pattern, edit.replacement, text)
    if changed == text:
        return False
    with open(path, "w", encoding="utf-8", newline="") as stream:
        stream.write(changed)
    return True


# --- commands ----------------------------------------------------------------------------------------------------
def run(
    arguments: Sequence[str],
    folder: str = HERE,
    codes: Container[int] = (0, 1),
    python: str = sys.executable,
    timeout: float | None = None,
) -> str:
    """Run a command of npu-shim or of the tool in a process of its own, in a folder. Return the end of its output.

    Raises:
        RuntimeError: it ends with another code than these.
        TimeoutExpired: it takes more than `timeout` seconds.
    """
    paths = [ROOT, os.path.join(ROOT, "tools"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "NPU_SHIM_ALIAS": "1",  # for scripts of Horovod and of the vendor's packages
        "NPU_SHIM_FALLBACK": "silent",
        "PYTHONPATH": os.pathsep.join(paths),
    }
    done = subprocess.run(
        [python, *arguments],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        timeout=timeout,
        check=False,
    )
    text = done.stdout.decode("utf-8", "replace")[-20000:]
    if done.returncode not in codes:
        raise RuntimeError(f"{' '.join(arguments)} ended with code {done.returncode}:\n{text}")
    return text


def use_stand_ins() -> None:
    """Let the commands find the stand-ins for packages that download data, or show pictures."""
    os.environ["PYTHONPATH"] = os.pathsep.join([os.path.join(HERE, "stand_ins"), os.environ.get("PYTHONPATH", "")])


def verify(name: str, arguments: Sequence[str], folder: str, report: str, python: str = sys.executable) -> Any:
    """Return the result of ``npu-shim verify`` as data.

    Args:
        name: for the progress.
        arguments: of the command.
        folder: in which it runs.
        report: the folder for the reports.
        python: that runs it.
    """
    output = run(["-m", "npu_shim", "verify", "-r", report, *arguments], folder, range(4), python)
    if not os.path.exists(os.path.join(report, "verify.json")):
        raise RuntimeError(f"verify wrote no report:\n{output}")
    found = read(os.path.join(report, "verify.json"))
    print(name, found["verdict"], *found["problems"], sep="\n    ", file=sys.stderr, flush=True)
    return found


def verdict(found: Any) -> str:
    """Return a verdict, with the first value that departs."""
    if found["verdict"] in ("agree", "not run"):
        return str(found["verdict"])
    return f"{found['verdict']}: {found['problems'][0]}".replace(": The first difference is at", " at")


def read(path: str) -> Any:
    """Return the JSON of a file."""
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


# --- results -----------------------------------------------------------------------------------------------------
class Kept:
    """The results of a list, in a file of tab-separated values beside it.

    Args:
        file: its name.
        kind: the named tuple of a result, which begins with the name of the entry.
        names: of the entries, in their order. Results of others are left out.
    """

    def __init__(self, file: str, kind: Any, names: Sequence[str]) -> None:
        self._path, self._kind, self._names = os.path.join(HERE, file), kind, names

    def read(self) -> dict[str, Any]:
        """Return the results by name."""
        if not os.path.exists(self._path):
            return {}
        with open(self._path, encoding="utf-8", newline="") as stream:
            _, *rows = csv.reader(stream, delimiter="\t")
        is_number = ["int" in str(kind) for kind in self._kind.__annotations__.values()]
        made = {
            row[0]: self._kind(
                *((int(cell) if cell else None) if number else cell for number, cell in zip(is_number, row))
            )
            for row in rows
        }
        return {name: made[name] for name in self._names if name in made}

    def add(self, *results: Any) -> None:
        """Write results; the others stay. Without a result, put the file in order."""
        kept = {**self.read(), **{result[0]: result for result in results}}
        with open(self._path, "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
            writer.writerow(self._kind._fields)
            writer.writerows(kept[name] for name in self._names if name in kept)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table."""
    lines = [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
    lines += [f"| {' | '.join(str(cell).replace('|', ' ') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def put(text: str, begin: str, end: str, pages: Sequence[str] = PAGES) -> None:
    """Put a table between two comments, into each of the pages, by default a page and its Chinese form."""
    for page in pages:
        with open(page, encoding="utf-8") as stream:
            before, rest = stream.read().split(begin)
        made = text.replace("](../", "](../../") if os.path.dirname(page) != HERE else text
        with open(page, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(before + begin + made + end + rest.split(end, 1)[1])


# --- the command line --------------------------------------------------------------------------------------------
def parser(doc: str | None, missing: str = "only entries without a result") -> argparse.ArgumentParser:
    """Return the options that all of these scripts have.

    Args:
        doc: its first line describes the script.
        missing: the help of ``--missing``.
    """
    made = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    made.add_argument("--only", default="", metavar="NAME", help="entries whose names match this regular expression")
    made.add_argument("--missing", action="store_true", help=missing)
    made.add_argument("--sources", default=SOURCES, metavar="DIR", help="bare clones at OWNER/NAME (%(default)s)")
    made.add_argument("--keep", metavar="DIR", help="keep what an entry makes in DIR/NAME")
    made.add_argument("--table", action="store_true", help="only make the table")
    return made


def check_only(made: argparse.ArgumentParser, only: str, names: Iterable[str]) -> None:
    """End the script with exit code 2 if no entry has a name that ``--only`` matches."""
    if not any(re.search(only, name) for name in names):
        made.error(f"no entry matches {only!r}")


@contextlib.contextmanager
def folder_of(name: str, keep: str | None) -> Iterator[str]:
    """Give an empty folder for an entry, in `keep` if there is one."""
    with tempfile.TemporaryDirectory() as folder:
        work = os.path.join(os.path.abspath(keep or folder), name.replace("/", "+"))
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        yield work
