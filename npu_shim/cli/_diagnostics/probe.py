"""Import TensorFlow and train one step in a child process, because either may crash or hang."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from typing import Mapping, NamedTuple, Sequence

from npu_shim._host import host_env
from npu_shim._host.packages import install_command
from npu_shim._tensorflow.types import JsonObject
from npu_shim.cli._diagnostics import card_steps
from npu_shim.import_hook.tool import with_package_path

TIMEOUT_S = 600.0  # the NPU compiles the graph first
_MARK = "npu_shim probe: "
_HINTS = {
    "No module named 'tensorflow'": f"install it with: {install_command('tensorflow')}",
    "Descriptors cannot": "install 'protobuf<3.21', which this TensorFlow needs",
}
_ERROR = re.compile(r"[\w.]*(Error|Exception|Interrupt)(:|$)")


@dataclass(frozen=True)
class DeviceFacts:
    """The device that trains.

    Attributes:
        kind: 'npu' or 'cpu', None if the environment contradicts itself.
        reason: why it is this one.
        unused_card: the sentence about a card that is there and not used, else None.
    """

    kind: str | None
    reason: str
    unused_card: str | None


@dataclass(frozen=True)
class TensorFlowFacts:
    """Facts that a process printed which imports TensorFlow and trains a step; None for those that it did not reach.

    Attributes:
        tensorflow, numpy, protobuf: versions.
        tensorflow_path: folder of TensorFlow.
        import_seconds: time of its import.
        estimator: True if it has tf.estimator.
        keras_sessions: True if Keras has sessions.
        device: that TensorFlow sees.
        trained_on: kind of the device of the step.
        step_seconds: time of the step.
        error: why it cannot train, None if it can.
    """

    tensorflow: str | None = None
    tensorflow_path: str | None = None
    import_seconds: float | None = None
    numpy: str | None = None
    protobuf: str | None = None
    estimator: bool | None = None
    keras_sessions: bool | None = None
    device: DeviceFacts | None = None
    trained_on: str | None = None
    step_seconds: float | None = None
    error: str | None = None

    def to_json(self) -> JsonObject:
        """Return the part of the report: the facts that the process printed but for the device, and the error."""
        facts = {name: value for name, value in asdict(self).items() if value is not None and name != "device"}
        return {**facts, "error": self.error}

    @classmethod
    def from_json(cls, facts: JsonObject) -> TensorFlowFacts:
        """Return the facts that main() printed."""
        device = facts.get("device")
        return cls(**{**facts, "device": device and DeviceFacts(**device)})


class Ended(NamedTuple):
    """A process that has ended.

    Attributes:
        code: its exit code; None if its time was over.
        results: what it printed behind the mark.
        text: all that it printed.
        last_error: its last line that begins with an exception, else its last line.
    """

    code: int | None
    results: list[str]
    text: str
    last_error: str


def run_marked(command: Sequence[str], environ: Mapping[str, str], mark: str, timeout_s: float) -> Ended:
    """Run a process that prints results behind a mark.

    Args:
        command: starts the process.
        environ: its environment, to which the folder of npu_shim is added.
        mark: begins the text of a result.
        timeout_s: the time limit of the process.
    """
    env, pipe, none = with_package_path(environ), subprocess.PIPE, subprocess.DEVNULL
    try:
        done = subprocess.run(command, env=env, stdin=none, stdout=pipe, stderr=subprocess.STDOUT, timeout=timeout_s)
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as expired:
        code, output = None, expired.stdout or b""
    text = output.decode("utf-8", "replace")
    results = [line.partition(mark)[2] for line in text.splitlines() if mark in line]
    others = [line for line in text.splitlines() if mark not in line and line.strip()]
    errors = [line for line in others if _ERROR.match(line)]  # a message may have several lines
    return Ended(code, results, text, (errors or others or [f"exit code {code}"])[-1].strip())


def probe(
    command: list[str] | None = None, timeout_s: float = TIMEOUT_S, environ: Mapping[str, str] | None = None
) -> TensorFlowFacts:
    """Try in a new process to import TensorFlow and to train.

    Args:
        command: starts the process; by default this module.
        timeout_s: the time limit of the process.
        environ: its environment; that of this process if None.
    """
    command = command or [sys.executable, "-m", "npu_shim.cli._diagnostics.probe"]
    ended = run_marked(command, host_env.process_environ() if environ is None else environ, _MARK, timeout_s)
    printed: JsonObject = {}
    for line in ended.results:
        printed.update(json.loads(line))
    facts = TensorFlowFacts.from_json(printed)
    if ended.code is None:
        return replace(facts, error=f"TensorFlow did not train a step within {timeout_s:g} seconds")
    return replace(facts, error=_failure_text(ended, facts.tensorflow)) if ended.code else facts


def _failure_text(ended: Ended, version: str | None) -> str:
    """Return why the process did not train; the version is None if it could not import TensorFlow."""
    action = f"training a step with TensorFlow {version}" if version else "importing TensorFlow"
    if ended.code and ended.code < 0:
        name = signal.Signals(-ended.code).name
        hint = "; this processor may lack instructions that TensorFlow needs (AVX)" if name == "SIGILL" else ""
        return f"{action} ended with signal {name}{hint}"
    hints = [hint for sign, hint in _HINTS.items() if sign in ended.last_error]
    return "; ".join([f"{action} failed: {ended.last_error}"] + hints)


def main() -> None:
    """Import TensorFlow, then train one step. Each fact is printed at once as a line of JSON."""
    begin = time.time()
    import tensorflow as tf

    seconds = time.time() - begin
    import numpy
    from google import protobuf

    from npu_shim._host import host_device
    from npu_shim._tensorflow import tf_api

    _print_facts(
        tensorflow=tf.__version__,
        tensorflow_path=os.path.dirname(tf.__file__),
        import_seconds=round(seconds, 1),
        numpy=numpy.__version__,
        protobuf=protobuf.__version__,
        estimator=tf_api.estimator_namespace() is not None,
        keras_sessions=tf_api.has_keras_sessions(),
    )
    available = host_device.device()
    seen = DeviceFacts(available.kind, available.reason, host_device.unused_card_text(available))
    _print_facts(device=asdict(seen))
    device = host_device.require_device()
    begin = time.time()
    value = card_steps.train_one_step()
    if abs(value - 3.0) > 1e-3:
        raise RuntimeError(f"a step of gradient descent on {device.kind} led to {value!r} instead of 3.0")
    _print_facts(trained_on=device.kind, step_seconds=round(time.time() - begin, 2))


def _print_facts(**facts: object) -> None:
    print(_MARK + json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
