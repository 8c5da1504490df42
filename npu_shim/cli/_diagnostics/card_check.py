"""The checks of ``npu-shim doctor --card-check``, in order, from the driver to several NPUs."""

from __future__ import annotations

import glob
import os
import re
import sys
from typing import Callable, Iterator, Mapping, NamedTuple

from npu_shim._host import host_device, host_env
from npu_shim._host.packages import tensorflow_version
from npu_shim._tensorflow.types import JsonObject
from npu_shim.cli._diagnostics import card_steps
from npu_shim.cli._diagnostics.card_steps import MARK
from npu_shim.cli._diagnostics.probe import run_marked
from npu_shim.cli._diagnostics.vendor import vendor_facts
from npu_shim.distributed.ranktable import generate, reader
from npu_shim.distributed.ranktable.products import dialect_of
from npu_shim.troubles.logs import troubles_in_text

TIMEOUT_S = 1200.0  # the first graph takes minutes to compile
_MANAGER_FILES = ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
_OP_LISTS = ("built-in/framework/tensorflow", "framework/built-in/tensorflow")


class Failure(Exception):
    """A check failed: what was found, and what to do."""

    def __init__(self, text: str, *advice: str) -> None:
        super().__init__(text)
        self.advice = advice


class Check(NamedTuple):
    """A check: ``claim`` is what it proves, ``command`` a command that shows the same.

    ``versions`` are the TensorFlow versions for which it runs, ``needs`` the checks that must pass first.
    """

    name: str
    claim: str
    command: str
    run: Callable[[], str]
    needs: tuple[str, ...] = ()
    versions: tuple[str, ...] = ("1.15", "2.6")


class Outcome(NamedTuple):
    """The result of a check: ``state`` is 'passed', 'failed' or 'not run'; ``advice`` is what to do if it failed."""

    check: Check
    state: str
    text: str
    advice: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """Return the row of the check."""
        check, state, text, advice = self
        row = {"name": check.name, "claim": check.claim, "command": check.command}
        return {**row, "state": state, "found": text, "advice": advice}


def _check_cards() -> str:
    device = host_device.detect_without_import()
    if not device.cards:
        raise Failure(device.reason, *_advice_lines(device.reason))
    return ", ".join(device.cards)


def _check_access() -> str:
    files = [*host_device.detect_without_import().cards, *(path for path in _MANAGER_FILES if os.path.exists(path))]
    closed = [path for path in files if not os.access(path, os.R_OK | os.W_OK)]
    if closed:
        raise Failure(f"this user cannot read and write {', '.join(closed)}", *_advice_lines("EL0007"))
    return f"this user can read and write {len(files)} device files"


def _check_toolkit() -> str:
    folder = host_env.opp_path()
    if not folder:
        raise Failure("ASCEND_OPP_PATH is not set", *_advice_lines("libascendcl.so: cannot open shared object file"))
    lists = [path for part in _OP_LISTS for path in glob.glob(os.path.join(folder, part, "*.json"))]
    if not lists:
        raise Failure(
            f"ASCEND_OPP_PATH={folder!r} has no list of operators for TensorFlow ({_OP_LISTS[0]})",
            "Install CANN's operator package, or correct ASCEND_OPP_PATH.",
        )
    return f"operators in {folder}"


def _check_versions() -> str:
    vendor = vendor_facts(host_env.process_environ())
    installed = {"driver": vendor.driver, "toolkit": vendor.toolkit}
    missing = [name for name, component in installed.items() if not component]
    if missing:
        raise Failure(
            f"no {' and no '.join(missing)} in the usual folders",
            "Install them, or export ASCEND_TOOLKIT_HOME as the folder of the toolkit.",
            "In a container, mount the folder of the driver.",
        )
    return "; ".join(
        f"{name} {component.version or 'of unknown version'}" for name, component in installed.items() if component
    )


def _check_network() -> str:
    source = generate.file_source(dialect_of(host_device.card_product()))
    path = source.path
    try:
        addresses = source.parse(reader.read_table_text(path), path)
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: {error}", *_advice_lines(f"{path} not found")) from None
    numbers = {
        int(number) for card in host_device.detect_without_import().cards for number in re.findall(r"\d+$", card)
    }
    lacking = sorted(numbers - set(addresses))
    if lacking:
        text = f"{path} has no address of NPU {', '.join(map(str, lacking))}"
        raise Failure(text, *_advice_lines(text))
    return f"{len(addresses)} addresses in {path}"


def _step_runner(name: str, *launcher: str) -> Callable[[], str]:
    """Return a check that runs a step of card_steps in a process of its own, which may not use the CPU."""

    def run_step() -> str:
        return run_in_process([sys.executable, *launcher, "-m", card_steps.__name__, name])

    return run_step


def run_in_process(command: list[str], timeout_s: float = TIMEOUT_S, environ: Mapping[str, str] | None = None) -> str:
    """Run a step and return its result.

    Args:
        command: starts the process.
        timeout_s: its time limit.
        environ: variables to add to those of this process.
    Raises:
        Failure: it did not print a result; with the last error and the advice for each known symptom.
    """
    env = {**host_env.process_environ(), "NPU_SHIM_FALLBACK": "error", **(environ or {})}
    ended = run_marked(command, env, MARK, timeout_s)
    if ended.code == 0 and ended.results:
        return ended.results[-1]
    problem = f"no result within {timeout_s:g} seconds" if ended.code is None else ended.last_error
    raise Failure(problem, *_advice_lines(ended.text))


def _advice_lines(text: str) -> list[str]:
    return [trouble.advice() for trouble in troubles_in_text(text)]


def _check_of_step(name: str, claim: str, command: str, *needs: str) -> Check:
    """Return the check that runs the step of this name."""
    return Check(name, claim, command, _step_runner(name), needs)


_DOCTOR, _SAMPLE = "npu-shim doctor", "bash samples/digits_{}/train_1p.sh"
CHECKS = (
    Check("cards", "the driver shows the NPUs", "npu-smi info; ls -l /dev/davinci*", _check_cards),
    Check("access", "this user may use them", "id; ls -l /dev/davinci*", _check_access, ("cards",)),
    Check("toolkit", "CANN's environment is set", "ls $ASCEND_OPP_PATH", _check_toolkit),
    Check("versions", "driver and toolkit are installed", _DOCTOR, _check_versions),
    Check(
        "package",
        "the vendor's package for this TensorFlow loads",
        "python -c 'import npu_shim; print(npu_shim.device())'",
        _step_runner("load"),
        ("cards", "toolkit"),
    ),
    _check_of_step("session", "a step in a session trains on the NPU", _DOCTOR, "access", "package"),
    _check_of_step(
        "function", "a step in tf.function trains on the NPU", _SAMPLE.format("loop"), "access", "package"
    )._replace(versions=("2.6",)),
    _check_of_step("operators", "gelu and dropout agree with their formulas", "python -m pytest tests/ops", "session"),
    _check_of_step("loop", "ten steps in one run equal ten single steps", _SAMPLE.format("session"), "session"),
    _check_of_step("estimator", "NPUEstimator trains and writes checkpoints", _SAMPLE.format("estimator"), "session"),
    Check("network", "each NPU has a network address", "cat /etc/hccn.conf", _check_network, ("cards",)),
    Check(
        "collectives",
        "two NPUs sum a tensor",
        "npu-shim launch --ranks 2 samples/digits_session/distributed_npu.py",
        _step_runner("collectives", "-m", "npu_shim", "launch", "--ranks", "2"),
        ("session", "network"),
    ),
)
_SEVERAL = ("network", "collectives")


def check_card(report: Callable[[Outcome], object], checks: tuple[Check, ...] = CHECKS) -> list[Outcome]:
    """Run the checks in order and report each as soon as it is done.

    Args:
        report: called with each outcome.
        checks: the checks.
    Returns:
        The outcomes.
    """
    states: dict[str, str] = {}
    outcomes = []
    for check in checks:
        outcome = _run_check(check, states)
        states[check.name] = outcome.state
        outcomes.append(outcome)
        report(outcome)
    return outcomes


def _run_check(check: Check, states: Mapping[str, str]) -> Outcome:
    version = tensorflow_version() or ""
    needed = [name for name in check.needs if states.get(name, "passed") != "passed"]
    if needed:
        return Outcome(check, "not run", f"needs {' and '.join(needed)}")
    if version and not version.startswith(check.versions) and version.startswith(("1.15", "2.6")):
        return Outcome(check, "not run", f"not for TensorFlow {version}")
    if check.name in _SEVERAL and len(host_device.detect_without_import().cards) < 2:
        return Outcome(check, "not run", "for two or more NPUs")
    try:
        return Outcome(check, "passed", check.run())
    except Failure as failure:
        return Outcome(check, "failed", str(failure), failure.advice)


def outcome_lines(outcome: Outcome) -> Iterator[str]:
    """Return the outcome as lines of text: the claim, what was found, and what to do."""
    yield f"{outcome.state.ljust(8)}{outcome.check.claim}: {outcome.text}"
    if outcome.state == "failed":
        for advice in outcome.advice or ("The symptom is not in the table of docs/troubles.md.",):
            yield f"        {advice}"
        yield f"        To see it yourself: {outcome.check.command}"
