"""The suites of the tests: what each runs, and where. ``tests/run.sh`` runs what this program plans.

    python tests/suites.py plan --column all --env tf115     the suites of the matrix in one environment
    python tests/suites.py plan --path tests/ops/test_lru.py only these tests
    python tests/suites.py record FILE                       the seconds in FILE take the place of those before

A plan has a line a suite, those that took longest first: the column, the environment, the suite, a variable for its
processes, the expression of marks, and the arguments for pytest, with tabs between them. Any Python 3.7 or later runs it.
"""

from __future__ import annotations

import argparse
import csv
import pathlib
import sys
from typing import Iterator, Mapping, NamedTuple

_SECONDS = pathlib.Path(__file__).with_name("seconds.tsv")
_COLUMNS = "date column environment suite seconds processor_seconds tests".split()
_DEFAULT, _ALL, _NIGHTLY = "default", "all", "nightly"
_ENVIRONMENTS = "tf215 tf115 tf26 tf221 mpi mpi_debian mpich reports vendor".split()
_MATRIX = _ENVIRONMENTS[:4]
_NEVER_RUN = 999  # seconds: a suite whose time is not known starts first

# By day tests with the mark "once" run in tf215 only, those with "once_tf115" in tf115 only, and those with "twice" in
# both, where their suite runs there.
_ONLY = {"once": ["tf215"], "once_tf115": ["tf115"], "twice": ["tf215", "tf115"]}


class Suite(NamedTuple):
    """Tests that one process runs: their paths, and by environment how they are reduced there.

    Tests that need no TensorFlow run by day with Python 3.7 (tf115) and 3.11: where the sources ask for a version of
    Python, it is 3.8, 3.9 or 3.11, or a later one than the matrix has, so these two take both ways. Of 3.9 (tf26) a few
    cases run.
    """

    name: str
    paths: str
    default: str | None = None
    by_day: Mapping[str, str] = {}
    nightly: str = ""
    variable: str = "-"


_SMOKE = "-m smoke"
_ONE, _FEW = "--few-cases=1", "--few-cases=2"
_LAST = f"{_FEW} --not-the-first"  # where the other versions run the first
_FOUR, _TWO = "tf215 tf115 tf26 tf221", "tf215 tf115"
_BACKENDS = "tests/distributed/test_backend_collectives.py"

SUITES = (
    Suite("types", "tests/types", "", {"tf215": ""}),
    Suite(
        "fast",
        "tests/fast",
        "",
        {"tf215": "", "tf115": _FEW, "tf26": f"{_SMOKE} --few-cases=4"},
        "tf115 tf26 tf221",
    ),
    Suite(
        "convert",
        "tests/convert",
        "",
        {"tf215": "", "tf115": _FEW, "tf26": f"{_SMOKE} --few-cases=9"},
        "tf115 tf215 tf26",
    ),
    Suite(
        "shim",
        "tests/shim",
        _FEW,
        {"tf215": _LAST, **dict.fromkeys("tf115 tf26 tf221".split(), _ONE)},
        _FOUR,
    ),
    Suite(
        "ops",
        "tests/ops tests/cpu_kernels",
        _FEW,
        {"tf215": _LAST, **dict.fromkeys("tf115 tf26 tf221".split(), _ONE)},
        _FOUR,
    ),
    # CANN has TensorFlow 1.15 and 2.6; the default run has these tests with 2.15.
    Suite("card", "tests/card", "", {"tf115": "", "tf26": ""}, _FOUR),
    Suite("dumps", "tests/dumps tests/profiles", "", {"tf215": "", "tf115": ""}, "tf215 tf26 tf221"),
    Suite("cli", "tests/cli", None, {"tf215": "", "tf115": ""}, _FOUR),
    Suite("samples", "tests/samples tests/migrated tests/lifted", None, {"tf215": "", "tf115": ""}, _FOUR),
    Suite("distributed", "tests/distributed", None, {"tf215": "", "tf115": ""}, _FOUR),
    Suite(
        "smoke",
        "tests/distributed tests/lifted tests/samples tests/cli",
        _SMOKE,
        {"tf26": _SMOKE, "tf221": _SMOKE},
    ),
    Suite("rehearsal", "tests/rehearsal", None, {"tf215": _SMOKE}, _FOUR),
    Suite("robustness", "tests/robustness", None, {"tf215": ""}, "tf115 tf26"),
    Suite("corpus", "tests/corpus", None, {"tf115": ""}, "tf115 tf26 tf215"),
    Suite("blocks", "tests/blocks", None, {"tf215": ""}, _TWO),
    Suite("reports", "tests/browser tests/schemas tests/site", None, {"reports": ""}, "reports"),
    Suite("once", "tests/once", nightly="tf215"),
    Suite("install", "tests/install", nightly="tf215"),
    Suite("card_recordings", "tests/card/test_draws.py tests/card/test_recording.py", nightly="tf221"),
    Suite("vendor", "tests/vendor", nightly="vendor"),
    Suite("cluster", "tests/cluster/test_slurm.py", nightly=_TWO),
    Suite("many_faults", "tests/distributed/test_faults.py", nightly="tf215", variable="NPU_SHIM_FAULTS=200"),
    Suite(
        "rank_cases",
        " ".join(
            f"tests/distributed/test_{name}.py"
            for name in "estimator_files converted strategy device_start training".split()
        ),
        nightly=_FOUR,
        variable="NPU_SHIM_RANK_CASES=all",
    ),
    Suite(
        "rank_sizes",
        " ".join(f"tests/distributed/test_{name}.py" for name in "collective_ops threads rehearsal".split()),
        nightly=_TWO,
        variable="NPU_SHIM_RANK_CASES=all",
    ),
    Suite(
        "mpi",
        f"tests/mpi/test_ranks.py {_BACKENDS} tests/distributed/test_backend_uneven.py tests/distributed/test_backend_random.py",
        nightly="mpi",
        variable="NPU_SHIM_TEST_BACKENDS=mpi",
    ),
    Suite("mpi_hosts", "tests/mpi/test_two_hosts.py tests/mpi/test_sample.py", nightly="mpi"),
    Suite(
        "mpi_ranks",
        f"tests/mpi/test_ranks.py tests/mpi/test_two_hosts.py {_BACKENDS}",
        nightly="mpich mpi_debian",
        variable="NPU_SHIM_TEST_BACKENDS=mpi",
    ),
    Suite("mpi_sample", "tests/mpi/test_sample.py", nightly="mpi_debian"),
    Suite("slurm_mpi", "tests/cluster/test_slurm_mpi.py", nightly="mpi"),
)


class Planned(NamedTuple):
    """One suite in one environment, with a variable of its processes ("-": none) and the marks and arguments of pytest."""

    column: str
    environment: str
    suite: str
    variable: str
    marks: str
    arguments: str


def in_column(column: str, suites: list[str], environments: list[str]) -> Iterator[Planned]:
    """Yield what a column runs of some suites and environments; empty lists stand for all."""
    for suite in SUITES:
        if column == _NIGHTLY:
            where = dict.fromkeys(suite.nightly.split(), "")
        elif column == _ALL:
            where = dict(suite.by_day)
        else:
            where = (
                {}
                if suite.default is None
                else {environment: suite.default for environment in environments or ["tf215"]}
            )
        for environment, options in where.items():
            if suite.name in (suites or [suite.name]) and environment in (environments or [environment]):
                marks = _marks(column, environment, suite)
                if options.startswith(_SMOKE):
                    marks, options = f"smoke and {marks}", options[len(_SMOKE) :].strip()
                arguments = f"{options} {suite.paths}".strip()
                yield Planned(column, environment, suite.name, suite.variable, marks, arguments)


def _marks(column: str, environment: str, suite: Suite) -> str:
    if column == _NIGHTLY:
        return ""
    if column == _DEFAULT:
        return "not nightly and not slow"
    whole = {name for name, options in suite.by_day.items() if not options.startswith(_SMOKE)}
    others = [mark for mark, its in _ONLY.items() if environment not in its and whole & {*its}]
    return " and ".join(f"not {mark}" for mark in ["nightly", *others])


def of_paths(column: str, paths: list[str], environments: list[str]) -> Iterator[Planned]:
    """Yield the run of the paths that a person names: in the environments given, or else in one that they run in."""
    first = paths[0].rstrip("/")
    suite = next((each for each in SUITES if any(_is_in(path, first) for path in each.paths.split())), SUITES[0])
    its = [*suite.by_day, *suite.nightly.split()]
    for environment in environments or ["tf215" if "tf215" in its else its[0]]:
        yield Planned(column, environment, "chosen", "-", "" if column == _NIGHTLY else "not nightly", "")


def _is_in(path: str, other: str) -> bool:
    """Return True if one of two paths is inside the other."""
    return path.startswith(other) or other.startswith(path)


def _measured() -> dict[tuple[str, str, str], dict[str, str]]:
    with _SECONDS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return {(row["column"], row["environment"], row["suite"]): row for row in rows}


def record(path: pathlib.Path) -> None:
    """Write the rows of a run over those of the same column, environment and suite."""
    rows = _measured()
    for line in path.read_text(encoding="utf-8").splitlines():
        row = dict(zip(_COLUMNS, line.split("\t")))
        rows[row["column"], row["environment"], row["suite"]] = row
    names = {suite.name for suite in SUITES}
    lines = ["\t".join(row[name] for name in _COLUMNS) for key, row in sorted(rows.items()) if key[2] in names]
    _SECONDS.write_text("\n".join(["\t".join(_COLUMNS), *lines]) + "\n", encoding="utf-8")


def _plan(arguments: argparse.Namespace) -> list[Planned]:
    suites, environments, columns = arguments.suite, arguments.env, arguments.column
    if arguments.path:
        if suites:
            raise ValueError("--suite runs the paths of its row; leave out either --suite or the paths")
        return [*of_paths((columns or [_DEFAULT])[0], arguments.path, environments or (_MATRIX if columns else []))]
    columns = columns or ([_ALL, _NIGHTLY] if suites else [_ALL] if environments else [_DEFAULT])
    planned = [each for column in columns for each in in_column(column, suites, environments)]
    if not planned:
        raise ValueError(
            f"no suite of that name or column runs in {' '.join(environments)}; see the table in tests/suites.py"
        )
    measured = _measured()

    def seconds(each: Planned) -> int:
        keys = [(column, each.environment, each.suite) for column in (each.column, _ALL)]
        return next((int(measured[key]["seconds"]) for key in keys if key in measured), _NEVER_RUN)

    return sorted(planned, key=seconds, reverse=True)


def main() -> int:
    """Plan a run, or record one."""
    parser = argparse.ArgumentParser(prog="tests/run.sh", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb")
    plan = verbs.add_parser("plan")
    plan.add_argument("--column", action="append", default=[])
    plan.add_argument("--suite", action="append", default=[])
    plan.add_argument("--env", action="append", default=[])
    plan.add_argument("--path", action="append", default=[])
    verbs.add_parser("record").add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.verb == "record":
        record(arguments.file)
        return 0
    names = sorted(suite.name for suite in SUITES)
    try:
        for option, given, known in (("suite", arguments.suite, names), ("environment", arguments.env, _ENVIRONMENTS)):
            for each in given:
                if each not in known:
                    flag = "--env" if option == "environment" else "--suite"
                    raise ValueError(f"{flag} {each}: no such {option}; there are {' '.join(known)}")
        for each in _plan(arguments):
            print("\t".join(each))
    except ValueError as problem:
        print(f"tests/run.sh: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
