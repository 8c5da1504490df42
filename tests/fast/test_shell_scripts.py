"""The shell scripts: what they say and return when something is missing or wrong."""

from __future__ import annotations

import os
import pathlib
import re
import stat
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.once, pytest.mark.slow]

SAMPLES = ("digits_estimator", "digits_session", "text_keras", "digits_fit", "digits_loop")


def bash(script: pathlib.Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a script with this environment and the given changes to it."""
    return subprocess.run(
        ["bash", str(script), *args],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def program(path: pathlib.Path, text: str) -> pathlib.Path:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def no_python(tmp_path: pathlib.Path) -> dict[str, str]:
    """An environment in which only the usual small programs are found, and a Python that makes no environment."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in (
        "awk",
        "bash",
        "cat",
        "cut",
        "date",
        "dirname",
        "find",
        "flock",
        "head",
        "ls",
        "mkdir",
        "mktemp",
        "rm",
        "sed",
        "sha256sum",
        "sort",
        "tail",
        "tee",
        "touch",
    ):
        for place in ("/usr/bin", "/bin"):
            if os.path.exists(os.path.join(place, name)):
                (folder / name).symlink_to(os.path.join(place, name))
                break
    program(folder / "python3", f'[ "$1" != -c ] && exec {sys.executable} "$@"\n')
    return {"PATH": str(folder), "PYENV_ROOT": str(tmp_path / "no_pyenv"), "NPU_SHIM_CACHE": str(tmp_path / "cache")}


# --- tests/run.sh --------------------------------------------------------------
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_run_sh_says_which_interpreter_is_missing_and_how_to_get_it(
    repo_root: pathlib.Path, no_python: dict[str, str], jobs: str
) -> None:
    done = bash(repo_root / "tests/run.sh", "--env", "tf115", "--env", "tf26", "--jobs", jobs, **no_python)
    assert done.returncode == 1
    for version, name in (("3.7", "tf115"), ("3.9", "tf26")):
        assert f"{name}: NOT RUN: no Python {version}: tried python{version}" in done.stdout
        assert f"pyenv install {version}" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 passed, 2 failed"


def test_run_sh_does_not_take_a_pyenv_shim_which_cannot_run_for_an_interpreter(
    repo_root: pathlib.Path, no_python: dict[str, str]
) -> None:
    program(pathlib.Path(no_python["PATH"]) / "python3.7", 'echo "not installed" >&2; exit 127\n')
    done = bash(repo_root / "tests/run.sh", "--env", "tf115", **no_python)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "0 passed, 1 failed")
    assert "no Python 3.7" in done.stdout


def test_run_sh_does_not_count_a_half_made_environment_as_made(
    repo_root: pathlib.Path, no_python: dict[str, str]
) -> None:
    # This Python makes the folder and then fails, as one that is interrupted would.
    program(
        pathlib.Path(no_python["PATH"]) / "python3.7",
        ('case "$1" in -c) echo 3.7;; -VV|-V) echo "Python 3.7.0";; -m) mkdir -p "$3/bin"; exit 1;; esac\n'),
    )
    for _ in range(2):
        done = bash(repo_root / "tests/run.sh", "--env", "tf115", **no_python)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "0 passed, 1 failed")
        assert "== tf115: making " in done.stdout
        assert "NOT RUN: could not install tests/envs/tf115.txt" in done.stdout


@pytest.mark.parametrize(
    "args, text",
    [
        (
            ["--env", "tf114"],
            "--env tf114: no such environment; there are tf215 tf115 tf26 tf221 mpi mpi_debian mpich reports",
        ),
        (["--env"], "--env needs a name"),
        (["--jobs", "0"], "--jobs needs the number of suites to run"),
        (["--suite"], "--suite needs a name from the table in tests/suites.py"),
        (["--suite", "backend"], "--suite backend: no such suite; there are blocks card card_recordings cli "),
        (["--suite", "samples", "tests/ops"], "leave out either --suite or the paths"),
        (["--suite", "vendor", "--env", "tf221"], "no suite of that name or column runs in tf221"),
    ],
)
def test_run_sh_explains_wrong_usage(args: list[str], text: str, repo_root: pathlib.Path) -> None:
    done = bash(repo_root / "tests/run.sh", *args)
    assert done.returncode == 2
    assert text in done.stdout


def suites_of(repo_root: pathlib.Path, *options: str) -> list[tuple[str, str, list[str]]]:
    """Environment, name and tests of each suite that run.sh would run."""
    done = bash(repo_root / "tests/run.sh", *options, "--list")
    assert done.returncode == 0
    words = [line.split(" ") for line in done.stdout.splitlines()]
    return [(env, suite, tests) for env, suite, *tests in words]


def files_of(repo_root: pathlib.Path, tests: list[str]) -> set[str]:
    """The test files that pytest collects from such arguments."""
    found: set[str] = set()
    for word in tests:
        if word.startswith("tests/"):
            places = list(repo_root.glob(word))
            assert places, f"{word} is not there"
            files = [file for place in places for file in (place.rglob("test_*.py") if place.is_dir() else [place])]
            found.update(file.relative_to(repo_root).as_posix() for file in files)
    return found


def test_run_sh_runs_every_test_somewhere(repo_root: pathlib.Path) -> None:
    there = {path.relative_to(repo_root).as_posix() for path in (repo_root / "tests").rglob("test_*.py")}
    for column in ("--all", "--nightly"):
        suites = suites_of(repo_root, column)
        assert len({(env, suite) for env, suite, _ in suites}) == len(suites)  # the names of their results
    suites = suites_of(repo_root, "--all", "--nightly")
    ran = [file for _, _, tests in suites for file in files_of(repo_root, tests)]
    assert set(ran) == there


def test_run_sh_runs_every_nightly_test_at_night(repo_root: pathlib.Path) -> None:
    marked = {
        path.relative_to(repo_root).as_posix()
        for path in (repo_root / "tests").rglob("test_*.py")
        if "mark.nightly" in path.read_text(encoding="utf-8")
    }
    ran = [file for _, _, tests in suites_of(repo_root, "--nightly") for file in files_of(repo_root, tests)]
    assert marked and marked <= set(ran)


def test_run_sh_runs_what_depends_on_tensorflow_in_every_environment(repo_root: pathlib.Path) -> None:
    suites = suites_of(repo_root, "--all", "--nightly")
    reports = {"tests/browser", "tests/schemas", "tests/site"}
    once = {"tests/types", "tests/once", "tests/install", "tests/convert", "tests/corpus", "tests/robustness"}
    versions = ("tf115", "tf26", "tf215", "tf221")
    ran = {env: {file for e, _, tests in suites if e == env for file in files_of(repo_root, tests)} for env in versions}
    for file in set().union(*ran.values()):
        if file.rsplit("/", 1)[0] not in reports | once:
            some = (
                file.endswith(("test_blocks.py", "test_dropout.py", "test_faults.py", "test_slurm.py"))
                and "ops" not in file
            )
            if file == "tests/card/test_two_cards.py":
                needed: tuple[str, ...] = ("tf115", "tf26")  # those that the vendor's packages support
            else:
                needed = ("tf115", "tf215") if some else versions
            for env in needed:
                assert file in ran[env], f"{file} does not run in {env}"


def test_run_sh_limits_the_matrix_to_the_environments_given(repo_root: pathlib.Path) -> None:
    every = suites_of(repo_root, "--all")
    assert suites_of(repo_root, "--env", "tf26") == [suite for suite in every if suite[0] == "tf26"]
    default = suites_of(repo_root)
    assert {env for env, _, _ in default} == {"tf215"}
    assert {suite for _, suite, _ in default} == {
        "dumps",
        "fast",
        "convert",
        "types",
        "shim",
        "ops",
        "card",
        "smoke",
    }
    assert suites_of(repo_root, "--env", "tf115", "--env", "tf26", "tests/ops") == [
        ("tf115", "chosen", []),
        ("tf26", "chosen", []),
    ]


@pytest.mark.parametrize(
    ("path", "env"),
    [
        ("tests/cli", "tf215"),
        ("tests/distributed/test_faults.py", "tf215"),
        ("tests/mpi", "mpi"),
        ("tests/vendor", "vendor"),
        ("tests/schemas", "reports"),
    ],
)
def test_run_sh_runs_a_path_where_its_suite_runs(path: str, env: str, repo_root: pathlib.Path) -> None:
    assert suites_of(repo_root, path) == [(env, "chosen", [])]


def test_run_sh_limits_the_matrix_to_the_suites_given(repo_root: pathlib.Path) -> None:
    for columns in (["--all"], ["--nightly"], ["--all", "--nightly"]):
        every = suites_of(repo_root, *columns)
        assert suites_of(repo_root, *columns, "--suite", "cli") == [suite for suite in every if suite[1] == "cli"]
    assert suites_of(repo_root, "--suite", "cli") == [suite for suite in every if suite[1] == "cli"]
    assert {suite[:2] for suite in suites_of(repo_root, "--suite", "dumps", "--suite", "cli", "--env", "tf26")} == {
        ("tf26", "dumps"),
        ("tf26", "cli"),
    }


# --- benchmarks/run.sh ---------------------------------------------------------
def test_every_benchmark_that_is_listed_has_its_place_in_the_results(repo_root: pathlib.Path) -> None:
    done = bash(repo_root / "benchmarks/run.sh", "--list")
    listed = dict(line.split(": ") for line in done.stdout.splitlines())
    page = (repo_root / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    for name, envs in listed.items():
        assert (repo_root / "benchmarks" / (name + ".py")).is_file()
        assert all((repo_root / "tests/envs" / (env + ".txt")).is_file() for env in envs.split())
        assert "<!-- end of {} -->".format(name.replace("_", " ")) in page
    assert re.findall(r"made by benchmarks/(\w+)\.py -->", page) and set(
        re.findall(r"made by benchmarks/(\w+)\.py -->", page)
    ) == set(listed)


@pytest.mark.parametrize(
    "args, text",
    [
        (["nothing"], "nothing: no such benchmark; there are "),
        (["--env"], "--env  needs the name of an environment: one of tf115 "),
        (["--env", "tf1", "recording"], "--env tf1 needs the name of an environment"),
    ],
)
def test_benchmarks_run_sh_explains_wrong_usage(repo_root: pathlib.Path, args: list[str], text: str) -> None:
    done = bash(repo_root / "benchmarks/run.sh", *args)
    assert done.returncode == 2 and text in done.stdout


def test_benchmarks_run_sh_names_what_it_could_not_run(repo_root: pathlib.Path, no_python: dict[str, str]) -> None:
    done = bash(repo_root / "benchmarks/run.sh", "--quick", "--env", "tf26", "recording", **no_python)
    assert done.returncode == 1 and "no Python 3.9: tried" in done.stdout
    assert done.stdout.splitlines()[-1] == "failed: recording in tf26"


# --- tests/envs/reports.sh -----------------------------------------------------
@pytest.fixture
def reports_env(tmp_path: pathlib.Path) -> pathlib.Path:
    """An environment with nothing to install from the network but Chromium: its pip finds every package."""
    folder = tmp_path / "reports"
    (folder / "bin").mkdir(parents=True)
    program(folder / "bin" / "python", "exit 0\n")
    (folder / "sarif").mkdir()
    (folder / "sarif" / ".complete").touch()
    return folder


def reports_sh(
    repo_root: pathlib.Path, no_python: dict[str, str], folder: pathlib.Path, user: int
) -> subprocess.CompletedProcess[str]:
    tools = pathlib.Path(no_python["PATH"])
    program(tools / "id", f"echo {user}\n")
    (tools / "ln").symlink_to("/bin/ln")
    return bash(repo_root / "tests/envs/reports.sh", str(folder), **no_python)


def test_without_a_browser_and_without_root_it_says_what_to_install(
    repo_root: pathlib.Path, no_python: dict[str, str], reports_env: pathlib.Path
) -> None:
    program(pathlib.Path(no_python["PATH"]) / "apt-get", "exit 100\n")
    done = reports_sh(repo_root, no_python, reports_env, 1000)
    assert (done.returncode, done.stdout.count("\n")) == (1, 1)
    assert "'apt-get install chromium' as root" in done.stdout


def test_without_a_browser_its_tests_count_as_failed(repo_root: pathlib.Path, no_python: dict[str, str]) -> None:
    tools = pathlib.Path(no_python["PATH"])
    program(tools / "id", "echo 1000\n")
    for name in ("cp", "ln"):
        (tools / name).symlink_to("/bin/" + name)
    program(
        tools / "python3.11",
        (
            'case "$1$2" in -c*) echo 3.11;; -V*) echo "Python 3.11.0";;'
            ' -mvenv) mkdir -p "$3/bin"; cp "$0" "$3/bin/python";; esac\n'
        ),
    )
    done = bash(repo_root / "tests/run.sh", "tests/browser", **no_python)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "0 passed, 1 failed")
    assert "\nreports: NOT RUN: no Chromium on the PATH" in done.stdout


def test_as_root_a_browser_is_installed(
    repo_root: pathlib.Path, no_python: dict[str, str], reports_env: pathlib.Path
) -> None:
    tools = pathlib.Path(no_python["PATH"])
    program(
        tools / "apt-get",
        'echo "apt $*" >&2; case "$1" in install)'
        ' echo "#!/bin/sh" > %s; chmod +x %s;; esac\n' % ((tools / "chromium",) * 2),
    )
    (tools / "chmod").symlink_to("/bin/chmod")
    done = reports_sh(repo_root, no_python, reports_env, 0)
    assert done.returncode == 0, done.stdout
    assert "apt update" in done.stdout and "apt install -q -y --no-install-recommends chromium" in done.stdout
    assert (reports_env / "bin" / "chromium").resolve() == tools / "chromium"


def test_an_installed_browser_by_another_name_is_taken(
    repo_root: pathlib.Path, no_python: dict[str, str], reports_env: pathlib.Path
) -> None:
    chrome = program(pathlib.Path(no_python["PATH"]) / "google-chrome", "exit 0\n")
    assert reports_sh(repo_root, no_python, reports_env, 1000).returncode == 0
    assert (reports_env / "bin" / "chromium").resolve() == chrome


# --- samples/quickstart.sh -----------------------------------------------------
def test_quickstart_says_what_to_do_without_python(repo_root: pathlib.Path, no_python: dict[str, str]) -> None:
    done = bash(repo_root / "samples/quickstart.sh", **no_python)
    assert done.returncode == 1
    assert "cannot run 'python3.11'" in done.stdout
    assert "PYTHON=/path/to/python3.11" in done.stdout


def test_quickstart_refuses_a_python_which_has_no_tensorflow_with_estimator(
    repo_root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    python = program(tmp_path / "python", "echo 3.13\n")
    done = bash(repo_root / "samples/quickstart.sh", PYTHON=str(python))
    assert done.returncode == 1
    assert "is Python 3.13" in done.stdout and "PYTHON=/path/to/python3.11" in done.stdout


def test_quickstart_leaves_a_venv_alone_which_it_did_not_make(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for name in (
        "samples/quickstart.sh",
        "setup.py",
        "pyproject.toml",
        "npu_shim/__init__.py",
        "tools/convert_tf2npu/main.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((repo_root / name).read_bytes())
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "of_mine").write_text("precious")
    python = program(tmp_path / "python", "echo 3.11\n")
    done = bash(tmp_path / "samples/quickstart.sh", PYTHON=str(python))
    assert done.returncode == 1
    assert ".venv exists, was not made by this script" in done.stdout
    assert (tmp_path / ".venv" / "of_mine").read_text() == "precious"


# --- samples/train_1p.sh, samples/train_8p.sh ----------------------------------
@pytest.mark.parametrize("script", ["train_1p.sh", "train_8p.sh"])
def test_the_training_scripts_name_the_samples(script: str, repo_root: pathlib.Path) -> None:
    folders = sorted(path.parent for path in (repo_root / "samples").glob("*/expected_npu.py"))
    assert len(folders) == 7
    names = " ".join(folder.name for folder in folders)
    for arguments, given in ([], ""), (["--steps=5"], "--steps=5"), (["ranktables"], "ranktables"):
        done = bash(repo_root / "samples" / script, *arguments)
        assert (done.returncode, done.stdout) == (2, f"{script}: no sample '{given}'. Name one: {names}\n")
    for folder in folders:  # each sample's own script is nothing but a call of it
        assert (folder / script).read_text().splitlines() == [
            "#!/usr/bin/env bash",
            f'exec bash "$(dirname "${{BASH_SOURCE[0]}}")/../{script}" {folder.name} "$@"',
        ]


@pytest.mark.parametrize("sample", SAMPLES)
def test_train_1p_sets_the_variables_passes_the_flags_and_the_exit_code(
    sample: str, repo_root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    python = program(
        tmp_path / "python",
        ('echo "args $*"; echo "$JOB_ID/$RANK_ID/$RANK_SIZE/$ASCEND_DEVICE_ID/${RANK_TABLE_FILE-none}"\nexit 7\n'),
    )
    done = bash(
        repo_root / "samples" / sample / "train_1p.sh",
        "--steps=5",
        "--model_dir=a b",
        PYTHON=str(python),
        LOG_DIR=str(tmp_path / "logs"),
        ASCEND_DEVICE_ID="3",
        RANK_TABLE_FILE="/left/over.json",
        JOB_ID="job7",
        RANK_SIZE="8",
    )
    assert done.returncode == 7
    log = (tmp_path / "logs" / "train_3.log").read_text().splitlines()
    assert log == [
        f"args {repo_root / 'samples' / sample / 'expected_npu.py'} --steps=5 --model_dir=a b",
        "job7/0/1/3/none",
    ]


@pytest.mark.parametrize("sample", SAMPLES)
def test_an_original_knows_nothing_of_an_npu(sample: str, repo_root: pathlib.Path) -> None:
    text = (repo_root / "samples" / sample / "original.py").read_text(encoding="utf-8").lower()
    assert [word for word in ("npu_", "npu ", "ascend", "hccl") if word in text] == []
    assert 80 <= len(text.splitlines()) <= 150
