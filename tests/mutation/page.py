"""Write tests/mutation/RESULTS.md: where the time of the tests goes, and which of them notice the mistakes of run.py.

python tests/mutation/page.py
"""

from __future__ import annotations

import csv
import pathlib
from collections import Counter

from areas import AREAS, NOTICED_SINCE, WITHOUT_EFFECT

HERE = pathlib.Path(__file__).resolve().parent
_DAY, _NIGHT, _NOTHING = "day", "night", "no"


def read(path: pathlib.Path) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def _of(made: int, planned: int) -> str:
    return str(made) if made >= planned else f"{made} of {planned}"


def _without_effect(place: str) -> str:
    return f": without an effect, {WITHOUT_EFFECT[place]}" if place in WITHOUT_EFFECT else ""


def main() -> None:
    """Write the page."""
    found = read(HERE / "results.tsv")
    last = {
        (row["environment"], row["suite"]): row for row in read(HERE.parent / "seconds.tsv") if row["column"] == "all"
    }
    day = max(row["date"] for row in last.values())
    suites = sorted((row for row in last.values() if row["date"] == day), key=lambda row: -int(row["seconds"]))
    seconds = sum(int(row["seconds"]) for row in suites)
    noticed = Counter((row["environment"], row["suite"]) for row in found if row["when"] == _DAY)
    whens = Counter(row["when"] for row in found)
    planned = sum(area.number for area in AREAS)
    harmless = sum(row["place"] in WITHOUT_EFFECT for row in found if row["when"] == _NOTHING)
    lines = [
        "# Small mistakes, and the tests that notice them",
        "",
        "`tests/mutation/run.py` made the mistakes, `tests/mutation/page.py` this page.",
        "",
        f"{_of(len(found), planned)} mistakes were made: {whens[_DAY]} are noticed by day, {whens[_NIGHT]} "
        f"({whens[_NIGHT] / len(found):.0%}) only by the nightly run, {whens[_NOTHING]} by no test of their area, of which "
        f"{harmless} have no effect. No test noticed {len(NOTICED_SINCE)} of them when they were first made.",
        "",
    ]
    rows = []
    for area in AREAS:
        of_area = Counter(row["when"] for row in found if row["area"] == area.name)
        counts = [str(of_area[when]) for when in (_DAY, _NIGHT, _NOTHING)]
        rows.append([area.name, _of(sum(of_area.values()), area.number), *counts])
    lines += table(["area", "mistakes", "noticed by day", "only by night", "by no test"], rows)
    lines += ["## Suites", "", f"Of `tests/run.sh --all` on {day}; three suites run at a time.", ""]
    rows = [
        [
            row["environment"],
            row["suite"],
            row["tests"],
            row["seconds"],
            f"{int(row['seconds']) / seconds:.0%}",
            str(noticed[row["environment"], row["suite"]] or ""),
        ]
        for row in suites
    ]
    lines += table(["environment", "suite", "cases", "seconds", "share", "mistakes it notices first"], rows)
    lines += ["## Not noticed by day", ""]
    late = [row for row in found if row["when"] != _DAY]
    lines += table(
        ["place", "mistake", "noticed by"],
        [[row["place"], row["mistake"], row["test"] or f"no test{_without_effect(row['place'])}"] for row in late],
    )
    since = [row for row in found if row["place"] in NOTICED_SINCE]
    lines += ["## Noticed by a test that came later", ""]
    lines += table(["place", "mistake", "test since"], [[row["place"], row["mistake"], row["test"]] for row in since])
    (HERE / "RESULTS.md").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
