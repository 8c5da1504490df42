"""``npu-shim launch``: the environment of each rank, the end of a job, and that no process is left."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from typing import Any, Callable, Iterator, Sequence

import pytest

from npu_shim import cli
from npu_shim._host import host_device
from npu_shim.distributed.ranktable import generate, rootinfo
from npu_shim.distributed.ranktable.reader import parse_table
from npu_shim.launching.job_ranks import assign_local_ranks, assign_server_ranks
from npu_shim.launching.plan import OP_THREADS, RankSlot, Share, rank_processes, share_cores, share_threads
from npu_shim.launching.table_wait import TableTimeout, wait_for_table

pytestmark = [pytest.mark.once, pytest.mark.slow]

TWO_SERVERS = """{"version": "1.0", "status": "completed", "server_count": "2", "server_list": [
 {"server_id": "%s", "device": [{"device_id": "4", "device_ip": "10.0.0.1", "rank_id": "0"},
                                {"device_id": "5", "device_ip": "10.0.0.2", "rank_id": "1"}]},
 {"server_id": "10.9.9.9", "device": [{"device_id": "4", "device_ip": "10.0.0.3", "rank_id": "2"},
                                      {"device_id": "5", "device_ip": "10.0.0.4", "rank_id": "3"}]}]}"""
MARK = "LAUNCH_TEST_MARK"


# --- the plan -------------------------------------------------------
def test_rank_gets_its_variables_and_none_of_another_job() -> None:
    outer = {"PATH": "/bin", "RANK_ID": "7", "CM_CHIEF_IP": "1.2.3.4", "POD_NAME": "x", "TF_CONFIG": "{}", "KEPT": "1"}
    made = rank_processes(
        [RankSlot(2, 4), RankSlot(3, 5)],
        4,
        ["python", "a.py"],
        "j",
        "logs",
        "table.json",
        [Share((0,)), Share((1, 2))],
        outer,
    )
    assert [p.log for p in made] == [os.path.join("logs", "rank_2.log"), os.path.join("logs", "rank_3.log")]
    assert [p.share.cores for p in made] == [(0,), (1, 2)]
    assert made[1].full_environment(outer) == {
        "PATH": "/bin",
        "KEPT": "1",
        "JOB_ID": "j",
        "RANK_ID": "3",
        "RANK_SIZE": "4",
        "ASCEND_DEVICE_ID": "5",
        "DEVICE_ID": "5",
        "RANK_TABLE_FILE": os.path.abspath("table.json"),
        "PYTHONUNBUFFERED": "1",
    }
    assert (
        "PYTHONUNBUFFERED"
        not in rank_processes([RankSlot(0, 0)], 1, ["x"], "j", "", environ={"PYTHONUNBUFFERED": ""})[0].environment
    )


@pytest.mark.parametrize(
    "available, count, threads",
    [
        ([0, 1], 1, None),
        ([0, 1], 2, 1),
        ([0, 1], 4, 1),
        (range(8), 2, 4),
        (range(8), 3, 2),
    ],
)
def test_ranks_on_the_same_processors_share_op_threads(
    available: Sequence[int], count: int, threads: int | None
) -> None:
    assert share_threads(available, count) == threads
    for said in ({}, {OP_THREADS: "5"}):
        (made,) = rank_processes([RankSlot(0, 0)], 1, ["a"], "j", "", environ=said, threads=threads)
        wanted = said.get(OP_THREADS, threads and str(threads))
        assert made.full_environment(said).get(OP_THREADS) == wanted


@pytest.mark.parametrize(
    "available, count, shares",
    [
        (range(8), 2, [(0, 1, 2, 3), (4, 5, 6, 7)]),
        ([2, 5, 7], 2, [(2,), (5, 7)]),
        ([0, 1], 3, [(0,), (0,), (1,)]),
        ([3], 2, [(3,), (3,)]),
    ],
)
def test_processors_are_shared_evenly(available: list[int], count: int, shares: Any) -> None:
    assert share_cores(available, count) == shares


def test_ranks_of_this_host_are_those_of_its_server() -> None:
    table = parse_table(TWO_SERVERS % "127.0.0.1")
    assert assign_server_ranks(table, None, "F") == [RankSlot(0, 4), RankSlot(1, 5)]
    assert assign_server_ranks(table, 1, "F") == [RankSlot(2, 4), RankSlot(3, 5)]
    assert assign_local_ranks(2, None) == [RankSlot(0, 0), RankSlot(1, 1)]
    assert assign_local_ranks(2, [6, 4]) == [RankSlot(0, 6), RankSlot(1, 4)]


@pytest.mark.parametrize("pods", [["127.0.0.1", "10.244.0.8"], ["10.244.0.8", "127.0.0.1"]])
def test_ranks_of_this_pod_are_those_of_its_address(pods: list[str]) -> None:
    """Two pods of one host have its address, and an own one in container_ip."""
    servers = [
        {
            "server_id": f"10.8.8.{k}",
            "host_ip": "10.8.8.8",
            "container_ip": pod,
            "device": [{"device_id": str(k), "rank_id": str(k)}],
        }
        for k, pod in enumerate(pods)
    ]
    table = parse_table(
        json.dumps({"version": "1.0", "status": "completed", "server_count": "2", "server_list": servers})
    )
    here = pods.index("127.0.0.1")
    assert assign_server_ranks(table, None, "F") == [RankSlot(here, here)]


@pytest.mark.parametrize(
    "index, message",
    [
        (2, r"--server-index 2 is not allowed: F has 2 servers \(10.8.8.8, 10.9.9.9\)\. Pass 0 to 1\."),
        (None, r"none of them is recognized as this host\. Pass --server-index K"),
    ],
)
def test_unknown_server(index: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        assign_server_ranks(parse_table(TWO_SERVERS % "10.8.8.8"), index, "F")


# --- wrong usage -----------------------------------------------------------------
@pytest.mark.parametrize(
    "arguments, message",
    [
        ("", "no script is given."),
        ("--ranks 2", "no script is given."),
        ("{script}", "the number of ranks is unknown. Pass --ranks N"),
        ("--ranks 0 {script}", "'0' is not allowed: it must be an integer from 1 to 65536"),
        ("--ranks two {script}", "'two' is not allowed: it must be an integer from 1 to"),
        ("--ranks 2 --ranktable x {script}", "--ranks and --ranktable are both given, but one of them describes"),
        ("-H a:1 --ranktable x {script}", "-H and --ranktable are both given, but one of them describes the job."),
        ("-H a:1 -hostfile x {script}", "-H and --hostfile are both given, but one of them describes the job. Keep"),
        (
            "-H a:1 --devices 0 {script}",
            "--devices needs --ranks alone. Name the devices of a host as HOST:FIRST-LAST.",
        ),
        ("-np 4 -H a:2,b:1 {script}", "a:2,b:1 has 3 slots, fewer than 4 ranks. Add slots, or start 3."),
        ("-np 4 -H a {script}", "host a: the number of slots is missing. Write a:8, or slots=8."),
        ("-H a:x {script}", "--hosts 'a:x': 'a:x' is not allowed. Write HOST:COUNT"),
        ("-H 192.0.2.9:1 {script}", "host 192.0.2.9 is not this host. Run the command on 192.0.2.9."),
        ("-H 192.0.2.8:1,192.0.2.9:1 --server-index 1 {script}", "mpirun starts the ranks of all hosts. Leave it out."),
        ("-hostfile none {script}", "file not found: none"),
        (
            "-hostfile {script} {script}",
            "a.py, line 1: 'open(\"started\", \"w\")' is not allowed. Write HOST, 'HOST slots=8'",
        ),
        ("-np 2 python", "no script is given."),
        ("--ranks 2 missing.py", "file not found: missing.py. Give a Python script"),
        ("--ranks 2 --nonsense a.py", "unknown option '--nonsense'"),
        ("--ranks 2 --devices 1 {script}", "--devices 1 is not allowed with --ranks 2"),
        ("--ranks 2 --devices 1,1 {script}", "Name 2 different devices"),
        ("--ranks 2 --server-index 0 {script}", "--server-index needs --ranktable"),
        ("--ranktable {table} --devices 0 {script}", "--devices needs --ranks"),
        ("--ranktable {script} {script}", "line 1, column 1: is not JSON"),
        ("--ranktable none.json {script}", "none.json"),
        ("--ranks 2 --timeout 0 {script}", "'0' is not allowed: it must be a number of seconds above 0"),
        ("--ranks 2 --job-id a/b {script}", "JOB_ID='a/b' is not allowed"),
        ("--ranks 1 --log-dir {script}/x {script}", "is a file. Name a folder"),
    ],
)
def test_wrong_usage_is_one_error_and_starts_nothing(
    arguments: str, message: str, tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANK_TABLE_FILE", raising=False)
    (tmp_path / "a.py").write_text('open("started", "w")')
    (tmp_path / "t.json").write_text(TWO_SERVERS % "127.0.0.1")
    given = arguments.format(script=tmp_path / "a.py", table=tmp_path / "t.json").split()
    try:
        code = cli.main(["launch", *given])
    except SystemExit as ended:  # argparse's own
        code = int(ended.code or 0)
    error = capsys.readouterr().err
    assert code == 2 and message in error and "Traceback" not in error
    assert {path.name for path in tmp_path.iterdir()} == {"a.py", "t.json"}


@pytest.fixture
def npu_host(monkeypatch: Any, tmp_path: pathlib.Path) -> pathlib.Path:
    """Simulate an NPU host; return the path of its hccn.conf."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(host_device, "detect_without_import", lambda: host_device.Device("npu", "for the test"))
    monkeypatch.setattr(generate, "HCCN_CONF", str(tmp_path / "hccn.conf"))
    (tmp_path / "a.py").write_text('import os\nprint(open(os.environ["RANK_TABLE_FILE"]).read())')
    return tmp_path / "hccn.conf"


def test_ranks_of_one_npu_host_get_a_rank_table(npu_host: pathlib.Path, capsys: Any) -> None:
    npu_host.write_text("".join(f"address_{n}=192.168.100.10{n}\n" for n in range(4)))
    launch_it = ["launch", "--ranks", "2", "--devices", "2,3", "--log-dir", "logs", "a.py"]
    assert cli.main(launch_it[:1] + ["--dry-run"] + launch_it[1:]) == 0
    assert not os.path.exists("logs")
    first, *ranks = capsys.readouterr().out.split("\nenv ")
    os.mkdir("logs")
    subprocess.run(first, shell=True, check=True)
    shown = pathlib.Path("logs/rank_table.json").read_text()
    assert len(ranks) == 2 and all(
        f"RANK_TABLE_FILE={os.path.abspath('logs/rank_table.json')}" in line for line in ranks
    )
    os.unlink("logs/rank_table.json")
    assert cli.main(launch_it) == 0
    written = pathlib.Path("logs/rank_table.json").read_text()
    assert written == shown and written in pathlib.Path("logs/rank_1.log").read_text()
    assert [(device.rank, device.device_id, device.device_ip) for _, device in parse_table(written).placements()] == [
        (0, 2, "192.168.100.102"),
        (1, 3, "192.168.100.103"),
    ]


# --- the lines of Horovod -------------------------------------------------------
def test_lines_of_horovodrun_and_their_translation(tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("")
    (tmp_path / "hosts").write_text("# this host\n127.0.0.1 slots=4\n")

    def commands(*arguments: str) -> list[str]:
        assert cli.main(["launch", "--dry-run", "--job-id", "j", *arguments]) == 0
        return capsys.readouterr().out.splitlines()

    wanted = commands("--ranks", "2", "a.py", "--x", "-m", "1")
    assert len(wanted) == 2 and wanted[1].endswith("a.py --x -m 1 >> npu_shim_logs/j/rank_1.log 2>&1")
    for line in (
        "-np 2 a.py --x -m 1",
        "-np 2 -H localhost:4 python a.py --x -m 1",
        "-np 2 -hostfile hosts python3.7 -u a.py --x -m 1",
        f"-H 127.0.0.1:2 {sys.executable} a.py --x -m 1",
    ):
        assert commands(*line.split()) == wanted
    assert " -m pkg.train --x " in commands("-np", "1", "python", "-m", "pkg.train", "--x")[0]
    assert ["ASCEND_DEVICE_ID=5" in line for line in commands("-H", "127.0.0.1:4-5", "a.py")] == [False, True]


def test_npus_of_several_hosts_need_a_rank_table(npu_host: pathlib.Path, capsys: Any) -> None:
    assert cli.main(["launch", "-np", "4", "-H", "127.0.0.1:2,192.0.2.9:2", "a.py"]) == 2
    assert "NPUs on other hosts (127.0.0.1,192.0.2.9) need a rank table" in capsys.readouterr().err


ROOT_INFO = """{"version": "2.0", "rank_count": 2, "rank_list": [
 {"device_id": 2, "local_id": 2, "level_list": [{"net_layer": 0, "net_instance_id": "os", "rank_addr_list": []}]},
 {"device_id": 3, "local_id": 3, "level_list": [{"net_layer": 0, "net_instance_id": "os", "rank_addr_list": []}]}]}"""


def test_ranks_of_one_host_with_ascend_950_get_version_2(
    npu_host: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(host_device, "card_product", lambda: "A5")
    monkeypatch.setattr(rootinfo, "ROOT_INFO", str(tmp_path / "root.json"))
    launch_it = ["launch", "--ranks", "2", "--devices", "3,2", "--log-dir", "logs", "a.py"]
    assert cli.main(launch_it) == 2
    assert (
        f"cannot be generated from {tmp_path / 'root.json'}: No such file or directory. Write it with the tool of the "
        "platform, or pass --ranktable FILE" in capsys.readouterr().err
    )
    (tmp_path / "root.json").write_text(ROOT_INFO)
    assert cli.main(launch_it) == 0
    table = parse_table(pathlib.Path("logs/rank_table.json").read_text())
    assert table.version == "2.0"
    assert [(s.server_id, d.rank, d.device_id) for s, d in table.placements()] == [("os", 0, 3), ("os", 1, 2)]


@pytest.mark.parametrize(
    "conf, message",
    [
        (
            None,
            "2 ranks on NPUs need a rank table, which cannot be generated from {conf}: No such file or directory. Set "
            "the addresses with hccn_tool, or pass --ranktable FILE",
        ),
        ("address_0=10.0.0.1", "its hccn.conf has no device 1; it has 0. Name only these."),
        ("nothing=1", "{conf} has no line address_N="),
    ],
)
def test_npus_with_unknown_addresses(conf: str | None, message: str, npu_host: pathlib.Path, capsys: Any) -> None:
    if conf is not None:
        npu_host.write_text(conf)
    assert cli.main(["launch", "--ranks", "2", "a.py"]) == 2
    assert message.format(conf=npu_host) in capsys.readouterr().err
    assert not os.path.exists("npu_shim_logs")
    assert cli.main(["launch", "--ranks", "1", "--dry-run", "a.py"]) == 0  # one rank needs no table


def test_pod_finds_its_ranks_by_name() -> None:
    pods = parse_table("""{"status": "completed", "group_count": "1", "group_list": [{"device_count": "4",
        "group_name": "worker", "instance_count": "2", "instance_list": [
        {"pod_name": "job-0", "server_id": "10.0.0.1", "devices": [{"device_id": "0", "device_ip": "10.0.1.1"},
                                                                   {"device_id": "1", "device_ip": "10.0.1.2"}]},
        {"pod_name": "job-1", "server_id": "10.0.0.1", "devices": [{"device_id": "4", "device_ip": "10.0.1.3"},
                                                                   {"device_id": "5", "device_ip": "10.0.1.4"}]}]}]}""")
    assert assign_server_ranks(pods, None, "F", "job-1") == [RankSlot(2, 4), RankSlot(3, 5)]
    assert assign_server_ranks(pods, 0, "F", "job-1") == [RankSlot(0, 0), RankSlot(1, 1)]
    with pytest.raises(ValueError, match="the pod 'x' is not in F, which has 'job-0', 'job-1'. Export one of them as"):
        assign_server_ranks(pods, None, "F", "x")
    named = parse_table(TWO_SERVERS % "127.0.0.1")  # a table without pods, on a platform that names its pods
    assert assign_server_ranks(named, None, "F", "x") == [RankSlot(0, 4), RankSlot(1, 5)]


# --- a rank table that is incomplete -------------------------------------------
def write_in_stages(path: pathlib.Path, *texts: str) -> Callable[[float], None]:
    """Return a replacement of sleep() that writes the next text at each call, and finally keeps the last one."""
    left = list(texts)

    def sleep(seconds: float) -> None:
        if left:
            path.write_text(left.pop(0))
        elif seconds:
            time.sleep(min(seconds, 0.01))

    sleep(0)
    return sleep


def test_wait_for_an_incomplete_rank_table(tmp_path: pathlib.Path) -> None:
    path, done, said = tmp_path / "hccl.json", TWO_SERVERS % "127.0.0.1", []
    stages = ('{"status": "initializing"}', done.replace("completed", "initializing"), "", done[:100], done)
    found = wait_for_table(str(path), 60, said.append, write_in_stages(path, *stages))
    assert found == parse_table(done)
    assert said == [f"{path} is 'initializing'; waiting until it is complete, at most 60 s"]


@pytest.mark.parametrize(
    "stages, wrong",
    [
        (['{"status": "initializing"}'], "its status is still 'initializing'"),
        (['{"status": "initializing"}', '{"status": '], "is not JSON"),
    ],
)
def test_rank_table_that_is_never_complete(stages: list[str], wrong: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "hccl.json"
    with pytest.raises(TableTimeout) as error:
        wait_for_table(str(path), 0.1, lambda line: None, write_in_stages(path, *stages))
    assert re.match(rf"{path} was not complete within 0\.1 s \(--table-timeout\): .*{wrong}", str(error.value))


@pytest.mark.parametrize(
    "text, message",
    [('{"status": ', "is not JSON"), ('{"status": "failed"}', "has none of server_list, rank_list and group_list")],
)
def test_invalid_rank_table_raises_without_a_wait(text: str, message: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match=message):
        wait_for_table(str(tmp_path / "t.json"), 60, lambda line: None, write_in_stages(tmp_path / "t.json", text))


# --- jobs --------------------------------------------------------------------------
class Launched:
    """A launcher in a separate process; its processes have a mark in their environment.

    ``forked`` ranks import an empty TensorFlow, so that they are forked from a process that has imported it.
    ``others`` is the number of processes besides the launcher and the ranks.
    """

    def __init__(self, folder: pathlib.Path, forked: bool, script: str, *arguments: str, **env: str) -> None:
        (folder / "a.py").write_text(
            "import tensorflow\n" * forked
            + 'import os, signal, subprocess, sys, time\nrank = os.environ["RANK_ID"]\n'
            + script
        )
        library = folder / "library" / "tensorflow"
        library.mkdir(parents=True, exist_ok=True)
        (library / "__init__.py").write_text("")
        env.setdefault("PYTHONPATH", os.pathsep.join([str(library.parent), os.environ.get("PYTHONPATH", "")]))
        self.others = 2 if forked else 1  # the guardian, and the process that ranks are forked from
        self.mark = f"{os.getpid()}-{folder}"
        self.environ = {**os.environ, MARK: self.mark, **env}
        given = ["--log-dir", "logs", *arguments] + ([] if "-m" in arguments else ["a.py"])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "npu_shim", "launch", *given],
            cwd=str(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            env=self.environ,
            preexec_fn=lambda: [
                signal.signal(n, signal.SIG_DFL) for n in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
            ],
        )
        self.folder = folder

    def end(self) -> subprocess.CompletedProcess[str]:
        out, error = self.process.communicate(timeout=120)
        assert "npu_shim/launching" not in error and "npu_shim/cli" not in error  # no traceback of the launcher
        return subprocess.CompletedProcess([], self.process.returncode, out, error)

    def wait_for(self, *names: str) -> None:
        until(lambda: all((self.folder / name).exists() for name in names))

    def left(self) -> set[str]:
        """Return the processes with the mark, except the launcher."""
        found = set()
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as stream:
                    marked = f"{MARK}={self.mark}".encode() in stream.read().split(b"\0")
                with open(f"/proc/{name}/stat") as stream:
                    dead = stream.read().rsplit(")", 1)[1].split()[0] == "Z"
            except OSError:  # it has ended, or belongs to another user
                continue
            if marked and not dead and int(name) != self.process.pid:
                found.add(name)
        return found


def until(condition: Callable[[], bool]) -> None:
    """Wait for what the system does in its own time: a killed process may end after the launcher that killed it."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


# Of tests of messages, tables and logs, which are made before ranks start or from what ranks wrote.
forked_by_day = pytest.mark.parametrize(
    "launch",
    [pytest.param(False, marks=pytest.mark.nightly, id="new processes"), pytest.param(True, id="forked")],
    indirect=True,
)


@pytest.fixture(params=[False, True], ids=["new processes", "forked"])
def launch(request: Any, tmp_path: pathlib.Path) -> Iterator[Callable[..., Launched]]:
    started: list[Launched] = []

    def start(script: str, *arguments: str, **env: str) -> Launched:
        started.append(Launched(tmp_path, request.param, script, *arguments, **env))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        until(lambda: one.left() == set())  # whatever the end of the job


WAIT = 'open("ready_" + rank, "w").close()\ntime.sleep(600)\n'
WITH_CHILD = 'subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])\n'


def test_all_ranks_succeed(launch: Any, tmp_path: pathlib.Path) -> None:
    done = launch(
        'print("I am", rank, "of", os.environ["RANK_SIZE"], sys.argv[1:], sys.stdin.read() == "")',
        "--ranks",
        "3",
        JOB_ID="77",
    ).end()
    assert (done.returncode, done.stdout) == (0, "I am 0 of 3 [] True\n")
    assert re.search(r"job 77: 3 ranks, logs in logs; .*\n.*all 3 ranks finished", done.stderr)
    for rank in range(3):
        header, line = (tmp_path / "logs" / f"rank_{rank}.log").read_text().splitlines()
        assert re.match(rf"== rank {rank} of job 77, \d{{4}}-", header)
        assert line == f"I am {rank} of 3 [] True"


@forked_by_day
def test_all_ranks_are_shown_with_their_numbers(launch: Any) -> None:
    script = 'print("a\\nb"); sys.stdout.write("1/2 \\r2/2\\r\\nno end"); sys.stdout.flush()\n'
    done = launch(script, "--ranks", "3", "--output", "all").end()
    assert done.returncode == 0 and "; showing all ranks" in done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        f"[rank {rank}] {line}" for rank in range(3) for line in ("a", "b", "2/2", "no end")
    )


@forked_by_day
def test_a_failure_that_all_have_seen_is_not_shown_again(launch: Any) -> None:
    done = launch('if rank == "1": raise ValueError("deep")\n', "--ranks", "2", "--output", "all").end()
    assert done.returncode == 1
    assert "[rank 1] ValueError: deep\n" in done.stdout and "ValueError" not in done.stderr
    assert "rank 1 failed with exit code 1" in done.stderr


@forked_by_day
def test_quiet_shows_the_ranks_and_errors_only(launch: Any) -> None:
    done = launch('print("once")', "--ranks", "2", "--quiet").end()
    assert (done.returncode, done.stdout, done.stderr) == (0, "once\n", "")
    done = launch("sys.exit(int(rank) * 3)", "--ranks", "2", "-q").end()
    assert done.returncode == 3 and "rank 1 failed with exit code 3" in done.stderr


@forked_by_day
def test_a_module_with_arguments(launch: Any) -> None:
    done = launch("print(sys.argv[1:], __name__)", "--ranks", "1", "-m", "a", "--ranks", "8", "x y").end()
    assert (done.returncode, done.stdout) == (0, "['--ranks', '8', 'x y'] __main__\n")


@forked_by_day
def test_logs_are_appended(launch: Any, tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        assert launch('print("once")', "--ranks", "1").end().stdout == "once\n"
    assert (tmp_path / "logs" / "rank_0.log").read_text().count("once") == 2


def test_failed_rank_is_reported_with_its_traceback_and_the_others_end(launch: Any) -> None:
    script = (
        WITH_CHILD
        + 'if rank != "2":\n    time.sleep(600)\ntry:\n    {}["no"]\nexcept KeyError:\n    raise ValueError("deep")\n'
    )
    job = launch(script, "--ranks", "4")
    done = job.end()
    assert done.returncode == 1
    assert re.search(
        r"rank 2 failed with exit code 1 after \d+ s; ending ranks 0, 1, 3\. Its log is logs/rank_2\.log and ends "
        r"with:\n.*Traceback[^$]*KeyError[^$]*During handling[^$]*ValueError: deep",
        done.stderr,
    )
    until(lambda: job.left() == set())


@forked_by_day
def test_a_known_error_of_a_rank_is_explained(launch: Any) -> None:
    raised = "raise RuntimeError('EI0004: Failed to parse the ranktable file')"
    done = launch(f"if rank == '1':\n    {raised}\ntime.sleep(9)", "--ranks", "2").end()
    assert re.search(r"RuntimeError: EI0004.*\n.*known error: The rank table is not JSON.*ranktable check", done.stderr)


def test_the_rank_that_fails_first_is_reported_and_not_those_that_lose_it(launch: Any) -> None:
    lost = 'raise RuntimeError(f"PeerLost: loss cannot complete: rank {} (process 1) has exited with an error.")\n'
    script = (
        f'if rank == "0":\n    {lost.format(2)}if rank == "2":\n    time.sleep(1)\n    {lost.format(1)}'
        'time.sleep(2)\nraise ValueError("cause")\n'
    )
    done = launch(script, "--ranks", "3").end()
    assert re.search(r"rank 1 failed with exit code 1 .*ends with:\n.*Traceback[^$]*ValueError: cause", done.stderr)
    assert "PeerLost" not in done.stderr


def test_a_rank_that_loses_one_whose_script_has_finished_is_reported(launch: Any) -> None:
    lost = 'time.sleep(1)\nraise RuntimeError("PeerLost: rank 0 (process 1) has exited (its script finished).")'
    done = launch(f'if rank == "0":\n    sys.exit()\n{lost}', "--ranks", "2").end()
    assert re.search(r"rank 1 failed with exit code 1 .*ends with:\n.*Traceback[^$]*PeerLost", done.stderr)


def test_of_two_failed_ranks_the_one_that_a_signal_ended_is_reported(launch: Any) -> None:
    job = launch(
        "while not os.path.exists('go'):\n    time.sleep(0.01)\n"
        "if rank == '1':\n    os.kill(os.getpid(), signal.SIGKILL)\nsys.exit(3)",
        *("--ranks", "2"),
    )
    until(lambda: len(job.left()) == 2 + job.others)
    job.process.send_signal(signal.SIGSTOP)
    (job.folder / "go").touch()
    until(lambda: len(job.left()) == job.others)
    job.process.send_signal(signal.SIGCONT)
    done = job.end()
    assert done.returncode == 137 and "rank 1 was ended by SIGKILL" in done.stderr, done.stderr


@forked_by_day
def test_output_on_the_terminal_is_repeated_only_where_frames_are_folded(launch: Any) -> None:
    done = launch('raise ValueError("cause")', "--ranks", "1").end()
    assert "ValueError" not in done.stderr and "ValueError: cause" in done.stdout
    done = launch('import json\njson.loads("{")', "--ranks", "1").end()
    assert re.search(r"\.\.\. \d frames of Python \.\.\.\n.*JSONDecodeError: Expecting", done.stderr)


@pytest.mark.parametrize(
    "ending, code",
    [("sys.exit(7)", 7), ("os.kill(os.getpid(), signal.SIGKILL)", 137), ("os.kill(os.getpid(), signal.SIGTERM)", 143)],
)
def test_exit_code_of_a_failed_rank(ending: str, code: int, launch: Any) -> None:
    done = launch(f'if rank == "1":\n    {ending}\ntime.sleep(600)', "--ranks", "2").end()
    assert done.returncode == code
    assert ("failed with exit code 7" if code == 7 else "was ended by SIG") in done.stderr


def test_children_of_a_finished_rank_are_killed(launch: Any) -> None:
    job = launch(WITH_CHILD, "--ranks", "2")
    assert job.end().returncode == 0
    until(lambda: job.left() == set())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_is_forwarded_and_ends_all_ranks(number: signal.Signals, launch: Any, tmp_path: pathlib.Path) -> None:
    script = (
        WITH_CHILD + 'def end(number, frame):\n    open("received_%s_%d" % (rank, number), "w")\n    sys.exit(0)\n'
        f"signal.signal({int(number)}, end)\n" + WAIT
    )
    job = launch(script, "--ranks", "2")
    job.wait_for("ready_0", "ready_1")
    job.process.send_signal(number)
    assert job.end().returncode == 128 + number
    until(lambda: job.left() == set())
    for rank in "01":
        assert (tmp_path / f"received_{rank}_{int(number)}").exists()


def test_second_signal_kills_ranks_that_do_not_end(launch: Any) -> None:
    job = launch("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAIT, "--ranks", "2")
    job.wait_for("ready_0", "ready_1")
    job.process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    begin = time.monotonic()
    job.process.send_signal(signal.SIGTERM)
    done = job.end()
    assert done.returncode == 143 and time.monotonic() - begin < 8
    assert "ranks 0, 1 did not end and are killed" in done.stderr


def test_user_signal_is_forwarded_and_ends_nothing(launch: Any) -> None:
    job = launch("signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))\n" + WAIT, "--ranks", "2")
    job.wait_for("ready_0", "ready_1")
    job.process.send_signal(signal.SIGUSR1)
    assert job.end().returncode == 0


def test_no_process_is_left_when_the_launcher_is_killed(launch: Any) -> None:
    stubborn = (
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\nif rank == '1': signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    )
    job = launch(stubborn + WITH_CHILD + WAIT, "--ranks", "3")
    job.wait_for("ready_0", "ready_1", "ready_2")
    assert len(job.left()) == 3 * 2 + job.others  # ranks and their children
    job.process.kill()
    until(lambda: job.left() == set())


def test_timeout(launch: Any) -> None:
    done = launch(WAIT, "--ranks", "2", "--timeout", "1").end()
    assert done.returncode == 124
    assert "timeout after 1 s (--timeout): ending ranks 0, 1" in done.stderr


def test_restarts_until_success(launch: Any, tmp_path: pathlib.Path) -> None:
    script = (
        'print("try", os.environ["NPU_SHIM_RESTART"])\n'
        'sys.exit(3 if rank == "1" and os.environ["NPU_SHIM_RESTART"] != "2" else 0)'
    )
    done = launch(script, "--ranks", "2", "--max-restarts", "5").end()
    assert done.returncode == 0
    assert re.findall(r"restart (\d) of 5", done.stderr) == ["1", "2"]
    assert re.findall(r"try (\d)", (tmp_path / "logs" / "rank_1.log").read_text()) == ["0", "1", "2"]


def test_failure_after_the_last_restart(launch: Any) -> None:
    done = launch("sys.exit(3)", "--ranks", "1", "--max-restarts", "1").end()
    assert done.returncode == 3 and done.stderr.count("failed with exit code 3") == 2


def test_rank_that_cannot_start(launch: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "logs" / "rank_1.log").mkdir(parents=True)
    job = launch(WAIT, "--ranks", "2")
    done = job.end()
    assert done.returncode == 126 and "rank 1 cannot start: " in done.stderr
    until(lambda: job.left() == set())


def test_job_continues_when_its_output_is_closed(launch: Any, tmp_path: pathlib.Path) -> None:
    job = launch('for _ in range(20):\n    print("x" * 10000)\n    time.sleep(0.02)\nopen("done", "w")', "--ranks", "1")
    job.process.stdout.close()
    until(lambda: job.process.poll() is not None)
    assert job.process.returncode == 0 and (tmp_path / "done").exists()


@forked_by_day
def test_dry_run_prints_shell_commands(launch: Any, tmp_path: pathlib.Path) -> None:
    job = launch(
        'print(rank, os.environ["RANK_SIZE"], sorted(os.sched_getaffinity(0)), os.environ.get("CM_CHIEF_IP"))',
        "--ranks",
        "2",
        "--bind-cores",
        "--dry-run",
        CM_CHIEF_IP="1.2.3.4",
    )
    done = job.end()
    assert done.returncode == 0 and not (tmp_path / "logs").exists()
    (tmp_path / "logs").mkdir()
    cores = share_cores(sorted(os.sched_getaffinity(0)), 2)
    for rank, line in enumerate(done.stdout.splitlines()):
        subprocess.run(line, shell=True, cwd=str(tmp_path), check=True, env=job.environ)
        assert (tmp_path / "logs" / f"rank_{rank}.log").read_text() == f"{rank} 2 {list(cores[rank])} None\n"
    assert rank == 1


@forked_by_day
def test_rank_table_of_the_environment(launch: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.json").write_text(TWO_SERVERS % "127.0.0.1")
    done = launch(
        'print(rank, [os.environ[n] for n in ("RANK_SIZE", "DEVICE_ID", "RANK_TABLE_FILE")])',
        "--server-index",
        "0",
        RANK_TABLE_FILE="t.json",
    ).end()
    assert done.stdout == f"0 ['4', '4', '{tmp_path / 't.json'}']\n"
    assert "ranks 0 to 1 of 4" in done.stderr


WAITING = '{"status": "initializing"}'


@forked_by_day
def test_job_starts_when_its_table_is_complete(launch: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.json").write_text(WAITING)
    job = launch('print(rank, os.environ["RANK_SIZE"])', "--ranktable", "t.json", "--server-index", "0")
    line = job.process.stderr.readline()
    assert "t.json is 'initializing'; waiting until it is complete, at most 600 s" in line
    assert not (tmp_path / "logs").exists()
    (tmp_path / "new.json").write_text(TWO_SERVERS % "127.0.0.1")
    (tmp_path / "new.json").replace(tmp_path / "t.json")
    done = job.end()
    assert (done.returncode, done.stdout) == (0, "0 4\n")


@forked_by_day
def test_table_timeout_and_dry_run_without_a_wait(launch: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.json").write_text(WAITING)
    late = launch("", "--ranktable", "t.json", "--table-timeout", "0.3").end()
    assert late.returncode == 124 and "error: t.json was not complete within 0.3 s" in late.stderr
    begin = time.monotonic()
    dry = launch("", "--ranktable", "t.json", "--dry-run").end()
    assert dry.returncode == 124 and dry.stdout == "" and time.monotonic() - begin < 30
    job = launch("", "--ranktable", "t.json")
    job.process.stderr.readline()
    job.process.send_signal(signal.SIGINT)
    assert job.end().returncode == 130
    assert not (tmp_path / "logs").exists()


def test_killed_guardian_does_not_end_the_job(launch: Any, tmp_path: pathlib.Path) -> None:
    script = (
        'open("ready_" + rank, "w").close()\nwhile not os.path.exists("go"):\n    time.sleep(0.02)\n'
        'sys.exit(5 if os.environ["NPU_SHIM_RESTART"] == "0" else 0)'
    )
    job = launch(script, "--ranks", "1", "--max-restarts", "1")
    job.wait_for("ready_0")
    guardian = [pid for pid in job.left() if b"guardian.py" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(guardian) == 1
    os.kill(int(guardian[0]), signal.SIGKILL)
    (tmp_path / "go").touch()
    done = job.end()
    assert done.returncode == 0 and "restart 1 of 1" in done.stderr
