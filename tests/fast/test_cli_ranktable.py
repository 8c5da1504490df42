"""``npu-shim ranktable``: make, check, show, convert, and the tables of samples/."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import socket
from typing import Any, Callable, List, Tuple

import pytest

from npu_shim import cli
from npu_shim.cli import ranktable as verb
from npu_shim.distributed.ranktable import allocation, generate, rootinfo
from npu_shim.distributed.ranktable.reader import parse_table, read_table, read_with_problems

HCCN = """address_0=192.168.100.101
netmask_0=255.255.255.0
netdetect_0=192.168.100.1
 address_1 = 192.168.101.101
address_5=fd00::5
"""
ROOT_INFO = """{"version": "2.0", "topo_file_path": "/topo.json", "rank_count": 1, "rank_list": [{"device_id": 3,
 "local_id": 3, "level_list": [{"net_layer": 0, "net_instance_id": "OS", "net_type": "TOPO_FILE_DESC", "rank_addr_list":
 [{"addr_type": "EID", "addr": "000000000000000000000000000000a0", "ports": ["0/4"]}]}]}]}"""
Run = Callable[..., Tuple[int, str, List[str]]]


@pytest.fixture
def run(monkeypatch: Any, capsys: Any, tmp_path: pathlib.Path) -> Run:
    """Return a function run('make', ...) -> (exit code, output, lines of standard error), without a hccn.conf."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANK_TABLE_FILE", raising=False)
    monkeypatch.setattr(generate, "HCCN_CONF", str(tmp_path / "hccn.conf"))
    monkeypatch.setattr(rootinfo, "ROOT_INFO", str(tmp_path / "hccl_rootinfo.json"))

    def do(*arguments: str) -> tuple[int, str, list[str]]:
        try:
            code = cli.main(["ranktable", *arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        errors = capsys.readouterr()
        return (
            code,
            errors.out,
            [
                line[len("npu-shim ranktable: ") :]
                for line in errors.err.splitlines()
                if line.startswith("npu-shim ranktable: ")
            ],
        )

    return do


def rows(text: str) -> list[tuple[int, str, int, Any]]:
    """Return rank, server, device and address of the ranks of a table."""
    return [
        (device.rank, server.server_id, device.device_id, device.device_ip)
        for server, device in parse_table(text).placements()
    ]


# --- make ----------------------------------------------------------------------
def test_hosts_and_counts(run: Run) -> None:
    code, out, errors = run("make", "--hosts", "10.0.0.1:2, 10.0.0.2:4-5,[fd00::1]:1")
    assert code == 0 and rows(out) == [
        (0, "10.0.0.1", 0, "192.168.100.1"),
        (1, "10.0.0.1", 1, "192.168.101.1"),
        (2, "10.0.0.2", 4, "192.168.100.4"),
        (3, "10.0.0.2", 5, "192.168.101.4"),
        (4, "fd00::1", 0, "192.168.100.5"),
    ]
    assert errors == [
        "the device_ip of 10.0.0.1, 10.0.0.2, fd00::1 are placeholders, which work on the CPU only. For NPUs pass "
        f"each host's {generate.HCCN_CONF}: --hccn HOST=FILE."
    ]


def test_placeholder_addresses_are_unique(run: Run) -> None:
    hosts = ",".join(f"h{i}:16" for i in range(126))
    code, out, _ = run("make", "--hosts", hosts)
    found = rows(out)
    assert code == 0 and len({address for _, _, _, address in found}) == len(found) == 126 * 16
    assert read_with_problems(out) == (parse_table(out), ())


def test_devices_of_this_machine(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "hccn.conf").write_text(HCCN)
    code, out, errors = run("make")
    assert code == 0 and errors == [f"using the devices of 127.0.0.1 from {tmp_path / 'hccn.conf'}."]
    assert rows(out) == [
        (0, "127.0.0.1", 0, "192.168.100.101"),
        (1, "127.0.0.1", 1, "192.168.101.101"),
        (2, "127.0.0.1", 5, "fd00::5"),
    ]
    assert rows(run("make", "--hosts", "127.0.0.1:1-1")[1]) == [(0, "127.0.0.1", 1, "192.168.101.101")]
    name = socket.gethostname()
    assert [row[1] for row in rows(run("make", "--hosts", f"{name},192.0.2.1:1")[1])] == [name] * 3 + ["192.0.2.1"]
    code, out, errors = run("make", "--hosts", "192.0.2.1:2")  # another machine
    assert code == 0 and rows(out)[0] == (0, "192.0.2.1", 0, "192.168.100.1") and "placeholders" in errors[0]


def test_hccn_files_of_other_hosts(run: Run, tmp_path: pathlib.Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.conf").write_text(HCCN.replace("101", name == "a" and "11" or "12"))
    code, out, errors = run(
        "make", "--hosts", "10.0.0.1,[fd00::2]:0-1", "--hccn", "10.0.0.1=a.conf", "--hccn", "fd00::2=b.conf"
    )
    assert code == 0 and [row[1:] for row in rows(out)] == [
        ("10.0.0.1", 0, "192.168.100.11"),
        ("10.0.0.1", 1, "192.168.11.11"),
        ("10.0.0.1", 5, "fd00::5"),
        ("fd00::2", 0, "192.168.100.12"),
        ("fd00::2", 1, "192.168.12.12"),
    ]
    assert errors == ["using the devices of 10.0.0.1 from a.conf.", "using the devices of fd00::2 from b.conf."]
    assert run("make", "--hosts", "10.0.0.9", "--hccn", "a.conf")[1].count('"rank_id"') == 3


@pytest.mark.parametrize("dialect", ["server_list", "lab", "pod"])
def test_make_writes_each_dialect(dialect: str, run: Run) -> None:
    code, out, _ = run("make", "--hosts", "10.0.0.1:8,10.0.0.2:8", "--dialect", dialect)
    table, problems = read_with_problems(out, "910")
    assert code == 0 and table is not None and (table.dialect, table.size, problems) == (dialect, 16, ())


def test_hosts_with_ascend_950(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "b.json").write_text(ROOT_INFO.replace("OS", "os-b").replace("a0", "b0"))
    (tmp_path / "hccl_rootinfo.json").write_text(ROOT_INFO.replace("OS", "os-a"))
    code, out, errors = run(
        "make", "--product", "A5", "--hosts", "127.0.0.1,b", "--rootinfo", "b=b.json", "-o", "t.json"
    )
    assert (code, out) == (0, "")
    assert errors == [
        f"using the devices of 127.0.0.1 from {rootinfo.ROOT_INFO}.",
        "using the devices of b from b.json.",
    ]
    assert run("check", "t.json") == (
        0,
        "t.json: 2 ranks on 2 servers, rank_list 2.0, completed; no problems found\n",
        [],
    )
    assert run("show", "t.json")[1].splitlines()[2:] == [
        "rank  server  device  address",
        "0     os-a    3       000000000000000000000000000000a0",
        "1     os-b    3       000000000000000000000000000000b0",
    ]
    code, out, errors = run("make", "--dialect", "rank_list", "--hosts", "x:2")
    assert code == 0 and errors == [
        "the addresses of x are placeholders, which work on the CPU only. For NPUs pass each host's "
        f"{rootinfo.ROOT_INFO}: --rootinfo HOST=FILE."
    ]
    assert [(s.server_id, d.device_id, d.addresses) for s, d in parse_table(out).placements()] == [
        ("x", 0, ("192.168.100.1",)),
        ("x", 1, ("192.168.101.1",)),
    ]
    assert run("make", "--product", "A3", "--hosts", "x:2")[1] == run("make", "--hosts", "x:2")[1]


# --- make from an allocation -----------------------------------------------------
def starter(folder: pathlib.Path, name: str, body: str, monkeypatch: Any) -> None:
    """Put a command on PATH. It logs its arguments, and ``host N NAME [FILE]`` runs the script as on a host."""
    (folder / "bin").mkdir(exist_ok=True)
    path = folder / "bin" / name
    path.write_text(
        f"""#!/bin/sh
echo "$0 $@" >> {folder}/calls
for script; do :; done
host() {{ OMPI_COMM_WORLD_RANK=$1 SLURM_PROCID=$1 SLURMD_NODENAME=$2 sh -c "$(echo "$script" | sed "s|{folder}/hccn.conf|${{3:-none}}|")"; }}
{body}
"""
    )
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")


def test_hosts_of_a_hostfile(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "hosts").write_text("a slots=2\nb:1\n")
    code, out, errors = run("make", "--hostfile", "hosts")
    assert code == 0 and out == run("make", "--hosts", "a:2,b:1")[1] and "placeholders" in errors[0]


def test_hosts_of_slurm(run: Run, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    for name in ("n08", "n10"):
        (tmp_path / f"{name}.conf").write_text(HCCN.replace("101", name[1:]))
    hosts = "".join(f"host {at} {name} {tmp_path}/{name}.conf\n" for at, name in ((1, "n10"), (0, "n08")))
    starter(tmp_path, "srun", "echo a line of the site\n" + hosts, monkeypatch)
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[08,10]")
    for name in ("SLURM_NTASKS", "SLURM_TASKS_PER_NODE"):
        monkeypatch.delenv(name, raising=False)
    code, out, errors = run("make", "--slurm")
    assert (code, errors) == (0, []) and [row[1:] for row in rows(out)] == [
        ("n08", 0, "192.168.100.08"),
        ("n08", 1, "192.168.08.08"),
        ("n08", 5, "fd00::5"),
        ("n10", 0, "192.168.100.10"),
        ("n10", 1, "192.168.10.10"),
        ("n10", 5, "fd00::5"),
    ]
    assert f"{tmp_path}/bin/srun --nodes=2 --ntasks=2 --ntasks-per-node=1 sh -c" in (tmp_path / "calls").read_text()
    monkeypatch.setenv("SLURM_NTASKS", "3")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "2,1")
    assert [row[1:3] for row in rows(run("make", "--slurm")[1])] == [("n08", 0), ("n08", 1), ("n10", 0)]


@pytest.mark.parametrize(
    "version, arguments, call",
    [
        (
            "mpirun (Open MPI) 5.0.11",
            ["--hosts", "a:2,b:1"],
            "bin/mpirun --host a,b --map-by ppr:1:node --allow-run-as-root sh -c",
        ),
        (
            "mpirun (Open MPI) 5.0.11",
            ["--hostfile", "hosts"],
            "bin/mpirun --host a,b --map-by ppr:1:node --allow-run-as-root sh -c",
        ),
        ("mpirun (Open MPI) 5.0.11", [], "bin/mpirun --map-by ppr:1:node --allow-run-as-root sh -c"),
        ("HYDRA build details:", ["--hosts", "a:2,b:1"], "bin/mpirun -hosts a,b -ppn 1 -n 2 sh -c"),
        ("Intel(R) MPI Library for Linux", ["--hosts", "a:2,b:1"], "bin/mpirun -hosts a,b -ppn 1 -n 2 sh -c"),
    ],
)
def test_mpirun_gathers_the_devices(
    version: str, arguments: list[str], call: str, run: Run, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    (tmp_path / "hosts").write_text("a slots=2\nb slots=1\n")
    (tmp_path / "one.conf").write_text(HCCN)
    hosts = f"host 0 a.site {tmp_path}/one.conf\nhost 1 b.site {tmp_path}/one.conf"
    starter(tmp_path, "mpirun", f'[ "$1" = --version ] && {{ echo "{version}"; exit; }}\n{hosts}', monkeypatch)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    code, out, errors = run("make", "--mpi", *arguments)
    names = ("a", "b") if arguments else ("a.site", "b.site")
    wanted = [(names[0], 0), (names[0], 1), (names[1], 0)] if arguments else [(n, d) for n in names for d in (0, 1, 5)]
    assert code == 0 and [row[1:3] for row in rows(out)] == wanted
    assert call in (tmp_path / "calls").read_text()


GATHERING = [
    ("--slurm --hosts a:1", "", "--slurm and --hosts both name the hosts. Keep one."),
    ("--hosts a:1 --hostfile f", "", "--hosts and --hostfile both name the hosts. Keep one."),
    ("--slurm", "NODES=", "--slurm needs an allocation, but SLURM_JOB_NODELIST is not set. Run the command in a batch"),
    ("--slurm", "NODES=n[1", "SLURM_JOB_NODELIST='n[1' is no list of nodes, such as node[01-04,7]."),
    ("--slurm", "TASKS=1", "SLURM_TASKS_PER_NODE='1' does not have the tasks of SLURM_JOB_NODELIST='n[1-2]'."),
    ("--slurm", "exit 3", "srun failed with code 3: no message. Run it yourself: srun --nodes=2"),
    ("--slurm", "echo no nodes >&2; exit 1", "srun failed with code 1: no nodes. Run it yourself: srun --nodes=2"),
    ("--slurm", "true", "no host printed its name. Run the command again, or pass each host's file."),
    (
        "--slurm",
        "echo npu-shim-host 0 n1 %%",
        "a host printed 'npu-shim-host 0 n1 %%', which is damaged. Run the command",
    ),
    ("--slurm", "host 0 n1", "1 host answered (n1), but 2 are named (n1, n2). Name each host once."),
    ("--mpi --hosts a:1", "missing", "there is no mpirun, which starts processes on several hosts. Install it on each"),
    (
        "--mpi --hosts a:1",
        "echo aprun 7",
        "{folder}/bin/mpirun --version prints 'aprun 7', but --mpi knows Open MPI, MPICH and Intel MPI.",
    ),
    ("--mpi", "echo HYDRA", "--mpi needs --hosts or --hostfile with MPICH and Intel MPI. Name the hosts."),
]


@pytest.mark.parametrize("arguments, body, text", GATHERING, ids=[f"{g[0]} {g[1]}" for g in GATHERING])
def test_errors_of_an_allocation(
    arguments: str, body: str, text: str, run: Run, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    (tmp_path / "f").write_text("a slots=1")
    starter(tmp_path, "srun", body, monkeypatch)
    if body == "missing":
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    else:
        starter(tmp_path, "mpirun", body, monkeypatch)
    monkeypatch.setenv("SLURM_JOB_NODELIST", body[6:] if body.startswith("NODES=") else "n[1-2]")
    monkeypatch.setenv("SLURM_NTASKS", "2")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", body[6:] if body.startswith("TASKS=") else "1(x2)")
    code, out, errors = run("make", *arguments.split())
    assert (code, out) == (2, "") and errors[-1].startswith("error: " + text.replace("{folder}", str(tmp_path))), errors


@pytest.mark.parametrize(
    "text, names",
    [
        ("a,b-1", ["a", "b-1"]),
        ("n[08-10,3],x", ["n08", "n09", "n10", "n3", "x"]),
        ("r[1-2]n[1-2]-ib", ["r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"]),
    ],
)
def test_lists_of_nodes(text: str, names: list[str]) -> None:
    assert list(allocation.expand_nodes(text)) == names


WRONG = [
    (
        ("make",),
        "host 127.0.0.1: the number of devices is unknown. Write 127.0.0.1:8, or pass its hccn.conf: --hccn "
        "127.0.0.1=FILE.",
    ),
    (
        ("make", "--hosts", "10.0.0.1:8:8"),
        "--hosts '10.0.0.1:8:8': '10.0.0.1:8:8' is not allowed. Write HOST:COUNT (10.0.0.1:8) or HOST:FIRST-LAST "
        "(10.0.0.1:4-7), with IPv6 addresses in brackets ([fd00::1]:8).",
    ),
    (
        ("make", "--hosts", "a:0"),
        "--hosts 'a:0': 'a:0' names no device. Write 10.0.0.1:8 for devices 0 to 7, or 10.0.0.1:4-7 for devices 4 to "
        "7.",
    ),
    (("make", "--hosts", "a:7-4"), "--hosts 'a:7-4': 'a:7-4' names no device."),
    (
        ("make", "--hosts", "a:0-3,a:4-7"),
        "--hosts 'a:0-3,a:4-7': 'a' is named twice. Name each host once, with all its devices.",
    ),
    (
        ("make", "--hosts", "a:99"),
        "placeholder addresses exist for 126 hosts with 64 devices only. Pass the hccn.conf of each host: --hccn "
        "HOST=FILE.",
    ),
    (
        ("make", "--hosts", "a:8", "--hccn", "good.conf"),
        "host a: its hccn.conf has no device 2, 3, 4, 6, 7; it has 0, 1, 5. Name only these.",
    ),
    (
        ("make", "--hosts", "a:1,b:1", "--hccn", "good.conf"),
        "--hccn good.conf: there are 2 hosts. Name the host: --hccn a=good.conf.",
    ),
    (
        ("make", "--hosts", "a:1", "--hccn", "b=good.conf"),
        "--hccn b=good.conf: b is not one of the hosts a. Name one of --hosts.",
    ),
    (("make", "--hosts", "a:1", "--hccn", "no.conf"), "file not found: no.conf"),
    (
        ("make", "--hosts", "a:1", "--hccn", "empty.conf"),
        "empty.conf has no line address_N=..., so the devices of this host are unknown. Set the addresses with "
        "hccn_tool, or give the number of devices: --hosts HOST:8.",
    ),
    (
        ("make", "--hosts", "a:1", "--hccn", "twice.conf"),
        "twice.conf, line 2: address_0 is 10.0.0.2, but 10.0.0.1 in an earlier line. Keep the one that hccn_tool "
        "shows.",
    ),
    (
        ("make", "--hosts", "a:1", "-o", "no/such/folder.json"),
        "-o no/such/folder.json cannot be written: folder not found: ",
    ),
    (
        ("make", "--hosts", "a:1", "-o", "twice.conf"),
        "twice.conf already exists and differs. Write another file, or use --force.",
    ),
    (
        ("make", "--hosts", "a", "--product", "A5", "--rootinfo", "good.conf"),
        "good.conf: line 1, column 1: is not JSON: expecting value",
    ),
    (
        ("make", "--hosts", "a:1", "--product", "A5", "--hccn", "good.conf"),
        "--hccn is not for --dialect rank_list. Pass each host's ",
    ),
    (
        ("make", "--hosts", "a:1", "--rootinfo", "good.conf"),
        "--rootinfo is not for --dialect server_list. Pass each host's ",
    ),
    (
        ("make", "--hosts", "a:1", "--product", "A5", "--dialect", "lab"),
        "--product A5 does not read --dialect lab. Use --dialect rank_list.",
    ),
    (
        ("make", "--hosts", "a:1", "--product", "A2", "--dialect", "rank_list"),
        "--product A2 does not read --dialect rank_list. rank_list is for A5 only.",
    ),
    (
        ("make", "--hosts", "a", "--product", "A5"),
        "host a: the number of devices is unknown. Write a:8, or pass its hccl_rootinfo.json: --rootinfo a=FILE.",
    ),
    (
        ("make", "--hosts", "a:99", "--product", "A5"),
        "placeholder addresses exist for 126 hosts with 64 devices only. Pass the hccl_rootinfo.json of each host: ",
    ),
    (
        ("convert", "mixed.json", "--to", "2.0"),
        "version '2.0' needs the level_list of each device, its addresses and ports in each net layer, which a "
        "server_list of version 1.0 does not have. Make a new table from each host's /etc/hccl_rootinfo.json",
    ),
    (
        ("convert", "mixed.json", "--to", "1.2"),
        "version '1.2' needs a super_pod_list and the super_device_id of each device, which this table does not have.",
    ),
    (("show", "none.json"), "file not found: none.json"),
    (("show", "good.conf"), "good.conf: line 1, column 1: is not JSON: expecting value"),
    (("check", "none.json"), "file not found: none.json"),
    (("convert", "broken.json"), "broken.json: $: has none of server_list, rank_list and group_list."),
    (
        ("convert", "mixed.json", "--to", "pod"),
        "the dialect 'pod' has no rank ids and numbers the ranks in file order, but here they are 0, 2, 1. "
        "Use the dialect 'server_list' or 'lab'.",
    ),
]


@pytest.mark.parametrize("arguments, text", WRONG, ids=[" ".join(w[0]) for w in WRONG])
def test_wrong_usage_and_unreadable_files(arguments: Any, text: str, run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "good.conf").write_text(HCCN)
    (tmp_path / "empty.conf").write_text("netmask_0=255.255.255.0\n")
    (tmp_path / "twice.conf").write_text("address_0=10.0.0.1\naddress_0=10.0.0.2\n")
    (tmp_path / "broken.json").write_text("{}")
    made = json.loads(run("make", "--hosts", "a:2,b:1")[1])
    made["server_list"][0]["device"][1]["rank_id"], made["server_list"][1]["device"][0]["rank_id"] = "2", "1"
    (tmp_path / "mixed.json").write_text(json.dumps(made))
    before = sorted(os.listdir(str(tmp_path)))
    code, out, errors = run(*arguments)
    assert (code, out) == (2, "") and errors[-1].startswith("error: " + text)
    assert sorted(os.listdir(str(tmp_path))) == before


# --- check ---------------------------------------------------------------------
def test_check_of_a_valid_table(run: Run) -> None:
    for _ in range(2):  # the same content needs no --force
        assert run("make", "--hosts", "10.0.0.1:8,10.0.0.2:8", "-o", "t.json")[:2] == (0, "")
    assert run("check", "t.json") == (
        0,
        "t.json: 16 ranks on 2 servers, server_list 1.0, completed; no problems found\n",
        [],
    )
    code, out, _ = run("check", "t.json", "--json")
    assert (code, json.loads(out)) == (0, {"file": "t.json", "problems": []})


def test_check_lists_problems_with_their_path(run: Run, tmp_path: pathlib.Path) -> None:
    text = run("make", "--hosts", "10.0.0.1:3,10.0.0.2:3")[1]
    bad = text.replace('"rank_id": "5"', '"rank_id": "4"').replace('count": "2"', 'count": "1"')
    (tmp_path / "t.json").write_text(bad)
    code, out, _ = run("check", "t.json")
    assert code == 1 and out.splitlines() == [
        't.json: error: $.server_count: is \'1\', but there are 2 entries in server_list. Write "server_count": "2", '
        "or complete the list",
        "t.json: error: $.server_list[1].device[2].rank_id: rank 4 is given twice, first at "
        "$.server_list[1].device[1].rank_id. Use each rank from 0 to 5 once; rank 5 is missing",
        "t.json: warning: $.server_list[0].device: server '10.0.0.1' has 3 devices (0, 1, 2). Atlas training servers "
        "(910) use 1, 2, 4 or 8 devices",
        "t.json: warning: $.server_list[1].device: server '10.0.0.2' has 3 devices (0, 1, 2). Atlas training servers "
        "(910) use 1, 2, 4 or 8 devices",
    ]
    code, out, _ = run("check", "t.json", "--product", "cpu", "--json")
    assert code == 1 and [p["severity"] for p in json.loads(out)["problems"]] == ["error", "error"]
    (tmp_path / "t.json").write_text(text)
    assert [run("check", "t.json", "--product", product)[0] for product in ("910", "A2", "A3", "cpu")] == [1, 0, 0, 0]


def test_check_of_a_file_that_is_not_json(run: Run, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    (tmp_path / "t.json").write_text("{")
    code, out, _ = run("check", "t.json")
    assert code == 2 and out.startswith("t.json: error: line 1, column 2: is not JSON")
    monkeypatch.setenv("RANK_TABLE_FILE", str(tmp_path / "t.json"))
    assert run("check") == (2, out.replace("t.json", str(tmp_path / "t.json")), [])


# --- show and convert ----------------------------------------------------------
def test_show_lists_the_ranks(run: Run) -> None:
    run("make", "--hosts", "10.0.0.1:2,host:1", "-o", "t.json")
    assert run("show", "t.json") == (
        0,
        """t.json: 3 ranks on 2 servers, server_list 1.0, completed

rank  server    device  device_ip
0     10.0.0.1  0       192.168.100.1
1     10.0.0.1  1       192.168.101.1
2     host      0       192.168.100.3
""",
        [],
    )
    found = json.loads(run("show", "t.json", "--json")[1])
    assert found["dialect"] == "server_list" and found["servers"][1]["devices"][0]["rank"] == 2


def test_convert_removes_comments_and_extra_commas(run: Run, tmp_path: pathlib.Path) -> None:
    text = run("make", "--hosts", "10.0.0.1:2")[1]
    (tmp_path / "manual.json").write_text(
        text.replace('"1.0",', '"1.0",   // the version').replace('"1"}\n', '"1"},\n')
    )
    assert run("check", "manual.json")[0] == 1
    assert run("convert", "manual.json") == (0, text, [])
    assert run("convert", "manual.json", "-o", "manual.json", "--force") == (0, "", [])
    assert (tmp_path / "manual.json").read_text() == text and run("check", "manual.json")[0] == 0


def test_convert_version_2(run: Run, tmp_path: pathlib.Path) -> None:
    run("make", "--product", "A5", "--hosts", "a:2", "-o", "new.json")
    text = (tmp_path / "new.json").read_text()
    (tmp_path / "manual.json").write_text("// by hand\n" + text.replace('"rank_id": 1', '"rank_id": "1"'))
    assert "line 1, column 1: is not JSON: it has a comment" in run("check", "manual.json")[1]
    assert run("convert", "manual.json") == run("convert", "manual.json", "--to", "2.0") == (0, text, [])
    code, out, errors = run("convert", "new.json", "--to", "1.0")
    assert code == 0 and rows(out) == [(0, "a", 0, None), (1, "a", 1, None)]
    assert errors == [
        "dropped local_id, level_list, net_layer, net_instance_id, net_type, rank_addr_list, addr_type, addr, ports: the "
        "version 1.0 has no such keys."
    ]
    said = [errors[0].replace("version 1.0", "dialect server_list")]
    assert run("convert", "new.json", "--to", "server_list") == (0, out, said)


def test_failed_write_leaves_no_file(run: Run, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    def full(*paths: str) -> None:
        raise OSError(28, "No space left on device", paths[0])

    monkeypatch.setattr(verb.os, "replace", full)
    code, _, errors = run("make", "--hosts", "a:1", "-o", "t.json")
    assert (
        code == 2 and errors[-1] == "error: t.json.part: No space left on device." and os.listdir(str(tmp_path)) == []
    )


# --- samples/ranktables --------------------------------------------------------
def test_samples_are_the_output_of_make(run: Run, repo_root: pathlib.Path) -> None:
    folder = repo_root / "samples" / "ranktables"
    commands = re.findall(r"^npu-shim ranktable (make .+) -o (\S+)$", (folder / "make.sh").read_text(), re.M)
    assert sorted(name for _, name in commands) == sorted(path.name for path in folder.glob("*.json"))
    sizes = []
    for arguments, name in commands:
        code, out, _ = run(*shlex.split(arguments))
        assert code == 0 and out == (folder / name).read_text()
        assert run("check", str(folder / name))[0] == 0
        sizes.append(read_table(str(folder / name)).size)
    assert sizes == [1, 2, 4, 8, 16]
