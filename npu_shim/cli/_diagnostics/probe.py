"""Import TensorFlow and train one step in a child process, because either may crash or hang."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Mapping

from npu_shim._host import host_env
from npu_shim._host.packages import install_command
from npu_shim._tensorflow.types import JsonObject
from npu_shim.cli._diagnostics import card_steps
from npu_shim.import_hook.tool import with_package

TIMEOUT_S = 600.0  # the NPU compiles the graph first
_MARK = "npu_shim probe: "
_HINTS = {
    "No module named 'tensorflow'": f"install it with: {install_command('tensorflow')}",
    "Descriptors cannot": "install 'protobuf<3.21', which this TensorFlow needs",
}
_ERROR = re.compile(r"[\w.]*(Error|Exception|Interrupt)\b")


def probe(
    command: list[str] | None = None, timeout_s: float = TIMEOUT_S, environ: Mapping[str, str] | None = None
) -> JsonObject:
    """Try in a new process to import TensorFlow and to train.

    Args:
        command: starts the process; by default this module.
        timeout_s: the time limit of the process.
        environ: its environment; that of this process if None.
    Returns:
        The facts that main() prints until it ends, and ``error``: why it cannot train, None if it can.
    """
    env = with_package(host_env.process_environ() if environ is None else environ)
    try:
        done = subprocess.run(
            command or [sys.executable, "-m", "npu_shim.cli._diagnostics.probe"],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as expired:
        return {**_found(expired.stdout), "error": f"TensorFlow did not train a step within {timeout_s:g} seconds"}
    facts = _found(done.stdout)
    return {**facts, "error": None if done.returncode == 0 else _reason(done, facts)}


def _found(output: bytes | None) -> JsonObject:
    """Return the facts in the output of the process."""
    facts: JsonObject = {}
    for line in (output or b"").decode("utf-8", "replace").splitlines():
        if line.startswith(_MARK):
            facts.update(json.loads(line[len(_MARK) :]))
    return facts


def _reason(done: subprocess.CompletedProcess[bytes], facts: JsonObject) -> str:
    action = (
        f"training a step with TensorFlow {facts['tensorflow']}" if "tensorflow" in facts else "importing TensorFlow"
    )
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        hint = "; this processor may lack instructions that TensorFlow needs (AVX)" if name == "SIGILL" else ""
        return f"{action} ended with signal {name}{hint}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    errors = [line for line in lines if _ERROR.match(line)]  # a message may have several lines
    last = (errors or lines or [f"exit code {done.returncode}"])[-1]
    hints = [hint for sign, hint in _HINTS.items() if sign in last]
    return "; ".join([f"{action} failed: {last}"] + hints)


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
        estimator=tf_api.estimator() is not None,
        keras_sessions=tf_api.has_keras_sessions(),
    )
    available = host_device.device()
    _print_facts(
        device={"kind": available.kind, "reason": available.reason, "unused_card": host_device.unused_card(available)}
    )
    device = host_device.resolve()
    begin = time.time()
    value = card_steps.trained()
    if abs(value - 3.0) > 1e-3:
        raise RuntimeError(f"a step of gradient descent on {device.kind} led to {value!r} instead of 3.0")
    _print_facts(trained_on=device.kind, step_seconds=round(time.time() - begin, 2))


def _print_facts(**facts: object) -> None:
    print(_MARK + json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
