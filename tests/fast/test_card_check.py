"""``npu-shim doctor --card-check``, and the advice for its failures, on machines of all kinds."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import pytest

from npu_shim import cli
from npu_shim._host import host_device
from npu_shim.cli._diagnostics import card_check
from npu_shim.cli._diagnostics.card_check import (
    CHECKS,
    Check,
    Failure,
    Outcome,
    check_card,
    outcome_lines,
    run_in_process,
)
from npu_shim.cli._diagnostics.card_steps import MARK, STEPS
from npu_shim.distributed.ranktable import generate, rootinfo
from npu_shim.troubles.logs import troubles_in_text

SYMPTOMS = {
    "libascend_hal.so: cannot open shared object file: No such file": "LD_LIBRARY_PATH",
    "ImportError: libge_runner.so: cannot open shared object file": "set_env.sh",
    "OSError: libhccl.so: cannot open shared object file": "set_env.sh",
    "ModuleNotFoundError: No module named 'npu_device'": "PYTHONPATH",
    "ModuleNotFoundError: No module named 'tbe'": "set_env.sh",
    "No module named 'decorator'": "pip install",
    "_tf_adapter.so: undefined symbol: _ZN10tensorflow8OpKernel": "exactly 2.6.5",
    "[Errno 13] Permission denied: '/dev/davinci0'": "HwHiAiUser",
    "EL0005: Resource busy": "npu-smi info",
    "EZ3003: No supported Ops kernel and engine are found for [x], optype [Y].": "ASCEND_OPP_PATH",
    "E40021: Failed to compile Op [x]": "plog",
    "EL0004: Failed to allocate memory.": "batch size",
    "E30008: AI CPU operator execution time out.": "shuffle",
    "EI0006: Getting socket times out.": "HCCL_CONNECT_TIMEOUT",
    "ra rdev init failed, ret [-17]": "ranktable make",
    "EJ0001: Failed to initialize the HCCP process.": "ten seconds",
}


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_a_symptom_has_one_explanation(symptom: str) -> None:
    (found,) = troubles_in_text(symptom)
    assert SYMPTOMS[symptom] in found.fix.en


def test_each_check_is_on_the_page_and_needs_earlier_ones(repo_root: pathlib.Path) -> None:
    page = (repo_root / "docs" / "on_a_card.md").read_text(encoding="utf-8")
    seen: set[str] = set()
    for check in CHECKS:
        assert set(check.needs) <= seen and check.name not in seen
        seen.add(check.name)
        assert f"| {check.claim} | `{check.command}` |" in page


def passes() -> str:
    return "fine"


def fails() -> str:
    raise Failure("broken", "Repair it.")


def test_checks_run_in_order_and_stop_behind_a_failure() -> None:
    first = Check("first", "it is there", "ls", passes)
    second = Check("second", "it works", "run", fails, ("first",))
    third = Check("third", "it is fast", "time", passes, ("second",))
    reported: list[Outcome] = []
    outcomes = check_card(reported.append, (first, second, third))
    assert outcomes == reported
    assert [outcome.state for outcome in outcomes] == ["passed", "failed", "not run"]
    assert [list(outcome_lines(outcome)) for outcome in outcomes] == [
        ["passed  it is there: fine"],
        ["failed  it works: broken", "        Repair it.", "        To see it yourself: run"],
        ["not run it is fast: needs second"],
    ]


def test_a_check_of_another_tensorflow_does_not_run(monkeypatch: Any) -> None:
    monkeypatch.setattr(card_check, "tensorflow_version", lambda: "1.15.5")
    (outcome,) = check_card(lambda outcome: None, (Check("x", "y", "z", fails, (), ("2.6",)),))
    assert (outcome.state, outcome.text) == ("not run", "not for TensorFlow 1.15.5")


def test_without_a_card_the_command_fails_and_says_what_to_do(capsys: Any) -> None:
    assert cli.main(["doctor", "--card-check"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("failed  the driver shows the NPUs: the driver shows no card")
    assert "--device /dev/davinci_manager" in out[1] and out[2].endswith("ls -l /dev/davinci*")
    assert "not run two NPUs sum a tensor: needs session and network" in out
    assert out[-1].startswith("0 passed, 3 failed, ")
    assert cli.main(["doctor", "--card-check", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [check["name"] for check in found] == [check.name for check in CHECKS]
    assert found[0]["state"] == "failed" and found[0]["advice"]


@pytest.fixture
def host(monkeypatch: Any, tmp_path: pathlib.Path) -> pathlib.Path:
    """A host with two NPUs, operators and network addresses."""
    for name in ("davinci0", "davinci1"):
        (tmp_path / name).touch()
    monkeypatch.setattr(host_device, "DEVICE_FILES", str(tmp_path / "davinci[0-9]*"))
    folder = tmp_path / "opp" / "built-in" / "framework" / "tensorflow"
    folder.mkdir(parents=True)
    (folder / "npu_supported_ops.json").write_text("{}")
    monkeypatch.setenv("ASCEND_OPP_PATH", str(tmp_path / "opp"))
    (tmp_path / "hccn.conf").write_text("address_0=10.0.0.1\naddress_1=10.0.0.2\n")
    monkeypatch.setattr(generate, "HCCN_CONF", str(tmp_path / "hccn.conf"))
    return tmp_path


def run(*names: str) -> dict[str, Outcome]:
    chosen = tuple(check for check in CHECKS if check.name in names)
    return {outcome.check.name: outcome for outcome in check_card(lambda outcome: None, chosen)}


def test_the_checks_of_the_host_pass(host: pathlib.Path) -> None:
    found = run("cards", "access", "toolkit", "network")
    assert {outcome.state for outcome in found.values()} == {"passed"}
    assert found["network"].text == f"2 addresses in {host / 'hccn.conf'}"


def test_ascend_950_have_their_addresses_in_another_file(host: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(host_device, "card_product", lambda: "A5")
    monkeypatch.setattr(rootinfo, "ROOT_INFO", str(host / "root.json"))
    assert "No such file" in run("cards", "network")["network"].text
    layer = {"net_layer": 0, "net_instance_id": "os", "rank_addr_list": []}
    devices = [{"device_id": number, "local_id": number, "level_list": [layer]} for number in (0, 1)]
    (host / "root.json").write_text(json.dumps({"version": "2.0", "rank_list": devices}))
    assert run("cards", "network")["network"].text == f"2 addresses in {host / 'root.json'}"


def test_the_checks_of_the_host_fail(host: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(card_check.os, "access", lambda path, mode: False)
    (host / "hccn.conf").write_text("address_0=10.0.0.1\n")
    (host / "opp/built-in/framework/tensorflow/npu_supported_ops.json").unlink()
    found = run("cards", "access", "toolkit", "network")
    assert (
        found["access"].text.startswith("this user cannot read and write") and "HwHiAiUser" in found["access"].advice[0]
    )
    assert "has no list of operators for TensorFlow" in found["toolkit"].text
    assert "has no address of NPU 1" in found["network"].text and "hccn_tool" in found["network"].advice[0]
    monkeypatch.delenv("ASCEND_OPP_PATH")
    (host / "hccn.conf").unlink()
    found = run("cards", "toolkit", "network")
    assert found["toolkit"].text == "ASCEND_OPP_PATH is not set" and "set_env.sh" in found["toolkit"].advice[0]
    assert "No such file" in found["network"].text


@pytest.mark.parametrize(
    "code, found, advice",
    [
        (f"print({MARK!r} + 'w: 3')", None, None),
        (
            "raise ImportError('libascendcl.so: cannot open shared object file')",
            "ImportError: libascendcl.so",
            "set_env.sh",
        ),
        ("import os, sys; print('EL0004: Failed', flush=True); os.abort()", "EL0004: Failed", "batch size"),
        ("raise SystemExit(3)", "exit code 3", None),
    ],
)
def test_a_step_in_a_process_of_its_own(code: str, found: Any, advice: Any) -> None:
    if found is None:
        assert run_in_process([sys.executable, "-c", code]) == "w: 3"
        return
    with pytest.raises(Failure) as raised:
        run_in_process([sys.executable, "-c", code])
    assert str(raised.value).startswith(found)
    assert [advice in text for text in raised.value.advice] == ([True] if advice else [])


def test_a_step_that_hangs_is_ended() -> None:
    with pytest.raises(Failure, match="no result within 0.5 seconds"):
        run_in_process([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.5)


def test_each_step_belongs_to_a_check() -> None:
    assert set(STEPS) == {"load", *(check.name for check in CHECKS)} & set(STEPS)
    with pytest.raises(Failure, match="NPU_SHIM_FALLBACK=error forbids the CPU"):
        next(check for check in CHECKS if check.name == "package").run()
