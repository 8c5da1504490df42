"""The progress of ranks: its lines, the bottom of a terminal, a pipe, and the end of everything."""

from __future__ import annotations

import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Callable

import numpy as np
import pytest

from npu_shim import cli
from npu_shim.distributed.collectives.transport import GroupBackend, Transport
from npu_shim.launching.progress import board
from npu_shim.launching.progress.region import Region
from npu_shim.launching.progress.status import Status, decode, encode
from npu_shim.rehearsal.progress.recording_progress import RecordedRun
from npu_shim.rehearsal.progress.waits import Waits
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.writer import Writer
from tests.terminal import Screen, Terminal

pytestmark = pytest.mark.once

EIGHT = [Status(rank, 100, 9.0, 10.0, 0.09 + 0.03 * (rank == 5), 0.25, 800_000_000) for rank in range(8)]


# --- lines -------------------------------------------------------------------
def test_slowest_rank_is_that_which_waits_least_for_others() -> None:
    lines = board.rank_lines(EIGHT)
    assert lines[0] == "rank 0  step 100  10.0 steps/s  loss 0.25  800 MB"
    assert lines[5] == "rank 5  step 100  10.0 steps/s  loss 0.25  800 MB  slowest by 30 ms a step, 33%"
    assert sum("slowest" in line for line in lines) == 1
    assert board.slowest_rank(EIGHT[:5]) is None and board.slowest_rank(EIGHT[5:6]) is None


def test_rank_that_others_wait_for_is_named_with_its_line() -> None:
    waiting = Status(0, 7, 60.0, 5.0, idle_s=12.0, collective="gradient of w", place="at /a/train.py:50")
    late = Status(1, 7, 60.0, 5.0, idle_s=13.0, place="at /a/data.py:33 in load")
    assert board.rank_lines([waiting, late, Status(2, 7, 60.0, 5.0, idle_s=1.0)]) == [
        "rank 0  step 7  5.0 steps/s  waits for rank 1 for 12 s in gradient of w",
        "rank 1  step 7  5.0 steps/s  no step for 13 s, at data.py:33 in load",
        "rank 2  step 7  5.0 steps/s",
    ]
    assert board.rank_lines([Status(0, idle_s=8.0)]) == ["rank 0  no step yet  for 8 s"]
    assert not board.is_idle(Status(0, 7, rate=0.1, idle_s=60.0))  # a step takes ten seconds


def test_ends_of_ranks_are_shown() -> None:
    ended = [Status(0, 7, 60.0, idle_s=50.0, code=0), Status(1, 7, 60.0, code=137)]
    done = [Status(rank, 7, 60.0, own_step_s=0.1 + 0.1 * rank, code=0) for rank in range(2)]
    assert board.rank_lines(done)[1].endswith("finished after 60 s, slowest by 100 ms a step, 100%")
    assert [line[14:].strip() for line in board.rank_lines(ended)] == [
        "finished after 60 s",
        "ended by SIGKILL",
    ]


@pytest.mark.parametrize("width", [20, 30, 45, 60, 80])
def test_lines_fit_a_narrow_terminal(width: int) -> None:
    lines = board.rank_lines(EIGHT, width)
    assert max(map(len, lines)) <= width and lines[5].startswith("rank 5  step 100")
    assert ("slowest by" in lines[5]) == (width >= 30)


def test_ranks_that_do_not_fit_are_counted_and_the_slowest_is_shown() -> None:
    lines = board.rank_lines(EIGHT, height=4)
    assert [line[:6] for line in lines] == ["rank 0", "rank 1", "rank 5", "and 5 "]
    assert board.rank_lines([]) == []


def test_wide_characters_take_two_columns() -> None:
    assert board.cut_to_width("训练ab", 5) == "训练a"


def test_status_is_one_short_line_and_unknown_fields_are_left_out() -> None:
    status = Status(3, 7, loss=float("inf"), place="x" * 5000, collective="y" * 5000)
    line = encode(status)
    assert line.endswith(b"\n") and line.count(b"\n") == 1 and len(line) < select.PIPE_BUF
    assert decode(line).loss == float("inf") and decode(b'{"rank": 1, "later": 2}') == Status(1)


def test_time_in_collectives_that_overlap_counts_once() -> None:
    waits, begun, ended = Waits(), threading.Barrier(3), threading.Event()

    class Group(GroupBackend):
        def run(self, key: str, request: str, digest: bytes, work: Callable[[Transport], Any]) -> Any:
            begun.wait(60)
            ended.wait(60)

    methods.wrap_methods(Group, ("run",), waits.run_and_measure)
    threads = [threading.Thread(target=Group().run, args=(key, "", b"", print)) for key in ("a", "b")]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    begun.wait(60)
    assert waits.running_collective() in ("a", "b")
    time.sleep(0.2)
    ended.set()
    for thread in threads:
        thread.join()
    assert 0.2 <= waits.seconds_waited() <= time.monotonic() - begin and waits.running_collective() == ""


# --- runs of npu-shim verify ---------------------------------------------------
RUN = """
import os, sys, time
import numpy as np
from npu_shim.rehearsal.progress.recording_progress import showing_progress
from npu_shim.rehearsal.recording.writer import Writer
writer = Writer(sys.argv[1])
with showing_progress("npu-shim verify", "original", [sys.argv[1]], 100) as end:
    for step in range(1, 11):
        rows = [("input", "x", np.ones([4, 3])), ("loss", "loss", np.float32(2.5) / step), ("loss", "loss 2", np.ones(()))]
        writer.write_rows(step, rows)
        time.sleep(0.1)
    time.sleep({seconds})
    end({code})
print("after")
"""


def test_run_of_verify_is_shown_by_its_recording(tmp_path: pathlib.Path) -> None:
    run = RecordedRun("migrated", 1, str(tmp_path), 40)
    assert board.rank_lines([run.status()]) == ["migrated, rank 1  no step yet  0 s"]
    writer = Writer(str(tmp_path))
    writer.write_rows(1, [("input", "x", np.ones([4, 3])), ("loss", "loss", np.array(2.0))])
    assert (run.status().step, run.status().loss, run.status().left_s) == (1, 2.0, None)
    time.sleep(0.2)
    writer.write_rows(2, [("gradient", "w", np.ones([4, 3])), ("learning rate", "rate", np.array(0.1))])
    writer.write_rows(11, [("input", "x", np.ones([4, 3])), ("loss", "loss", np.array(-1.5))])
    status = run.status()
    assert (status.step, status.loss) == (11, -1.5) and 0 < status.left_s <= 29 / status.rate <= 29
    assert board.rank_lines([Status(0, 11, 3.2, 50.0, loss=-1.5, name="migrated", left_s=0.58)]) == [
        "migrated  step 11  50.0 steps/s  loss -1.5  3 s  1 s left"
    ]
    assert run.status(1).left_s is None and board.rank_lines([run.status(1)])[0].endswith("failed with exit code 1")


def test_run_of_verify_gets_a_line_in_a_pipe(tmp_path: pathlib.Path) -> None:
    script = RUN.format(seconds=0, code=0)
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "after\n"), done.stderr
    assert re.fullmatch(
        r"npu-shim verify: original  step 10  [\d.]+ steps/s  loss 0.25  finished after \d+ s\n", done.stderr
    )


def test_run_of_verify_is_a_line_at_the_bottom_of_a_terminal(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    script = RUN.format(seconds=1.5, code=0)
    terminal = Terminal([sys.executable, "-c", script, str(tmp_path)], 6, 80, os.environ, str(repo_root))
    terminal.read_until(lambda screen: re.match(r"original  step 10 .* loss 0.25  \d s  \d+ s left", screen.lines[5]))
    assert terminal.end() == 0
    assert [line.split("  ")[0].strip() for line in terminal.screen.lines[:2]] == ["npu-shim verify: original", "after"]


# --- the bottom of a terminal ------------------------------------------------
class Drawn:
    """A region on a screen, without a terminal."""

    def __init__(self, monkeypatch: Any, rows: int, columns: int) -> None:
        self.screen, self.size = Screen(rows, columns), (rows, columns)
        self.region = Region(-1)
        monkeypatch.setattr(self.region, "size", lambda: self.size)
        monkeypatch.setattr(self.region, "_write", self.screen.write)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.lines]


def test_output_scrolls_above_the_lines_and_unfinished_lines_go_on(monkeypatch: Any) -> None:
    drawn = Drawn(monkeypatch, 6, 20)
    drawn.screen.write("one\r\ntwo\r\nthree\r\nfour\r\nfive\r\nepoch 1: ")
    drawn.region.draw(["rank 0", "rank 1"])
    drawn.screen.write("10%\rEpoch 1: 20%")
    drawn.region.draw(["Rank 0", "Rank 1"])
    drawn.screen.write("!\r\nnext")
    assert drawn.lines == ["four", "five", "Epoch 1: 20%!", "next", "Rank 0", "Rank 1"]
    assert drawn.screen.scrolled == ["one", "two", "three"]
    drawn.region.release()
    drawn.screen.write(" line\r\na\r\nb\r\nc")
    assert drawn.lines == ["five", "Epoch 1: 20%!", "next line", "a", "b", "c"]


def test_lines_move_with_the_size_of_the_terminal(monkeypatch: Any) -> None:
    drawn = Drawn(monkeypatch, 8, 20)
    drawn.screen.write("a\r\nb")
    drawn.region.draw(["rank 0"])
    drawn.size = (6, 20)
    drawn.region.draw(["rank 0", "rank 1"])
    assert drawn.lines == ["a", "b", "", "", "rank 0", "rank 1", "", ""]
    drawn.size = (8, 20)
    drawn.region.draw(["rank 0"])
    assert drawn.lines == ["a", "b", "", "", "", "", "", "rank 0"]
    drawn.region.draw([])
    assert drawn.lines == ["a", "b"] + [""] * 6 and drawn.screen.bottom == 7


# --- the process that draws ----------------------------------------------------
SCRIPT = """
import os, sys, time
from npu_shim.launching.progress.display import Display
from npu_shim.launching.progress.status import Status, encode, send
display = Display("test")
for rank in range({ranks}):
    send(display.pipe, encode(Status(rank, 10 + rank, 3.0, 5.0, 0.2, memory_bytes=1000000)))
print("unfinished", end=" ", flush=True)
{rest}
"""
END = 'time.sleep({seconds})\nprint("line", flush=True)\ndisplay.end()\nprint("after")'


def command(ranks: int, rest: str) -> list[str]:
    return [sys.executable, "-c", SCRIPT.format(ranks=ranks, rest=rest)]


def test_a_pipe_gets_plain_lines() -> None:
    done = subprocess.run(command(2, END.format(seconds=0)), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "unfinished line\nafter\n")
    assert done.stderr == "".join(f"test: rank {r}  step 1{r}  5.0 steps/s  1 MB\n" for r in range(2))


def test_lines_stay_at_the_bottom_of_a_terminal(repo_root: pathlib.Path) -> None:
    terminal = Terminal(command(8, END.format(seconds=1.5)), 10, 40, os.environ, str(repo_root))
    terminal.read_until(lambda screen: "and 4 more ranks" in screen.lines[9])
    assert [line[:7].strip() for line in terminal.screen.lines] == ["unfinis", "", "", "", ""] + [
        "rank 0",
        "rank 1",
        "rank 2",
        "rank 3",
        "and 4 m",
    ]
    terminal.resize(9, 40)
    assert terminal.end() == 0
    screen = terminal.screen.scrolled + terminal.screen.lines
    assert screen[0].rstrip() == "unfinished line" and terminal.screen.bottom == 9
    assert [line.split("  ")[0] for line in screen[1:9]] == [f"test: rank {rank}" for rank in range(8)]
    assert screen[9] == "after"


@pytest.mark.parametrize("ending", ["os.kill(os.getpid(), 9)", "os._exit(3)", "raise ValueError"])
def test_terminal_is_restored_however_the_process_ends(ending: str, repo_root: pathlib.Path) -> None:
    terminal = Terminal(command(1, "time.sleep(1.2)\n" + ending), 10, 60, os.environ, str(repo_root))
    terminal.read_until(lambda screen: "rank 0" in screen.lines[9])
    assert terminal.end() != 0
    assert terminal.screen.bottom == 9 and terminal.raw.rstrip().endswith("test: rank 0  step 10  5.0 steps/s  1 MB")


def test_a_terminal_of_two_rows_or_without_a_type_gets_plain_lines(repo_root: pathlib.Path) -> None:
    for rows, variables in ((2, {}), (10, {"TERM": "dumb"})):
        made = [*command(1, END.format(seconds=0.8))]
        made[2] = f"import os; os.environ.update({variables!r})\n" + made[2]
        terminal = Terminal(made, rows, 60, os.environ, str(repo_root))
        assert terminal.end() == 0
        assert "\x1b" not in terminal.raw and "test: rank 0  step 10" in terminal.raw


def test_stopped_process_gives_the_terminal_back(repo_root: pathlib.Path) -> None:
    terminal = Terminal(command(1, "time.sleep(60)"), 10, 60, os.environ, str(repo_root))
    terminal.read_until(lambda screen: "rank 0" in screen.lines[9])
    terminal.process.send_signal(signal.SIGSTOP)
    terminal.read_until(lambda screen: screen.bottom == 9 and not screen.lines[9])
    terminal.process.send_signal(signal.SIGCONT)
    terminal.read_until(lambda screen: "rank 0" in screen.lines[9])
    terminal.process.kill()
    terminal.end()


def test_display_is_no_child_that_a_script_waits_for() -> None:
    rest = "try:\n    os.wait()\nexcept ChildProcessError:\n    print('none', flush=True)\ndisplay.end()"
    done = subprocess.run(command(1, rest), capture_output=True, text=True, timeout=60)
    assert done.stdout == "unfinished none\n"


# --- commands ------------------------------------------------------------------
@pytest.mark.parametrize("verb", [["launch", "--ranks", "2"], ["run"]])
def test_folder_that_cannot_be_written_is_one_error_before_anything_starts(
    verb: list[str], tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text('open("started", "w")')
    try:
        code = cli.main([*verb, "--progress", "--tensorboard", "a.py/events", "a.py"])
    except SystemExit as ended:  # of the parser
        code = ended.code
    error = capsys.readouterr().err
    assert code == 2 and error.count("\n") == 1
    assert "error: --tensorboard a.py/events: " in error and "a.py is a file. Name a folder." in error
    assert not (tmp_path / "started").exists()


LAUNCHED = """
import os, sys, time
print("script", sys.argv, __name__, __file__, flush=True)
assert "NPU_SHIM_PROGRESS_PIPE" not in os.environ
time.sleep(1.5)
if os.environ["RANK_ID"] == "1" and sys.argv[1] == "fail":
    sys.exit(7)
time.sleep(0 if sys.argv[1] == "end" else 60)
"""


def launched(tmp_path: pathlib.Path, what: str, repo_root: pathlib.Path) -> Terminal:
    (tmp_path / "a.py").write_text(LAUNCHED)
    ranks = [sys.executable, "-m", "npu_shim", "launch", "--ranks", "2", "--progress", "a.py", what]
    return Terminal(ranks, 12, 100, {**os.environ, "PYTHONPATH": f"{repo_root}:{repo_root}/tools"}, str(tmp_path))


@pytest.mark.parametrize("what, code", [("end", 0), ("fail", 7)])
def test_launched_ranks_have_a_line_each(what: str, code: int, tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    terminal = launched(tmp_path, what, repo_root)
    terminal.read_until(lambda screen: re.match(r"rank 1  no step yet  \d+ MB", screen.lines[11]))
    assert terminal.end() == code
    assert f"script ['a.py', '{what}'] __main__" in terminal.raw and terminal.screen.bottom == 11
    ends = ["finished after", "finished after"] if what == "end" else ["ended by SIGTERM", "failed with exit code 7"]
    for rank, end in enumerate(ends):
        assert re.search(rf"npu-shim launch: rank {rank}  no step yet  \d+ MB  .*{end}", terminal.raw)


def test_interrupt_from_the_keyboard_ends_the_job_and_restores_the_terminal(
    tmp_path: pathlib.Path, repo_root: pathlib.Path
) -> None:
    terminal = launched(tmp_path, "wait", repo_root)
    terminal.read_until(lambda screen: "rank 1" in screen.lines[11])
    os.killpg(terminal.process.pid, signal.SIGINT)
    assert terminal.end() == 130
    assert terminal.screen.bottom == 11 and "SIGINT: forwarding it to all ranks" in terminal.raw


def test_killed_launcher_leaves_a_usable_terminal(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    terminal = launched(tmp_path, "wait", repo_root)
    terminal.read_until(lambda screen: "rank 1" in screen.lines[11])
    terminal.process.kill()
    begin = time.monotonic()
    terminal.read_until(lambda screen: screen.bottom == 11)
    assert time.monotonic() - begin < 30
    terminal.end()


def test_script_that_is_run_with_progress_is_as_without_it(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    (tmp_path / "a.py").write_text("import sys\nprint(sys.argv, __name__, sys.stdin.read())\nsys.exit(5)")
    done = subprocess.run(
        [sys.executable, "-m", "npu_shim", "run", "--progress", "a.py", "--progress"],
        cwd=str(tmp_path),
        input="in",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{repo_root}:{repo_root}/tools"},
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (5, "['a.py', '--progress'] __main__ in\n")
    assert re.search(r"npu-shim run: rank 0  no step yet  \d+ MB", done.stderr)
