"""A run that is killed leaves all or nothing, and the next one takes away what it left."""

from __future__ import annotations

import builtins
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any, Callable

import pytest
from convert_tf2npu.files import staging
from convert_tf2npu.files.errors import UsageError
from convert_tf2npu.files.staging import Staging
from convert_tf2npu.files.writer import staging_in_place
from convert_tf2npu.main import main

pytestmark = [pytest.mark.once, pytest.mark.slow]

SCRIPT = "import tensorflow as tf\ntf.Session()\n"
MIGRATED = "import tensorflow as tf\nfrom npu_shim.npu_init import *\ntf.Session(config=npu_config_proto())\n"
CALLS = ["mkdir", "replace", "rename", "link", "unlink", "rmdir", "chmod", "symlink"]


def content(folder: pathlib.Path) -> dict[str, str]:
    """Return the contents of a folder, with hidden files and links."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        found[name] = (
            "to " + os.readlink(str(path)) if path.is_symlink() else "folder" if path.is_dir() else path.read_text()
        )
    return found


def killed_at(number: int, arguments: list[str]) -> bool:
    """Run the command in a process that is killed right before its so-manieth call that writes; False where it has
    fewer of them."""
    child = os.fork()
    if child == 0:
        try:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            left = [number]

            def counted(function: Callable[..., Any]) -> Callable[..., Any]:
                def call(*args: Any, **more: Any) -> Any:
                    if function is not builtins_open or "w" in str(args[1:2]):
                        left[0] -= 1
                        if left[0] < 0:
                            os.kill(os.getpid(), signal.SIGKILL)
                    return function(*args, **more)

                return call

            builtins_open = builtins.open
            for name in CALLS:
                setattr(os, name, counted(getattr(os, name)))
            builtins.open = counted(builtins_open)  # type: ignore[assignment]
            main(arguments)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.fixture
def source(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "here" / "src"
    (folder / "part").mkdir(parents=True)
    (folder / "part" / "train.py").write_text(SCRIPT)
    (folder / "train.py").write_text(SCRIPT + "# more\n")
    (folder / "words.txt").write_text("words\n")
    (folder / "link").symlink_to("words.txt")
    return folder


def everywhere(run: Callable[[int], bool]) -> int:
    """Kill a run at each of its writing calls, from the first to the last; how many there are."""
    number = 0
    while run(number):
        number += 1
        assert number < 500
    assert number > 5
    return number


def test_a_new_folder_is_whole_or_not_there(source: pathlib.Path) -> None:
    out = source.parent / "out"
    states = set()

    def run(number: int) -> bool:
        killed = killed_at(number, ["-i", str(source), "-o", str(out), "-r", str(source.parent / "reports")])
        if killed:
            states.add(out.exists())
            assert not out.exists() or set(content(out)) == set(content(source))
            assert main(["-i", str(source), "-o", str(out), "-r", str(source.parent / "reports")]) == 0
        assert sorted(p.name for p in source.parent.iterdir()) == ["out", "reports", "src"]
        assert (out / "part" / "train.py").read_text() == MIGRATED
        for folder in (out, source.parent / "reports"):
            staging.remove_tree(str(folder))
        return killed

    everywhere(run)
    assert states == {True, False}


@pytest.mark.parametrize("in_place", [False, True], ids=["into a folder with files", "in place"])
def test_files_are_all_replaced_or_none(in_place: bool, source: pathlib.Path) -> None:
    out = source if in_place else source.parent / "out"
    mine = {"train.py": SCRIPT + "# mine\n", "notes.txt": "mine\n"}
    if not in_place:
        out.mkdir()
    for name, text in mine.items():
        (out / name).write_text(text)
    before, states = content(out), []

    def run(number: int) -> bool:
        killed = killed_at(number, ["-i", str(source), "--force"] + (["--in-place"] if in_place else ["-o", str(out)]))
        place = staging_in_place(str(out)) if in_place else Staging.beside(str(out))
        place.recover()
        now = content(out)
        states.append(now == before)
        assert now == before or (now["part/train.py"], now["train.py"], now["notes.txt"]) == (
            MIGRATED,
            MIGRATED + ("# mine\n" if in_place else "# more\n"),
            "mine\n",
        ), number
        assert sorted(p.name for p in source.parent.iterdir()) == ["out", "src"][in_place:]
        for name in now:
            if name not in before and now[name] != "folder":
                (out / name).unlink()
        if (out / "part").exists() and "part" not in before:
            (out / "part").rmdir()
        for name, text in before.items():
            if not text.startswith(("to ", "folder")):
                (out / name).write_text(text)
        return killed

    everywhere(run)
    assert states[0] and not states[-1]


def test_an_own_folder_by_that_name_is_not_touched(source: pathlib.Path, capsys) -> None:
    own = source.parent / (".out" + staging.SUFFIX)
    for name in ("notes.txt", "lock"):
        own.mkdir()
        (own / name).write_text("mine\n")
        assert main(["-i", str(source), "-o", str(source.parent / "out")]) == 2
        assert "was not created by this tool" in capsys.readouterr().err
        assert content(own) == {name: "mine\n"} and not (source.parent / "out").exists()
        staging.remove_tree(str(own))
    own.symlink_to(source)
    assert main(["-i", str(source), "-o", str(source.parent / "out")]) == 2
    assert own.is_symlink() and (source / "train.py").exists()


def test_a_second_run_to_the_same_folder_is_refused_as_long_as_the_first_goes_on(source, capsys) -> None:
    out = source.parent / "out"
    with Staging.beside(str(out)):
        assert main(["-i", str(source), "-o", str(out)]) == 2
        error = capsys.readouterr().err
        assert f"another run is writing to {out} (process {os.getpid()}). Wait until it ends" in error
        assert len(error.splitlines()) == 1 and not out.exists()
        assert main(["-i", str(source), "-o", str(source.parent / "other")]) == 0
    assert main(["-i", str(source), "-o", str(out)]) == 0


def test_many_runs_at_once_leave_one_whole_result(source: pathlib.Path) -> None:
    other = source.parent / "src2"
    other.mkdir()
    (other / "train.py").write_text(SCRIPT + "# other\n")
    tools = str(pathlib.Path(staging.__file__).parents[2])
    for _ in range(3):
        runs = [
            subprocess.Popen(
                [sys.executable, "-m", "convert_tf2npu.main", "-i", str(which), "-o", str(source.parent / "out")],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=dict(os.environ, PYTHONPATH=tools),
            )
            for which in (source, other, source, other)
        ]
        errors = [run.communicate()[1].decode() for run in runs]
        assert {run.returncode for run in runs} <= {0, 2} and 0 in [run.returncode for run in runs], errors
        assert all(len(error.splitlines()) == (run.returncode == 2) for run, error in zip(runs, errors)), errors
        found = content(source.parent / "out")
        assert found == content_of(source) or found == content_of(other)
        assert sorted(p.name for p in source.parent.iterdir()) == ["out", "src", "src2"]
        staging.remove_tree(str(source.parent / "out"))


@pytest.mark.parametrize("moment", ["before its lock", "before it holds the lock"])
def test_a_run_whose_new_folder_another_takes_for_a_dead_ones_ends_with_one_error(
    moment: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = Staging.beside(str(tmp_path / "out"))
    if moment == "before its lock":
        made = os.mkdir
        monkeypatch.setattr(os, "mkdir", lambda path, mode: (made(path, mode), os.rmdir(path)))
    else:
        monkeypatch.setattr(fcntl, "flock", _held)
    with pytest.raises(UsageError, match="another run is writing to"), begun:
        raise AssertionError


def _held(*_: object) -> None:
    raise BlockingIOError


def content_of(folder: pathlib.Path) -> dict[str, str]:
    """Return the migrated form of a source."""
    return {name: text.replace(SCRIPT, MIGRATED) for name, text in content(folder).items()}


def test_changes_after_a_killed_run_are_not_lost(source: pathlib.Path, capsys) -> None:
    calls = 0
    while True:  # to the moment at which one file is replaced and the other is not
        assert killed_at(calls, ["-i", str(source), "--in-place", "--force"])
        texts = [(source / name).read_text() for name in ("train.py", "part/train.py")]
        if len({text.replace("# more\n", "") for text in texts}) == 2:
            break
        staging_in_place(str(source)).recover()
        calls += 1
    (changed,) = [name for name in ("train.py", "part/train.py") if "npu_config_proto" in (source / name).read_text()]
    (source / changed).write_text("# my work\n")
    assert main(["-i", str(source), "--in-place", "--force"]) == 2
    error = capsys.readouterr().err
    assert f"{source / changed} was changed after a killed run. Its old content is in " in error
    kept = error.split("old content is in ")[1].split(". Restore")[0]
    assert SCRIPT in pathlib.Path(kept).read_text() and (source / changed).read_text() == "# my work\n"
    staging.remove_tree(error.split("then remove ")[1].strip())
    (source / staging.SUFFIX / "moves").unlink()
    assert main(["-i", str(source), "--in-place", "--force"]) == 0
    assert not (source / staging.SUFFIX).exists()


def test_a_run_left_behind_in_a_source_is_no_part_of_it(source: pathlib.Path, capsys) -> None:
    with staging_in_place(str(source)) as place:
        os.mkdir(place.new)
        (source / staging.SUFFIX / "new" / "0").write_text(SCRIPT)
        assert main(["-i", str(source), "-o", str(source.parent / "out")]) == 0
    assert not (source.parent / "out" / staging.SUFFIX).exists()
    assert f"not part of the migration: {staging.SUFFIX}" in capsys.readouterr().out


def started(source: pathlib.Path, *more: str) -> subprocess.Popen[bytes]:
    """The command with two processes on so many files that it can be ended in the middle."""
    for number in range(300):
        (source / (f"a{number}.py")).write_text(SCRIPT * 120)
    tools = str(pathlib.Path(staging.__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-m", "convert_tf2npu.main", "-i", str(source), "-o", str(source.parent / "out"), "-j", "2"]
        + list(more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=tools),
        preexec_fn=as_at_a_terminal,
    )


def as_at_a_terminal() -> None:
    """Listens to the signals that whoever runs these tests may have told all of them to ignore."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """The processes that a run has started, as soon as there are any."""
    for _ in range(500):
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if len(children) == 2:
            return [int(child) for child in children]
        time.sleep(0.01)
    raise AssertionError("it has no worker processes")


def is_gone(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_a_worker_that_is_killed_gives_one_clear_error(source: pathlib.Path) -> None:
    run = started(source)
    os.kill(workers_of(run)[0], signal.SIGKILL)
    error = run.communicate(timeout=60)[1].decode()
    assert run.returncode == 2 and len(error.splitlines()) == 1
    assert (
        "a worker process was killed, probably because memory ran out. Nothing was written; try again with -j 1"
        in error
    )
    assert [p.name for p in source.parent.iterdir()] == ["src"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["Ctrl-C", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_all_processes_soon_and_leaves_nothing(number: int, source: pathlib.Path) -> None:
    run = started(source)
    workers = workers_of(run)
    before = time.monotonic()
    os.kill(run.pid, number)
    error = run.communicate(timeout=60)[1].decode()
    assert time.monotonic() - before < 10
    assert run.returncode == 128 + number and "Traceback" not in error, error
    assert all(is_gone(pid) for pid in workers)
    assert [p.name for p in source.parent.iterdir()] == ["src"]


def test_workers_end_with_a_run_that_is_killed(source: pathlib.Path) -> None:
    run = started(source)
    workers = workers_of(run)
    run.kill()
    run.communicate(timeout=60)
    for _ in range(100):
        if all(is_gone(pid) for pid in workers):
            return
        time.sleep(0.1)
    raise AssertionError("processes are left")


def test_a_lock_that_vanishes_is_another_runs(tmp_path: pathlib.Path) -> None:
    place = Staging.beside(str(tmp_path / "out"))
    with place:
        os.unlink(os.path.join(place.path, "lock"))
        with pytest.raises(UsageError, match="was not created by this tool"):
            (tmp_path / (".out" + staging.SUFFIX) / "x").write_text("")
            Staging.beside(str(tmp_path / "out")).recover()
