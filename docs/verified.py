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
from typing import Any, Container, Iterator, NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
TOOL = os.path.join(ROOT, "tools/convert_tf2npu/main.py")
PAGES = os.path.join(HERE, "verify.md"), os.path.join(HERE, "zh", "verify.md")
SOURCES = os.path.join(
    os.environ.get("NPU_SHIM_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "npu_shim"), "public"
)


# --- entries of a list -------------------------------------------------------------------------------------------
class Edit(NamedTuple):
    """A replacement by a regular expression, in a file of the project.

    Attributes:
        file: its path, or a pattern of `glob` for several files.
        pattern, replacement: as in `re.sub`.
    """

    file: str
    pattern: str
    replacement: str


class Defect(NamedTuple):
    """A defect that is planted in the original before its conversion.

    Attributes:
        kind: for the table, as in "rate 2 % higher".
        edits: that plant it.
    """

    kind: str
    edits: Sequence[Edit]


class Script(NamedTuple):
    """A public script, and how it is run.

    Attributes:
        repository, commit: on GitHub.
        kind: of program, for the table.
        tensorflow: the version it runs with, as in "1.15".
        folder: of the project in the repository, which is copied; "" for all of it.
        script: in the folder where it starts.
        start: that folder, in the project.
        arguments: of the script.
        data: arguments of public_data.py; the folder is one of the project.
        links: symbolic links to make, and their targets.
        edits: that make the script small.
        defect: to plant, or None.
        steps: to compare.
        options: of verify.
        plain: edits that take the NPU code out of a script. The script is then compared with this form of it, otherwise
            with its conversion.
    """

    repository: str
    commit: str
    kind: str
    tensorflow: str
    folder: str
    script: str
    start: str = ""
    arguments: str = ""
    data: Sequence[str] = ()
    links: Sequence[tuple[str, str]] = ()
    edits: Sequence[Edit] = ()
    defect: Defect | None = None
    steps: int = 20
    options: str = ""
    plain: Sequence[Edit] = ()

    @property
    def path(self) -> str:
        """The path of the script in the repository."""
        return "/".join(each for each in (self.folder, self.start, self.script) if each)

    @property
    def name(self) -> str:
        """The path on GitHub without the commit, and the version of TensorFlow, which name the entry."""
        return f"{self.repository}/{self.path}@{self.tensorflow}"

    @property
    def link(self) -> str:
        """The address on GitHub."""
        return f"https://github.com/{self.repository}/blob/{self.commit}/{self.path}"


# --- projects ----------------------------------------------------------------------------------------------------
def git(repository: str, sources: str, *arguments: str) -> bytes:
    """Return the output of git in a bare clone, which is made if it is missing."""
    clone = os.path.join(sources, repository)
    if not os.path.isdir(clone):
        address = f"https://github.com/{repository}"
        subprocess.run(["git", "clone", "-q", "--bare", address, clone], check=True)
    return subprocess.check_output(["git", "--git-dir", clone, *arguments])


def checkout(repository: str, commit: str, folder: str, sources: str, target: str) -> None:
    """Write a folder of a repository, "" for all of it, into an empty one."""
    archive = git(repository, sources, "archive", commit, *filter(None, [folder]))
    subprocess.run(["tar", "-x", "-C", target], input=archive, check=True)


def project(script: Script, sources: str, target: str) -> None:
    """Write the project of a script, with its data and edits.

    Args:
        script: which.
        sources: a folder with bare clones at OWNER/NAME; a missing one is made.
        target: a folder that is made.
    """
    with tempfile.TemporaryDirectory() as folder:
        checkout(script.repository, script.commit, script.folder, sources, folder)
        shutil.copytree(os.path.join(folder, script.folder), target, symlinks=True)
    for link, name in script.links:
        os.symlink(name, os.path.join(target, link))
    if script.data:
        kind, place, *rest = script.data
        run([os.path.join(HERE, "public_data.py"), kind, os.path.join(target, place), *rest])
    edit(target, script.edits)


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
    arguments: Sequence[str], folder: str = HERE, codes: Container[int] = (0, 1), python: str = sys.executable
) -> str:
    """Run a command of npu-shim or of the tool in a process of its own, in a folder. Return the end of its output.

    Raises:
        RuntimeError: it ends with another code than these.
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
        stderr=subprocess.STDOUT,
        check=False,
    )
    text = done.stdout.decode("utf-8", "replace")[-3000:]
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
        made = {row[0]: self._kind(*(int(cell) if cell.isdigit() else cell for cell in row)) for row in rows}
        return {name: made[name] for name in self._names if name in made}

    def add(self, made: Any) -> None:
        """Write a result; the others stay."""
        kept = {**self.read(), made[0]: made}
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
def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return the options that all of these scripts have; the first line of `doc` describes them."""
    made = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    made.add_argument("--only", default="", metavar="NAME", help="entries whose names match this regular expression")
    made.add_argument("--missing", action="store_true", help="only entries without a result")
    made.add_argument("--sources", default=SOURCES, metavar="DIR", help="bare clones at OWNER/NAME (%(default)s)")
    made.add_argument("--keep", metavar="DIR", help="keep what an entry makes in DIR/NAME")
    made.add_argument("--table", action="store_true", help="only make the table")
    return made


@contextlib.contextmanager
def folder_of(name: str, keep: str | None) -> Iterator[str]:
    """Give an empty folder for an entry, in `keep` if there is one."""
    with tempfile.TemporaryDirectory() as folder:
        work = os.path.join(keep or folder, name.replace("/", "+"))
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        yield work
