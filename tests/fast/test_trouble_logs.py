"""``npu-shim doctor --log``: the first cause in logs of ranks, of any length and content."""

from __future__ import annotations

import gzip
import io
import json
import pathlib
import subprocess
import sys
import time
from typing import Any

import pytest

from npu_shim import cli
from npu_shim.cli._diagnostics import log_report
from npu_shim.troubles.logs import explain_logs, troubles_in_text

MEMORY = "EL0004: Failed to allocate memory."
WAITS = "EI0006: Getting socket times out. Reason: the remote rank did not start"
INNER = "E19999: Inner Error!"


def plog(clock: str, text: str, level: str = "ERROR") -> str:
    return f"[{level}] GE(7,python3):2024-05-01-{clock}.100.200 [model.cc:10] {text}\n"


def first(*paths: pathlib.Path) -> str:
    """Return the first cause as "file:line id"."""
    sighting = explain_logs(map(str, paths)).sightings[0]
    return f"{pathlib.Path(sighting.path).name}:{sighting.line} {sighting.trouble.id}"


def test_the_first_cause_of_several_ranks(tmp_path: pathlib.Path) -> None:
    (tmp_path / "rank_0.log").write_text(
        plog("08:00:00", "load the model", "INFO") + plog("08:02:10", WAITS) + plog("08:02:11", INNER)
    )
    (tmp_path / "rank_1.log").write_text(plog("08:00:01", INNER) + plog("08:00:02", MEMORY))
    (tmp_path / "rank_2.log").write_text(plog("08:00:05", "EZ3003: No supported Ops kernel"))
    (tmp_path / "checkpoint.data").write_text(plog("08:00:00", "EJ0001: not the name of a log"))
    assert first(tmp_path) == "rank_1.log:2 device-memory"
    assert first(tmp_path / "rank_0.log") == "rank_0.log:2 socket-timeout"
    assert len(explain_logs([str(tmp_path)]).paths) == 3


def test_interleaved_output_is_ordered_by_time(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "all.log"
    log.write_text(
        "[rank 0] " + plog("08:02:10", WAITS) + "[rank 0]   EZ3003: without a time, as the line above\n"
        "[rank 3] " + plog("08:01:00", "EZ3003: No supported Ops kernel")
        + "[rank 1] " + plog("08:00:30", MEMORY) + "[rank 1] Traceback (most recent call last):\n"
    )  # fmt: skip
    ids = [(sighting.trouble.id, sighting.line) for sighting in explain_logs([str(log)]).sightings]
    assert ids == [("device-memory", 4), ("unsupported-operator", 3), ("socket-timeout", 1)]


def test_without_times_the_order_of_lines_counts(tmp_path: pathlib.Path) -> None:
    assert [trouble.id for trouble in troubles_in_text(f"{INNER}\n{WAITS}\n{MEMORY}\nEJ0001: Failed\n")] == [
        "device-memory", "hccp-running", "socket-timeout", "inner-error"
    ]  # fmt: skip
    (tmp_path / "a.log").write_text(f"ok\n{MEMORY}\n2024-05-01 08:00:00: E tf: EJ0001: Failed\n")
    (tmp_path / "b.log").write_text("EZ3003: No supported Ops kernel\n")
    (tmp_path / "c.log").write_text("2024-05-01T07:00:00,5 EI0008: The CANN versions are inconsistent\n")
    found = [(sighting.trouble.id, sighting.time) for sighting in explain_logs([str(tmp_path)]).sightings]
    assert found == [
        ("cann-versions-differ", "2024-05-01 07:00:00.500000"),
        ("device-memory", "2024-05-01 08:00:00.000000"),  # lines before the first time have that one
        ("hccp-running", "2024-05-01 08:00:00.000000"),
        ("unsupported-operator", ""),
    ]


@pytest.mark.parametrize(
    "line",
    [
        plog("08:00:00", MEMORY, "INFO"),
        plog("08:00:00", MEMORY, "EVENT"),
        f"2024-05-01 08:00:00.100000: I tf_adapter/kernels/geop_npu.cc:10] {MEMORY}",
        f"I0501 08:00:00.100000 7 train.py:3] {MEMORY}",
        "checksum 0xEL0004, AEL0004, EL00041",
    ],
)
def test_information_is_no_error(line: str) -> None:
    assert troubles_in_text(line) == []


def test_colors_are_no_part_of_a_line(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.log").write_text(f"\x1b[31;1m{MEMORY}\x1b[0m\n")
    (sighting,) = explain_logs([str(tmp_path)]).sightings
    assert sighting.text == MEMORY


def test_garbage_and_long_lines_do_no_harm(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "train.log"
    noise = bytes(range(256)) * 20000
    log.write_bytes(
        noise + b"\n" + b"x" * 5_000_000 + b" EJ0001: Failed\n" + b"9%\r99%\r" + MEMORY.encode() + b"\r" + noise
    )
    (sighting, other) = explain_logs([str(log)]).sightings
    assert sighting.text.endswith("EJ0001: Failed") and len(sighting.text) <= 300
    assert other.text == MEMORY
    assert sighting.line < other.line == noise.count(b"\n") + 3


def test_compressed_logs_and_broken_ones(tmp_path: pathlib.Path, capsys: Any) -> None:
    whole = gzip.compress((plog("08:00:00", MEMORY) * 20_000).encode())
    (tmp_path / "plog.log.gz").write_bytes(whole)
    (tmp_path / "cut.log.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "plain.log.gz").write_text(plog("08:00:00", MEMORY))  # the bytes decide, not the name
    (tmp_path / "packed.log").write_bytes(whole)
    explanation = explain_logs([str(tmp_path), str(tmp_path / "packed.log")])  # each file is read once
    assert [sighting.line for sighting in explanation.sightings] == [1, 1, 1, 1]
    assert [pathlib.Path(path).name for path in explanation.problems] == ["cut.log.gz"]
    assert cli.main(["doctor", "--log", str(tmp_path)]) == 1
    assert f"note: {tmp_path}/cut.log.gz was not read to its end: Compressed file ended" in capsys.readouterr().out


def test_a_log_that_cannot_be_read_may_have_an_error(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "a.log").write_bytes(MEMORY.encode("utf-16"))
    assert cli.main(["doctor", "--log", f"{tmp_path}/a.log"]) == 2
    assert "UTF-16; convert it to UTF-8\nNo known error in what was read." in capsys.readouterr().out


def test_messages_of_plain_python_are_hints(tmp_path: pathlib.Path, capsys: Any) -> None:
    missing = "ModuleNotFoundError: No module named 'scipy'\n"
    (tmp_path / "a.log").write_text(missing)
    assert cli.main(["doctor", "--log", f"{tmp_path}/a.log"]) == 1
    assert capsys.readouterr().out.startswith("Possible cause:\n")
    (tmp_path / "a.log").write_text(missing + MEMORY + "\n")
    assert explain_logs([f"{tmp_path}/a.log"]).sightings[0].trouble.id == "device-memory"


def test_the_report(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "a.log").write_text(plog("08:02:10", WAITS) + plog("08:02:11", INNER))
    (tmp_path / "b.log").write_text("ok\n" + plog("08:00:30", MEMORY))
    assert cli.main(["doctor", "--log", f"{tmp_path}/a.log", f"{tmp_path}/b.log"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["First cause:", f"  {tmp_path}/b.log:2, 2024-05-01 08:00:30.100"]
    assert lines[2] == "    " + plog("08:00:30", MEMORY).strip()
    assert lines[4].startswith("  cause: The NPU has not enough free memory")
    assert lines[5].startswith("  fix: npu-smi info shows what is used")
    assert lines[7:9] == ["Also found, causes first:", f"  {tmp_path}/a.log:1, 2024-05-01 08:02:10.100"]
    assert cli.main(["doctor", "--json", "--log", f"{tmp_path}/b.log"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["troubles"]
    assert (row["id"], row["kind"], row["line"]) == ("device-memory", "cause", 2)
    (tmp_path / "a.log").write_text(plog("08:02:11", INNER))
    assert cli.main(["doctor", "--log", f"{tmp_path}/a.log"]) == 1
    assert capsys.readouterr().out.startswith("The logs show only consequences; ")
    (tmp_path / "a.log").write_text(plog("08:02:11", INNER) + plog("08:02:12", WAITS))
    assert cli.main(["doctor", "--log", f"{tmp_path}/a.log"]) == 1
    assert capsys.readouterr().out.startswith("A rank lost another one. ")
    (tmp_path / "a.log").write_text("all is well\n")
    assert cli.main(["doctor", "--log", f"{tmp_path}/a.log"]) == 0
    assert capsys.readouterr().out == "No known error in 1 file.\n"


def test_a_missing_file_is_one_error(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "a.log").write_text("ok\n")
    with pytest.raises(SystemExit) as end:
        cli.main(["doctor", "--log", f"{tmp_path}/a.log", f"{tmp_path}/b.log", f"{tmp_path}/c.log"])
    (line,) = capsys.readouterr().err.splitlines()
    assert end.value.code == 2
    advice = "Give logs, or folders of logs such as ~/ascend/log."
    assert line.endswith(f"not found or not readable: {tmp_path}/b.log, {tmp_path}/c.log. {advice}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit):
        cli.main(["doctor", "--log", f"{tmp_path}/empty"])
    assert f"no file with the name of a log in {tmp_path}/empty. {advice}" in capsys.readouterr().err


def read_much(folder: pathlib.Path, megabytes: int) -> tuple[float, int]:
    """Return the seconds and the kilobytes that reading a long log takes in a process of its own."""
    block = "".join(plog("08:00:00", f"step {n}, loss 0.5, queue 12658048656348665736", "INFO") for n in range(10_000))
    with open(folder / "long.log", "w") as stream:
        for _ in range(megabytes * 1_000_000 // len(block)):
            stream.write(block)
        stream.write(plog("09:00:00", MEMORY))
    code = (
        "import re, sys; from npu_shim.troubles.logs import explain_logs as e, troubles_in_text; troubles_in_text(''); "
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]); before = peak(); "
        "(s,) = e(sys.argv[1:]).sightings; print(peak() - before, s.trouble.id)"
    )
    begin = time.monotonic()
    out = subprocess.check_output([sys.executable, "-c", code, str(folder / "long.log")], text=True)
    kilobytes, name = out.split()
    assert name == "device-memory"
    return time.monotonic() - begin, int(kilobytes)


def test_a_long_log_takes_little_memory(tmp_path: pathlib.Path) -> None:
    _, kilobytes = read_much(tmp_path, 12)
    assert kilobytes < 40_000


@pytest.mark.nightly
def test_a_log_of_200_megabytes(tmp_path: pathlib.Path) -> None:
    seconds, kilobytes = read_much(tmp_path, 200)
    assert kilobytes < 40_000 and seconds < 240


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "stream, wait_s, shown",
    [
        (Terminal(), 0.0, "\rreading logs: 0.0 GB\r\x1b[K"),
        (Terminal(), 60.0, ""),
        (io.StringIO(), 0.0, ""),
    ],
)
def test_long_logs_show_on_a_terminal_how_much_was_read(
    stream: io.StringIO, wait_s: float, shown: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(log_report, "_WAIT_S", wait_s)
    monkeypatch.setattr(sys, "stderr", stream)
    (tmp_path / "all.log").write_text(plog("08:00:00", MEMORY))
    assert cli.main(["doctor", "--log", str(tmp_path)]) == 1
    assert stream.getvalue() == shown
