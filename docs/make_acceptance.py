"""Verify public scripts and scripts with a planted defect, for a table of docs/verify.md.

``python docs/make_acceptance.py`` clones the repositories of acceptance_tf1.py and acceptance_tf2.py whose scripts run
with the TensorFlow of this Python, verifies each script against its conversion in memory, writes the result beside the
list, as acceptance_tf1.tsv, and makes the table from all results. ``NAME ...`` verifies only the entries whose names
contain one of these texts, ``--missing`` those without a result, ``--planted`` only the defects of entries that have a
result. ``--table`` only makes the table. ``--list`` shows the entries. ``--keep FOLDER`` keeps projects and reports.
The scripts need these packages besides. With TensorFlow 1.15: gym 0.17.3, keras 2.2.4, networkx,
opencv-python-headless, pillow, regex and tqdm. With 2.6: dm-tree, gym 0.25.2, imageio, pandas, pillow, tabulate and
tensorflow-addons. With 2.15: click, gym 0.25.2, networkx, opencv-python-headless, optuna, oyaml, pandas, pillow,
scikit-image, tensorflow-addons and tqdm. With 2.21: einops and jaxtyping.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import acceptance_tf1  # noqa: E402
import acceptance_tf2  # noqa: E402
from acceptance import Script  # noqa: E402
from make_paths import put, read, run  # noqa: E402
from make_public_paths import TOOL, edit, prepare  # noqa: E402

LISTS = (acceptance_tf1, acceptance_tf2)
STEPS = 20
_BEGIN, _END = "<!-- made by docs/make_acceptance.py -->\n", "<!-- end of acceptance -->\n"
SOURCES = os.path.join(
    os.environ.get("NPU_SHIM_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "npu_shim"), "public"
)
_COLUMNS = ("script", "kind", "TensorFlow", "steps", "names compared", "verdict", "seconds", "planted defect", "found")


class Result(NamedTuple):
    """The result of a script.

    Attributes:
        name: of the entry.
        steps, names: that were compared.
        verdict: of verify, with the reason if the two do not agree.
        seconds: of verify.
        found: the verdict on the planted defect, "" without one.
    """

    name: str
    steps: int
    names: int
    verdict: str
    seconds: int
    found: str


def project(script: Script, sources: str, target: str) -> None:
    """Write the project of a script, with its data and edits.

    Args:
        script: which.
        sources: a folder with bare clones at OWNER/NAME; a missing one is made.
        target: a folder that is made.
    """
    with tempfile.TemporaryDirectory() as folder:
        checkout(script.repository, script.commit, script.folder, sources, folder)
        prepare(script, folder, target, script.edits)


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


def verify(script: Script, folder: str, report: str, migrated: str | None = None) -> Any:
    """Return the result of ``npu-shim verify`` as data.

    Args:
        script: which.
        folder: its project.
        report: the folder for the reports.
        migrated: the project of the migrated script; None to convert the original in memory.
    """
    scripts = [script.script] + ([os.path.join(migrated, script.start, script.script)] if migrated else [])
    options = ["--steps", str(STEPS), "--timeout", "600", "--copy", "-r", report]
    command = ["-m", "npu_shim", "verify", *options, *scripts, "--", *script.arguments.split()]
    output = run(command, os.path.join(folder, script.start), codes=range(4))
    if not os.path.exists(os.path.join(report, "verify.json")):
        raise RuntimeError(f"verify wrote no report:\n{output}")
    found = read(os.path.join(report, "verify.json"))
    print(script.name, found["verdict"], *found["problems"], sep="\n    ", file=sys.stderr, flush=True)
    return found


def measure(script: Script, sources: str, work: str, kept: Result | None = None) -> Result:
    """Verify a script, and then with its planted defect.

    Args:
        script: which.
        sources: the folder of the clones.
        work: an empty folder.
        kept: a result without the defect, which is not measured again.
    """
    plain, planted, migrated = (os.path.join(work, each) for each in ("plain", "planted", "migrated"))
    project(script, sources, plain)
    if kept is None:
        begin = time.time()
        one = verify(script, plain, os.path.join(work, "report"))
        seconds = round(time.time() - begin)
        kept = Result(script.name, one["original"]["steps"], len(one["streams"]), verdict(one), seconds, "")
    if script.defect is None:
        return kept
    project(script, sources, planted)
    edit(planted, script.defect.edits)
    run([TOOL, "-i", planted, "-o", migrated], codes=(0, 1, 2))  # 2: a file of the project is of Python 2
    return kept._replace(found=verdict(verify(script, plain, os.path.join(work, "planted_report"), migrated)))


def verdict(found: Any) -> str:
    """Return a verdict, with the first value that departs."""
    if found["verdict"] in ("agree", "not run"):
        return str(found["verdict"])
    return f"{found['verdict']}: {found['problems'][0]}".replace(": The first difference is at", " at")


def results(module: Any) -> dict[str, Result]:
    """Return the results of a list by name; those of entries that the list no longer has are left out."""
    if not os.path.exists(_path(module)):
        return {}
    with open(_path(module), encoding="utf-8", newline="") as stream:
        _, *rows = csv.reader(stream, delimiter="\t")
    made = [
        Result(name, int(steps), int(names), how, int(seconds), found)
        for name, steps, names, how, seconds, found in rows
    ]
    names = {each.name for each in module.SCRIPTS}
    return {each.name: each for each in made if each.name in names}


def keep(module: Any, made: Result) -> None:
    """Write a result of a list; the others stay."""
    kept = {**results(module), made.name: made}
    with open(_path(module), "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(Result._fields)
        writer.writerows(kept[each.name] for each in module.SCRIPTS if each.name in kept)


def _path(module: Any) -> str:
    return os.path.join(HERE, module.__name__ + ".tsv")


def line(script: Script, result: Result) -> str:
    """Return a result as a row of the table."""
    path = "/".join(each for each in (script.folder, script.start, script.script) if each)
    cells = (
        f"[{script.repository}](https://github.com/{script.repository}/blob/{script.commit}/{path}) `{script.script}`",
        script.kind,
        script.tensorflow,
        str(result.steps),
        str(result.names),
        result.verdict,
        str(result.seconds),
        script.defect.kind if script.defect else "",
        result.found,
    )
    return f"| {' | '.join(each.replace('|', ' ') for each in cells)} |"


def table() -> str:
    """Return the table of all results, with a line that counts them."""
    made = [
        (script, results(module)[script.name])
        for module in LISTS
        for script in module.SCRIPTS
        if script.name in results(module)
    ]
    verdicts = [result.verdict.split(":")[0].split(" at step")[0] for _, result in made]
    counts = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
    planted = [result.found for _, result in made if result.found]
    found = sum(each.startswith("differ ") for each in planted)
    lines = [f"{len(made)} scripts: {counts}. {len(planted)} planted defects: {found} found.", ""]
    lines += [f"| {' | '.join(_COLUMNS)} |", "|" + " --- |" * len(_COLUMNS)]
    return "\n".join(lines + [line(*each) for each in made]) + "\n"


def write() -> None:
    """Put the table into the pages."""
    put(table(), _BEGIN, _END)


def chosen(version: str, names: Sequence[str], missing: bool) -> list[tuple[Any, Script]]:
    """Return lists and entries that run with a version of TensorFlow.

    Args:
        version: of TensorFlow.
        names: parts of the names of the entries; none for all.
        missing: only those without a result.
    """
    return [
        (module, script)
        for module in LISTS
        for script in module.SCRIPTS
        if version.startswith(script.tensorflow + ".")
        and (not names or any(each in script.name for each in names))
        and not (missing and script.name in results(module))
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify the scripts that run with this TensorFlow, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="part of the name of an entry; by default all")
    parser.add_argument("--missing", action="store_true", help="only entries without a result")
    parser.add_argument("--planted", action="store_true", help="only the planted defects of entries with a result")
    parser.add_argument("--sources", default=SOURCES, metavar="DIR", help="bare clones at OWNER/NAME (%(default)s)")
    parser.add_argument("--keep", metavar="DIR", help="keep projects and reports in DIR/NAME")
    parser.add_argument("--list", action="store_true", help="show the entries and their results")
    parser.add_argument("--table", action="store_true", help="only make the table")
    options = parser.parse_args(arguments)
    if options.list:
        for module in LISTS:
            for script in module.SCRIPTS:
                print(script.name, *results(module).get(script.name, ())[1:], sep="\t")
        return 0
    if not options.table:
        import tensorflow as tf

        stand_ins = os.path.join(HERE, "stand_ins")
        os.environ["PYTHONPATH"] = os.pathsep.join([stand_ins, os.environ.get("PYTHONPATH", "")])
        for module, script in chosen(tf.__version__, options.names, options.missing):
            kept = results(module).get(script.name) if options.planted else None
            if options.planted and not (kept and script.defect):
                continue
            with tempfile.TemporaryDirectory() as folder:
                work = os.path.join(options.keep or folder, script.name.replace("/", "+"))
                shutil.rmtree(work, ignore_errors=True)
                os.makedirs(work)
                made = measure(script, options.sources, work, kept)
            keep(module, made)
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
