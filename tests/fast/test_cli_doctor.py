"""``npu-shim doctor``: its findings on machines of all kinds, and its page."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import sys
from typing import Any, Callable, Dict, Iterator, Mapping

import pytest

from npu_shim import cli
from npu_shim._host import host_device, host_env, mpirun
from npu_shim._host.packages import install_command, version_of
from npu_shim.cli._diagnostics import diagnosis
from npu_shim.cli._diagnostics.environment import HIDDEN, environment_facts, rank_table_facts, visibility_contradictions
from npu_shim.cli._diagnostics.host import host_facts
from npu_shim.cli._diagnostics.node import root_info_facts
from npu_shim.cli._diagnostics.probe import TensorFlowFacts, probe
from npu_shim.cli._diagnostics.vendor import PACKAGES, Component, vendor_facts

pytestmark = pytest.mark.smoke

TRAINED = {
    "tensorflow": "2.15.1",
    "tensorflow_path": "/tf",
    "import_seconds": 1.5,
    "numpy": "1.26",
    "protobuf": "4.25",
    "estimator": True,
    "keras_sessions": True,
    "trained_on": "cpu",
    "step_seconds": 0.1,
    "error": None,
}


TABLE = """{"version": "1.0", "status": "completed", "server_count": "1", "server_list": [{"server_id": "s", "device": [
    {"device_id": "0", "device_ip": "10.0.0.1", "rank_id": "0"},
    {"device_id": "5", "device_ip": "10.0.0.2", "rank_id": "1"}]}]}"""


@pytest.fixture
def doctor(monkeypatch: Any, capsys: Any) -> Callable[..., Any]:
    """doctor('--json', probe={...}, RANK_SIZE='2') returns the exit code and the output, without TensorFlow."""

    def run(*arguments: str, probe: dict[str, Any] = TRAINED, **env: str) -> Any:
        for name in list(os.environ):
            if name in host_env.VARIABLES:
                monkeypatch.delenv(name)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(diagnosis, "probe", lambda: TensorFlowFacts.from_json(probe))
        return cli.main(["doctor", *arguments]), capsys.readouterr().out

    return run


def write(root: pathlib.Path, files: Mapping[str, str]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


# --- the page ------------------------------------------------------------------
def test_a_machine_that_can_train(doctor: Any) -> None:
    code, out = doctor()
    assert code == 0
    assert out.splitlines()[-1] == "Training can run here."
    for text in (
        "2.15.1 (/tf), imported in 1.5 s",
        "Estimator: yes",
        "trained on the cpu in 0.1 s",
        "cpu: the driver shows no card (/dev/davinci[0-9]* matches nothing)",
        sys.version.split()[0],
    ):
        assert text in out
    assert [line.split()[0] for line in out.splitlines() if line.endswith("  missing")] == [
        "driver",
        "toolkit",
        *PACKAGES,
    ]


@pytest.mark.parametrize(
    "probed, reason",
    [
        (
            {"error": "importing TensorFlow failed: ImportError: nothing there"},
            "importing TensorFlow failed: ImportError: nothing there",
        ),
        (
            {**TRAINED, "error": "training a step with TensorFlow 2.15.1 failed: x"},
            "training a step with TensorFlow 2.15.1 failed: x",
        ),
    ],
)
def test_a_machine_that_cannot_train_reports_the_reason_last(probed: dict[str, Any], reason: str, doctor: Any) -> None:
    code, out = doctor(probe=probed)
    assert code == 1
    assert out.splitlines()[-2:] == ["Training cannot run here:", "  " + reason]


def test_a_contradiction_is_shown_and_not_raised(doctor: Any) -> None:
    code, out = doctor(RANK_SIZE="4")
    assert code == 1
    assert "  RANK_SIZE         '4'" in out.splitlines()
    assert out.splitlines()[-1].startswith("  RANK_SIZE=4 needs RANK_ID, which is not set")
    assert "unknown: RANK_SIZE=4 needs RANK_ID" in out


def test_an_unreadable_rank_table_is_a_problem_only_with_several_ranks(doctor: Any) -> None:
    code, out = doctor(RANK_TABLE_FILE="/no/such.json", RANK_SIZE="1")
    assert code == 0
    assert "note: RANK_TABLE_FILE='/no/such.json' cannot be used: No such file or directory." in out
    for ranks in ({}, {"RANK_SIZE": "2", "RANK_ID": "0"}):
        code, out = doctor(RANK_TABLE_FILE="/no/such.json", **ranks)
        assert code == 1
        assert out.splitlines()[-2:] == [
            "Training cannot run here:",
            "  RANK_TABLE_FILE='/no/such.json' cannot be used: No such file or directory. "
            "Correct it, or create one with npu-shim ranktable make.",
        ]


def test_a_rank_table_is_read_and_checked(doctor: Any, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, {"table.json": TABLE}) + "/table.json"
    code, out = doctor(RANK_TABLE_FILE=path, RANK_ID="1")
    assert code == 0
    assert f"  rank table        {path}: 2 ranks on 1 server, version 1.0" in out.splitlines()
    assert f"note: RANK_TABLE_FILE={path!r}: $.server_list[0].device: devices 0, 5 of server 's' are in both" in out
    code, out = doctor(RANK_TABLE_FILE=path, RANK_ID="1", RANK_SIZE="4")
    assert code == 1
    assert out.splitlines()[-1].startswith(f"  RANK_SIZE=4 contradicts RANK_TABLE_FILE={path!r}, which has 2 ranks")
    code, out = doctor(RANK_TABLE_FILE=path, RANK_ID="2")
    assert code == 1
    assert out.splitlines()[-1].startswith(
        f"  RANK_ID=2 is not in RANK_TABLE_FILE={path!r}, which has the ranks 0 to 1"
    )


def test_a_tensorflow_without_estimator_is_a_note(doctor: Any) -> None:
    code, out = doctor(probe={**TRAINED, "tensorflow": "2.21.0", "estimator": False})
    assert code == 0
    assert "note: TensorFlow 2.21.0 has no tf.estimator" in out


def test_json_has_the_facts_of_the_page(doctor: Any) -> None:
    code, out = doctor("--json", RANK_ID="0", MY_NAME="not ours")
    found = json.loads(out)
    assert (code, found["schema"], found["problems"], found["notes"]) == (0, 1, [], [])
    assert found["tensorflow"] == TRAINED and found["device"]["kind"] == "cpu"
    assert found["environment"]["set"]["RANK_ID"] == "0" and "MY_NAME" not in found["environment"]["set"]
    assert [one["name"] for one in found["vendor"]["packages"]] == list(PACKAGES)


# --- its parts -----------------------------------------------------------------
def test_the_list_of_variables_is_complete() -> None:
    class Recorder(Dict[str, str]):
        asked = set()

        def get(self, name: str, default: Any = None) -> Any:  # type: ignore[override]
            self.asked.add(name)
            return default

    host_env.read_environment(Recorder())
    assert Recorder.asked - set(mpirun.VARIABLES) == set(host_env.VARIABLES)


def test_secrets_are_not_shown() -> None:
    found = environment_facts(
        {
            "ASCEND_TOKEN": "abc",
            "HCCL_ACCESS_KEY": "abc",
            "HOME": "/abc",
            "MY_PASSWORD": "abc",
            "ASCEND_CACHE_PATH": "s3://me:abc@store/x",
            "CM_CHIEF_IP": "http://abc:abc@x",
            "JOB_ID": "7",
        }
    )
    assert "abc" not in json.dumps(found.to_json())
    assert found.values == {
        "ASCEND_TOKEN": HIDDEN,
        "HCCL_ACCESS_KEY": HIDDEN,
        "JOB_ID": "7",
        "ASCEND_CACHE_PATH": "s3://***@store/x",
        "CM_CHIEF_IP": "http://***@x",
    }


@pytest.mark.parametrize(
    "content, error",
    [
        (TABLE, None),
        ("{", "line 1, column 2: is not JSON: "),
        ("[]", "$: is an empty list"),
        ("\udcff", "$: the file is not text ("),
    ],
)
def test_errors_of_a_rank_table(content: str, error: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "table.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    found = rank_table_facts({"RANK_TABLE_FILE": str(path)})
    assert found is not None and found.path == str(path)
    assert found.error is None if error is None else str(found.error).startswith(error)
    assert rank_table_facts({"RANK_TABLE_FILE": " "}) is None


def test_an_ascend_host(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    root = write(
        tmp_path,
        {
            "dev/davinci0": "",
            "dev/davinci1": "",
            "dev/davinci_manager": "",
            "usr/local/Ascend/driver/version.info": "Version=23.0.3\nascendhal_version=7.35\n",
            "usr/local/Ascend/ascend-toolkit/latest/aarch64-linux/ascend_toolkit_install.info": "package_name=Ascend-cann-toolkit\nversion=8.0.RC1\n",
            "site/npu_bridge/__init__.py": "",
            "site/npu_bridge-1.15.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: npu-bridge\nVersion: 1.15.0\n",
        },
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    if sys.version_info < (3, 8):
        import pkg_resources

        monkeypatch.setattr(pkg_resources, "working_set", pkg_resources.WorkingSet())
        monkeypatch.setattr(pkg_resources, "get_distribution", lambda name: pkg_resources.working_set.require(name)[0])
    found = vendor_facts({}, root)
    assert found.cards == [os.path.join(root, "dev", name) for name in ("davinci0", "davinci1")]
    assert found.product is None and found.driver is not None and found.toolkit is not None
    assert found.driver.version == "23.0.3" and found.toolkit.version == "8.0.RC1"
    bridge = found.packages[0]
    assert (bridge.name, bridge.version) == ("npu_bridge", "1.15.0")
    assert bridge.path == os.path.join(root, "site", "npu_bridge", "__init__.py")


@pytest.mark.parametrize(
    "devices, product",
    [
        (["d801"], "910"),
        (["d802", "d802"], "A2"),
        (["d803"], "A3"),
        (["d806", "0222"], "A5"),
        (["d802", "d806"], None),
        (["0222"], None),
    ],
)
def test_the_product_is_that_of_the_pci_devices(devices: list[str], product: Any, tmp_path: pathlib.Path) -> None:
    files = {"sys/bus/pci/devices/9/vendor": "0x8086\n", "sys/bus/pci/devices/9/device": "0xd806\n"}
    for number, device in enumerate(devices):
        files[f"sys/bus/pci/devices/{number}/vendor"] = "0x19e5\n"
        files[f"sys/bus/pci/devices/{number}/device"] = f"0x{device}\n"
    (tmp_path / "sys/bus/pci/devices/removed").mkdir(parents=True)
    assert vendor_facts({}, write(tmp_path, files)).product == product


def on_npus(monkeypatch: Any, product: str | None, node_files: str = "/no/such/folder") -> None:
    """Make the machine one with NPUs of a product."""
    monkeypatch.setattr(
        diagnosis,
        "vendor_facts",
        lambda environ: dataclasses.replace(vendor_facts(environ), product=product, cards=["/dev/davinci0"]),
    )
    monkeypatch.setattr(diagnosis, "root_info_facts", lambda product: root_info_facts(product, node_files))


NPU = {**TRAINED, "trained_on": "npu", "device": {"kind": "npu", "reason": "r", "unused_card": None}}


def test_a_rank_table_whose_version_the_npus_refuse(doctor: Any, monkeypatch: Any, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, {"table.json": TABLE.replace('"5"', '"1"')}) + "/table.json"
    refusal = (
        f"RANK_TABLE_FILE={path!r}: $.version: is '1.0', but A5 uses '2.0'. HCCL stops with EI0014. Run npu-shim ranktable "
        "make --product A5."
    )
    on_npus(monkeypatch, "A5")
    code, out = doctor(probe=NPU, RANK_TABLE_FILE=path, RANK_ID="1")
    assert code == 1 and out.splitlines()[-2:] == ["Training cannot run here:", f"  {refusal}"]
    assert "  cards             /dev/davinci0 (A5)" in out.splitlines()
    code, out = doctor(RANK_TABLE_FILE=path, RANK_ID="1")  # on the CPU of this machine
    assert code == 0 and f"note: {refusal}" in out.splitlines()
    on_npus(monkeypatch, "A2")
    code, out = doctor(probe=NPU, RANK_TABLE_FILE=path, RANK_ID="1")
    assert code == 0 and "note" not in out


ROOT_INFO = """{"version": "2.0", "topo_file_path": "/topo.json", "rank_count": 1, "rank_list": [{"device_id": 3,
 "local_id": 3, "level_list": [{"net_layer": 0, "net_instance_id": "os", "rank_addr_list": []}]}]}"""


@pytest.mark.parametrize(
    "text, topology, error",
    [
        (ROOT_INFO, True, None),
        (
            ROOT_INFO.replace("2.0", "1.0"),
            True,
            "its version is '1.0', but HCCL of A5 reads '2.0' only (EI0016). Delete",
        ),
        (
            ROOT_INFO,
            False,
            "its topo_file_path is '/topo.json', which does not exist (EI0016). Delete it, so that HCCL",
        ),
        (ROOT_INFO.replace("topo_", "t_"), True, "its topo_file_path is None, which does not exist"),
        ("{}", True, "$: has no version. Add version. Delete it"),
    ],
)
def test_a_root_info_that_the_npus_refuse(
    text: str, topology: bool, error: Any, doctor: Any, monkeypatch: Any, tmp_path: pathlib.Path
) -> None:
    root = write(tmp_path, {"etc/hccl_rootinfo.json": text, "topo.json" if topology else "other": "{}"})
    path = os.path.join(root, "etc/hccl_rootinfo.json")
    on_npus(monkeypatch, "A5", root)
    code, out = doctor(probe=NPU)
    assert code == (0 if error is None else 1)
    assert out.splitlines()[-1].startswith("Training can run here." if error is None else f"  {path}: {error}")
    on_npus(monkeypatch, "A2", root)  # its HCCL does not read the file
    assert doctor(probe=NPU)[0] == 0
    assert root_info_facts("A5", str(tmp_path / "nothing")) is None
    if error is None:
        assert f"  root info         {path}: 1 device, version 2.0" in out.splitlines()


SEVERAL_SERVERS = TABLE.replace(
    '"1", "server_list": [', '"2", "server_list": [{"server_id": "t", "device": [{"device_id": "0", "rank_id": "2"}]}, '
)


@pytest.mark.parametrize(
    "env, text",
    [
        ({}, None),
        ({"ASCEND_RT_VISIBLE_DEVICES": "0,5"}, None),
        ({"ASCEND_RT_VISIBLE_DEVICES": "5", "RANK_ID": "1", "ASCEND_DEVICE_ID": "0"}, None),
        ({"ASCEND_RT_VISIBLE_DEVICES": "5", "TABLE": SEVERAL_SERVERS}, None),
        (
            {"ASCEND_RT_VISIBLE_DEVICES": "0, 5"},
            "ASCEND_RT_VISIBLE_DEVICES='0, 5' names 0 only: ' 5' is not a device number. Write numbers and commas, such as",
        ),
        ({"ASCEND_RT_VISIBLE_DEVICES": ""}, "ASCEND_RT_VISIBLE_DEVICES='' names no device: '' is not a device number."),
        (
            {"ASCEND_RT_VISIBLE_DEVICES": "5,0,0"},
            "ASCEND_RT_VISIBLE_DEVICES='5,0,0' is not in ascending order, each device once; NPUs refuse it (EE2002). "
            "Write 0,5.",
        ),
        (
            {"ASCEND_RT_VISIBLE_DEVICES": "4,5", "ASCEND_DEVICE_ID": "5"},
            "ASCEND_DEVICE_ID=5 is a position in ASCEND_RT_VISIBLE_DEVICES='4,5', which has 0 to 1. Export one of them",
        ),
        (
            {"ASCEND_RT_VISIBLE_DEVICES": "4,5"},
            "ASCEND_RT_VISIBLE_DEVICES='4,5' hides device 0 of rank 0 in the rank table. Add it, or unset",
        ),
        (
            {"ASCEND_RT_VISIBLE_DEVICES": "0,1", "RANK_ID": "1"},
            "ASCEND_RT_VISIBLE_DEVICES='0,1' hides device 5 of rank 1 in the rank table. Add it, or unset",
        ),
        (
            {"ASCEND_RT_VISIBLE_DEVICES": "0,5", "RANK_ID": "1", "ASCEND_DEVICE_ID": "0"},
            "ASCEND_DEVICE_ID=0 selects device 0 of ASCEND_RT_VISIBLE_DEVICES='0,5', but the rank table has device 5 for "
            "rank 1. Export ASCEND_DEVICE_ID=1, its position.",
        ),
    ],
)
def test_visible_devices_against_the_rank_table(env: dict[str, str], text: Any, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, {"table.json": env.get("TABLE", TABLE)}) + "/table.json"
    found = visibility_contradictions({**env, "RANK_TABLE_FILE": path})
    assert found == [] if text is None else len(found) == 1 and found[0].startswith(text)


def test_visible_devices_are_noted(doctor: Any, tmp_path: pathlib.Path) -> None:
    code, out = doctor(ASCEND_RT_VISIBLE_DEVICES="1,0", RANK_TABLE_FILE=str(tmp_path / "none.json"), RANK_SIZE="1")
    assert code == 0 and "note: ASCEND_RT_VISIBLE_DEVICES='1,0' is not in ascending order" in out


def test_a_toolkit_in_another_folder_and_one_without_a_version(tmp_path: pathlib.Path) -> None:
    root = write(tmp_path, {"opt/cann/version.cfg": "[info]\nversion = 7.0\n", "opt/empty/readme": ""})
    assert vendor_facts({"ASCEND_TOOLKIT_HOME": root + "/opt/cann"}, root).toolkit == Component(
        root + "/opt/cann", "7.0"
    )
    assert vendor_facts({"ASCEND_HOME_PATH": root + "/opt/empty"}, root).toolkit == Component(root + "/opt/empty", None)


@pytest.mark.parametrize("error", [None, "training a step failed: RuntimeError: the card is not used"])
def test_a_card_that_no_package_uses(error: str | None, doctor: Any) -> None:
    device = {"kind": "cpu", "reason": "why", "unused_card": "The card is not used: why. Install it"}
    code, out = doctor(probe={**TRAINED, "device": device, "error": error})
    if error:  # the default: scripts stop
        assert code == 1
        assert out.splitlines()[-1] == (
            "  The card is not used: why. Install it. To run on the CPU on purpose, export NPU_SHIM_FALLBACK=warn."
        )
    else:  # NPU_SHIM_FALLBACK=warn
        assert code == 0
        assert "note: The card is not used: why. Install it." in out.splitlines()


def test_a_card_is_found_where_tensorflow_cannot_be_imported(doctor: Any, monkeypatch: Any, tmp_path: Any) -> None:
    (tmp_path / "davinci0").touch()
    monkeypatch.setattr(host_device, "DEVICE_FILES", str(tmp_path / "davinci[0-9]*"))
    code, out = doctor(probe={"error": "importing TensorFlow failed: x"})
    assert code == 1 and "is not installed for " + sys.executable in out
    assert "The card is not used: the driver shows 1 card(s)" in out


def test_processors_and_memory(tmp_path: pathlib.Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/meminfo": "MemTotal:       16000 kB\nMemAvailable:    9000 kB\nHugePages_Total: 3\n",
            "sys/fs/cgroup/memory.max": "4096000\n",
        },
    )
    found = host_facts(root)
    assert (found.memory_bytes, found.memory_available_bytes, found.memory_limit_bytes) == (
        16000 * 1024,
        9000 * 1024,
        4096000,
    )
    assert (found.cpus or 0) >= (found.cpus_usable or 0) >= 1
    assert found.shared_memory_free_bytes is None
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert host_facts(root).memory_limit_bytes is None
    assert host_facts(str(tmp_path / "nothing")).memory_bytes is None
    real: Iterator[Any] = (getattr(host_facts(), name) for name in ("cpus", "memory_bytes", "memory_available_bytes"))
    assert all(value > 0 for value in real)


def test_a_version_is_read_from_metadata() -> None:
    assert version_of("pytest") == pytest.__version__
    assert version_of("no-such-distribution") is None


@pytest.mark.parametrize(
    "code, error",
    [
        ("pass", None),
        ("import no_such", "importing TensorFlow failed: ModuleNotFoundError: No module named 'no_such'"),
        (
            "import os; os.kill(os.getpid(), 4)",
            "importing TensorFlow ended with signal SIGILL; this processor "
            "may lack instructions that TensorFlow needs (AVX)",
        ),
        ("import os; os.kill(os.getpid(), 9)", "importing TensorFlow ended with signal SIGKILL"),
        (
            'raise TypeError("Descriptors cannot be created directly.\\nmore\\n 1. x")',
            "importing TensorFlow failed: TypeError: Descriptors cannot be created directly.; install 'protobuf<3.21', which "
            "this TensorFlow needs",
        ),
        (
            "raise ModuleNotFoundError(\"No module named 'tensorflow'\")",
            "importing TensorFlow failed: ModuleNotFoundError: No "
            f"module named 'tensorflow'; install it with: {install_command('tensorflow')}",
        ),
        ("import sys; sys.exit(3)", "importing TensorFlow failed: exit code 3"),
        (
            'print(\'npu_shim probe: {"tensorflow": "9.9"}\', flush=True); 1 / 0',
            "training a step with TensorFlow 9.9 failed: ZeroDivisionError: division by zero",
        ),
    ],
)
def test_the_probe_reports_how_it_ended(code: str, error: Any) -> None:
    assert probe([sys.executable, "-c", code]).error == error


@pytest.mark.once
def test_a_probe_that_hangs_is_stopped_and_its_facts_are_kept() -> None:
    found = probe(
        [
            sys.executable,
            "-c",
            'print(\'npu_shim probe: {"tensorflow": "9.9"}\', flush=True)\nimport time; time.sleep(60)',
        ],
        timeout_s=5,
    )
    assert found.to_json() == {"tensorflow": "9.9", "error": "TensorFlow did not train a step within 5 seconds"}
