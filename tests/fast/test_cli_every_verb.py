"""All verbs of ``npu-shim`` with wrong usage, files, streams and packages. A new verb is tested by being there."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Sequence

import pytest

from npu_shim import cli

VERBS = cli.verb_names()
VERBS_WITH_PROGRESS = {"convert", "diagnose", "launch", "migrate", "run", "verify"}
SCRIPTS = {"observe", "run"}  # their exceptions are those of the user's script
WITHOUT_INPUT = {"doctor", "options", "ranktable"}  # no file is needed for their examples
SCRIPT = "import tensorflow as tf\n"

# The options that write a file or a folder, with what else the verb needs. {bad} cannot be written.
OUTPUTS = {
    "assess": ["--json {bad} train.py", "--html {bad} train.py"],
    "convert": ["-i train.py -o {bad}", "-i train.py -r {bad}"],
    "diagnose": ["--report {bad} --against d train.py"],
    "doctor": [],
    "dumps": ["compare d d --report {bad}", "overflow d --report {bad}"],
    "export": ["d --out {bad}"],
    "launch": [
        "--ranks 2 --log-dir {bad} train.py",
        "--ranks 2 --tensorboard {bad} train.py",
        "--ranks 2 --profile {bad} train.py",
    ],
    "migrate": ["--output {bad} train.py", "--output o --report {bad} train.py"],
    "observe": ["--output {bad} train.py"],
    "options": [],
    "profile": ["d --json {bad}", "d --html {bad}"],
    "ranktable": ["make --hosts 127.0.0.1:2 --output {bad}"],
    "run": [
        "--observe {bad} train.py",
        "--dump {bad} train.py",
        "--profile {bad} train.py",
        "--numerics {bad} train.py",
        "--tensorboard {bad} train.py",
    ],
    "verify": ["--report {bad} train.py", "--record {bad} train.py", "--record r --dump {bad} train.py"],
}
MISSING_BY_DAY = {  # each is a process of its own
    ("assess", "tensorflow"),
    ("export", "tensorflow"),
    ("verify", "tensorflow"),
    ("assess", "numpy"),
    ("dumps", "numpy"),
}
WRITING = re.compile(
    r"^ +(?:-\w[^,\n]*, )*--(json (?=FILE)|html|report|out|output(?! \{)|observe|log-dir|tensorboard|profile|dump|numerics|record)\b",
    re.M,
)


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANK_TABLE_FILE", raising=False)
    return tmp_path


def run(arguments: Sequence[str]) -> int:
    try:
        return cli.main(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)


def one_line(text: str) -> str:
    assert text.count("\n") == 1 and text.endswith("\n"), text
    return text


def example(verb: str) -> list[str]:
    words = shlex.split(cli.verb(verb).EXAMPLE)
    assert words[:2] == ["npu-shim", verb]
    return words[1:]


def test_each_verb_is_in_a_group() -> None:
    assert {cli.verb(verb).GROUP for verb in VERBS} == set(cli.GROUPS)


@pytest.mark.parametrize("verb", VERBS)
def test_help_ends_with_an_example(verb: str, capsys: Any) -> None:
    assert run([verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert verb == "convert" or "example: " + cli.verb(verb).EXAMPLE in " ".join(shown.split())


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_option_is_one_line(verb: str, folder: pathlib.Path, capsys: Any) -> None:
    parts = {"dumps": ["compare"], "ranktable": ["make"]}.get(verb, [])
    assert run([verb, *parts, "--nonsense"]) == 2
    assert "unknown option '--nonsense'" in one_line(capsys.readouterr().err)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ("verify --rank=2 a.py", "unknown option '--rank'. Did you mean --ranks?"),
        ("launch --rnaks 2 a.py", "unknown option '--rnaks'. Did you mean --ranks?"),
        ("run --half=flot16 a.py", "invalid choice: 'flot16'. Did you mean float16 or bfloat16?"),
        ("dumps compar", "invalid choice: 'compar'. Did you mean compare? The choices are compare, overflow."),
        ("dumps compare d d --stpe 1", "npu-shim dumps compare: error: unknown option '--stpe'. Did you mean --step?"),
        ("options -x", "unknown option '-x'. List the options with npu-shim options --help."),
        ("doctor now", "unexpected argument 'now'. See npu-shim doctor --help."),
        ("run --dump d --dump-steps 1-99999999999 a.py", "1-99999999999 is not allowed: give 1 to 100 steps"),
        ("dumps compare d d --step x", "'x' is not allowed: it must be an integer of at least 0"),
        ("export d -o e --range 0 nan", "'nan' is not allowed: it must be a number"),
        ("export d -o e --dynamic-batch 0 8", "'0' is not allowed: it must be an integer of at least 1"),
        ("assess", "the following arguments are required: script. See npu-shim assess --help."),
        ("convert -i a.py --outptu b", "unknown option '--outptu'. Did you mean --output?"),
        ("convert -i a.py -d horovd", "Did you mean horovod?"),
    ],
)
def test_a_wrong_argument_is_named(arguments: str, words: str, folder: pathlib.Path, capsys: Any) -> None:
    assert run(arguments.split()) == 2
    assert words in one_line(capsys.readouterr().err)


@pytest.mark.parametrize("value", ["0", "-3", "two", "1.5", "", "100000"])
def test_the_number_of_ranks_is_checked_in_the_same_way(value: str, folder: pathlib.Path, capsys: Any) -> None:
    (folder / "train.py").write_text(SCRIPT)
    checked = 0
    for verb in VERBS:
        run([verb, "--help"])
        if "--ranks" in capsys.readouterr().out:
            checked += 1
            assert run([verb, f"--ranks={value}", "train.py"]) == 2
            allowed = "1 to 65536" if verb == "launch" else "2 to 1024"
            assert f"{value!r} is not allowed: it must be an integer from {allowed}" in one_line(
                capsys.readouterr().err
            )
    assert checked >= 4
    assert run(["launch", "--ranks", "2000", "train.py"]) == 2  # on one host
    assert "this host starts at most 1024 ranks." in one_line(capsys.readouterr().err)


@pytest.mark.parametrize("verb", sorted(set(VERBS) - WITHOUT_INPUT))
def test_a_missing_file_has_one_wording(verb: str, folder: pathlib.Path, capsys: Any) -> None:
    assert run(example(verb)) == 2
    shown = one_line(capsys.readouterr().err)
    assert re.search(r"error: (file|folder|file or folder) not found: [\w.]+", shown), shown
    assert list(folder.iterdir()) == []


def test_each_option_that_writes_is_in_the_table(capsys: Any) -> None:
    for verb in VERBS:
        parts: list[list[str]] = {"dumps": [["compare"], ["overflow"]], "ranktable": [["make"]]}.get(verb, [[]])
        for part in parts:
            run([verb, *part, "--help"])
            found = {each.group(1).strip() for each in WRITING.finditer(capsys.readouterr().out)}
            known = {name for line in OUTPUTS[verb] for name in re.findall(r"--([\w-]+) \{bad\}", line)}
            assert verb == "convert" or found <= known, (verb, found - known)


@pytest.mark.parametrize("verb, line", [(verb, line) for verb, lines in OUTPUTS.items() for line in lines])
@pytest.mark.parametrize("bad", ["train.py/x", "/proc/x", "/proc/no/x"])
def test_an_output_that_cannot_be_written_ends_before_the_run(
    verb: str, line: str, bad: str, folder: pathlib.Path, capsys: Any
) -> None:
    (folder / "train.py").write_text("raise AssertionError('the script has run')\n")
    (folder / "d").mkdir()
    assert run([verb, *line.format(bad=bad).split()]) == 2
    assert bad in one_line(capsys.readouterr().err)


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_behind_the_output_is_one_line(verb: str, repo_root: pathlib.Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "npu_shim", verb, "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(repo_root),
        )
    assert done.returncode == 2
    assert "No space left on device" in one_line(done.stderr)


def test_the_list_of_verbs_on_a_full_disk(repo_root: pathlib.Path) -> None:
    with open("/dev/full", "wb") as full:
        for arguments in ([], ["--version"], ["options"]):
            done = subprocess.run(
                [sys.executable, "-m", "npu_shim", *arguments],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                env=environment(repo_root),
            )
            assert done.returncode == 2 and "cannot write the output" in one_line(done.stderr)


@pytest.mark.parametrize("verb", sorted(set(VERBS) - SCRIPTS))
@pytest.mark.parametrize(
    "error, code, words",
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (FileNotFoundError(2, "No such file or directory", "data.csv"), 2, "error: file not found: data.csv."),
        (PermissionError(13, "Permission denied", "data.csv"), 2, "error: data.csv: Permission denied."),
        (ModuleNotFoundError("No module", name="numpy"), 2, "error: NumPy is missing for "),
        (ModuleNotFoundError("No module", name="tensorflow.python"), 2, "error: TensorFlow is missing for "),
    ],
    ids=["Ctrl-C", "file", "permission", "NumPy", "TensorFlow"],
)
def test_an_exception_ends_a_verb_in_one_line(
    verb: str, error: BaseException, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def fail(arguments: list[str]) -> int:
        raise error

    monkeypatch.setattr(cli.verb(verb), "main", fail)
    assert run([verb]) == code
    assert one_line(capsys.readouterr().err).startswith(f"npu-shim {verb}: {words}")


@pytest.mark.parametrize("verb", sorted(set(VERBS) - SCRIPTS))
def test_a_fault_of_npu_shim_is_2_with_its_traceback(verb: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(cli.verb(verb), "main", lambda arguments: 1 // 0)
    assert run([verb]) == 2
    shown = capsys.readouterr().err
    assert "ZeroDivisionError" in shown and shown.splitlines()[-1].startswith(f"npu-shim {verb}: error: internal error")


@pytest.mark.parametrize(
    "arguments, waits",
    [
        (["doctor"], "import time; open('ready', 'w').close(); time.sleep(600)"),
        (["launch", "--ranks", "2", "train.py"], ""),
        (["verify", "train.py"], ""),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_ctrl_c_is_one_line(arguments: list[str], waits: str, folder: pathlib.Path, repo_root: pathlib.Path) -> None:
    (folder / "train.py").write_text("import time\nopen('ready', 'w').close()\ntime.sleep(600)\n")
    (folder / "tensorflow.py").write_text(waits)  # doctor imports it in another process
    environ = environment(repo_root)
    environ["PYTHONPATH"] = os.pathsep.join([str(folder), environ["PYTHONPATH"]])
    process = subprocess.Popen(
        [sys.executable, "-m", "npu_shim", *arguments],
        cwd=str(folder),
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    last = threading.Timer(120, process.kill)
    last.start()
    while not (folder / "ready").exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate()
    last.cancel()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    words = "SIGINT: forwarding it to all ranks" if arguments[0] == "launch" else "interrupted"
    assert f"npu-shim {arguments[0]}: {words}" in err


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_with_progress_are_quiet_if_they_are_asked(verb: str, capsys: Any) -> None:
    run([verb, "--help"])
    assert ("-q, --quiet" in capsys.readouterr().out) == (verb in VERBS_WITH_PROGRESS)


@pytest.mark.parametrize(
    "verb, hidden",
    [
        pytest.param(verb, hidden, marks=[] if (verb, hidden) in MISSING_BY_DAY else pytest.mark.nightly)
        for verb in VERBS
        for hidden in ("tensorflow", "numpy")
    ],
)
def test_a_missing_package_is_no_traceback(
    verb: str, hidden: str, folder: pathlib.Path, repo_root: pathlib.Path
) -> None:
    for name in ("train.py", "train_npu.py"):
        (folder / name).write_text(SCRIPT)
    for name in ("checkpoints", "prof", "card_dumps", "cpu_dumps", "recording", "src"):
        (folder / name).mkdir()
    code = (
        f"import sys\nsys.modules[{hidden!r}] = None\nfrom npu_shim.cli import main\nsys.exit(main({example(verb)!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=str(folder),
        env={**environment(repo_root), "NPU_SHIM_FALLBACK": "silent"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if verb in ("run", "launch"):  # the traceback is the script's own, as with Python
        assert hidden == "numpy" or "import of tensorflow halted" in done.stdout or done.returncode == 0
        return
    assert "Traceback" not in done.stdout, done.stdout
    if hidden == "tensorflow" and verb in ("assess", "export", "verify"):
        assert done.returncode == 2 and "error: TensorFlow is missing for " in one_line(done.stdout)
        assert "Install it with python -m pip install 'tensorflow" in done.stdout


def environment(repo_root: pathlib.Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(repo_root), str(repo_root / "tools")])}
