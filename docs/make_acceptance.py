"""Verify public scripts and scripts with a planted defect, for tables of docs/verify.md and docs/public-models.md.

``python docs/make_acceptance.py`` clones the repositories of acceptance_tf1.py, acceptance_tf2.py and acceptance_zoo.py
whose scripts run with the TensorFlow of this Python, verifies each script against its conversion in memory, writes the
result beside the list, as acceptance_tf1.tsv, and makes the tables from all results. ``--planted`` verifies only the
defects of entries that have a result; ``--help`` has the other options.
The scripts need these packages besides. With TensorFlow 1.15: gym 0.17.3, keras 2.2.4, networkx,
opencv-python-headless, pillow, regex and tqdm. With 2.6: dm-tree, gym 0.25.2, imageio, pandas, pillow, tabulate and
tensorflow-addons. With 2.15: click, gym 0.25.2, networkx, opencv-python-headless, optuna, oyaml, pandas, pillow,
scikit-image, tensorflow-addons and tqdm. With 2.21: einops and jaxtyping.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from typing import Any, NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import acceptance_tf1  # noqa: E402
import acceptance_tf2  # noqa: E402
import acceptance_zoo  # noqa: E402
import verified  # noqa: E402
from verified import Script  # noqa: E402

LISTS = (acceptance_tf1, acceptance_tf2)
_BEGIN, _END = "<!-- made by docs/make_acceptance.py -->\n", "<!-- end of acceptance -->\n"
_MODELS = os.path.join(HERE, "public-models.md")
_COLUMNS = ("script", "kind", "TensorFlow", "steps", "names compared", "verdict", "seconds")
_OF_DEFECTS = ("planted defect", "found")
_PAIRS = "script and conversion", "plain form and port"


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


def kept(module: Any) -> verified.Kept:
    """Return the results of a list."""
    return verified.Kept(module.__name__ + ".tsv", Result, [each.name for each in module.SCRIPTS])


def verify(script: Script, folder: str, report: str, migrated: str | None = None) -> Any:
    """Return the result of ``npu-shim verify`` as data.

    Args:
        script: which.
        folder: its project.
        report: the folder for the reports.
        migrated: the project of the migrated script; None to convert the original in memory.
    """
    scripts = [script.script] + ([os.path.join(migrated, script.start, script.script)] if migrated else [])
    options = ["--steps", str(script.steps), "--timeout", "1800", "--copy", *script.options.split()]
    options += [*scripts, "--", *script.arguments.split()]
    return verified.verify(script.name, options, os.path.join(folder, script.start), report)


def measure(script: Script, sources: str, work: str, known: Result | None = None) -> Result:
    """Verify a script, and then with its planted defect.

    Args:
        script: which.
        sources: the folder of the clones.
        work: an empty folder.
        known: a result without the defect, which is not measured again.
    """
    plain, planted, migrated = (os.path.join(work, each) for each in ("plain", "planted", "migrated"))
    verified.project(script, sources, plain)
    if script.plain:
        shutil.copytree(plain, migrated, symlinks=True)
        verified.edit(plain, script.plain)
    if known is None:
        begin = time.time()
        one = verify(script, plain, os.path.join(work, "report"), migrated if script.plain else None)
        seconds = round(time.time() - begin)
        known = Result(script.name, one["original"]["steps"], len(one["streams"]), verified.verdict(one), seconds, "")
    if script.defect is None:
        return known
    verified.project(script, sources, planted)
    verified.edit(planted, script.defect.edits)
    # 2: a file of the project is of Python 2
    verified.run([verified.TOOL, "-i", planted, "-o", migrated], codes=(0, 1, 2))
    return known._replace(found=verified.verdict(verify(script, plain, os.path.join(work, "planted_report"), migrated)))


def table(lists: Sequence[Any], with_defects: bool) -> str:
    """Return the table of all results, with a line that counts them.

    Args:
        lists: modules with scripts.
        with_defects: whether a script has its planted defect in the table, or what is compared.
    """
    made = [
        (script, kept(module).read()[script.name])
        for module in lists
        for script in module.SCRIPTS
        if script.name in kept(module).read()
    ]
    verdicts = [result.verdict.split(":")[0].split(" at step")[0] for _, result in made]
    counts = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
    planted = [result.found for _, result in made if result.found]
    found = sum(each.startswith("differ ") for each in planted)
    count = f"{len(made)} scripts: {counts}."
    columns = _COLUMNS + (_OF_DEFECTS if with_defects else ("compared",))
    rows: list[Sequence[object]] = []
    for script, result in made:
        defect = (script.defect.kind if script.defect else "", result.found)
        last = defect if with_defects else (_PAIRS[bool(script.plain)],)
        link = f"[{script.repository}]({script.link}) `{script.path}`"
        rows.append((link, script.kind, script.tensorflow, *result[1:5], *last))
    if with_defects:
        count += f" {len(planted)} planted defects: {found} found."
    return f"{count}\n\n{verified.markdown(columns, rows)}"


def chosen(version: str, only: str, missing: bool) -> list[tuple[Any, Script]]:
    """Return lists and entries that run with a version of TensorFlow.

    Args:
        version: of TensorFlow.
        only: a regular expression that names match.
        missing: only those without a result.
    """
    return [
        (module, script)
        for module in (*LISTS, acceptance_zoo)
        for script in module.SCRIPTS
        if version.startswith(script.tensorflow + ".")
        and re.search(only, script.name)
        and not (missing and script.name in kept(module).read())
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify the scripts that run with this TensorFlow, and write the tables."""
    parser = verified.parser(__doc__)
    parser.add_argument("--planted", action="store_true", help="only the planted defects of entries with a result")
    options = parser.parse_args(arguments)
    if not options.table:
        import tensorflow as tf

        verified.use_stand_ins()
        for module, script in chosen(tf.__version__, options.only, options.missing):
            known = kept(module).read().get(script.name) if options.planted else None
            if options.planted and not (known and script.defect):
                continue
            with verified.folder_of(script.name, options.keep) as work:
                kept(module).add(measure(script, options.sources, work, known))
    verified.put(table(LISTS, True), _BEGIN, _END)
    verified.put(table([acceptance_zoo], False), _BEGIN, _END, [_MODELS])
    return 0


if __name__ == "__main__":
    sys.exit(main())
