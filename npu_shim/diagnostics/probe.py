"""Imports TensorFlow and trains one step, in a process of its own: either may end a process, or never end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any, Mapping

from npu_shim.import_hook.tool import package_root

TIMEOUT_S = 600.0  # a card compiles the graph first
_MARK = "npu_shim probe: "
_HINTS = {
    "No module named 'tensorflow'": "install it, as in: pip install 'tensorflow<2.16' (2.15 is the last with Estimator)",
    "Descriptors cannot": "install 'protobuf<3.21', which this TensorFlow needs",
}
_ERROR = re.compile(r"[\w.]*(Error|Exception|Interrupt)\b")


def probe(
    command: list[str] | None = None, timeout_s: float = TIMEOUT_S, environ: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Tries in a new process whether TensorFlow can be imported and can train.

    Args:
        command: how to start the process that tries; by default this module.
        timeout_s: seconds until it counts as hanging.
        environ: its environment.
    Returns:
        What main() found, or as much of it as it came to, and ``error``: why it could not train, else None.
    """
    path = [package_root()] + [p for p in (environ.get("PYTHONPATH"),) if p]
    env = {**environ, "PYTHONPATH": os.pathsep.join(path)}
    try:
        done = subprocess.run(
            command or [sys.executable, "-m", "npu_shim.diagnostics.probe"],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as expired:
        return {**_found(expired.stdout), "error": f"it was not done after {timeout_s:g} seconds"}
    found = _found(done.stdout)
    return {**found, "error": None if done.returncode == 0 else _reason(done, found)}


def _found(output: bytes | None) -> dict[str, Any]:
    """All that the process said of itself, line by line."""
    made: dict[str, Any] = {}
    for line in (output or b"").decode("utf-8", "replace").splitlines():
        if line.startswith(_MARK):
            made.update(json.loads(line[len(_MARK) :]))
    return made


def _reason(done: subprocess.CompletedProcess[bytes], found: dict[str, Any]) -> str:
    what = f"training a step with TensorFlow {found['tensorflow']}" if "tensorflow" in found else "importing TensorFlow"
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        hint = (
            "; this processor may lack instructions that this build of TensorFlow uses (AVX)"
            if name == "SIGILL"
            else ""
        )
        return f"{what} ended the process by signal {name}{hint}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    errors = [line for line in lines if _ERROR.match(line)]  # its text may go on for lines
    last = (errors or lines or [f"exit code {done.returncode}"])[-1]
    hints = [hint for sign, hint in _HINTS.items() if sign in last]
    return "; ".join([f"{what} failed: {last}"] + hints)


def main() -> None:
    """Imports TensorFlow, then fits w in (2 w - 6)^2 by one step of gradient descent from w = 0.

    Says what it finds as it goes, in lines of JSON. With a learning rate of
    1/8 the step leads from gradient -24 to w = 3, where the loss is 0.
    """
    begin = time.time()
    import tensorflow as tf

    seconds = time.time() - begin
    import numpy
    from google import protobuf

    from npu_shim import _device, _tf
    from npu_shim.config.session import session_config

    _say(
        tensorflow=tf.__version__,
        tensorflow_path=os.path.dirname(tf.__file__),
        import_seconds=round(seconds, 1),
        numpy=numpy.__version__,
        protobuf=protobuf.__version__,
        estimator=_tf.estimator() is not None,
        keras_sessions=_tf.has_keras_sessions(),
    )
    where = _device.resolve()
    begin = time.time()
    with tf.Graph().as_default(), _tf.v1.Session(config=session_config()) as session:
        w = _tf.v1.get_variable("w", [], tf.float32, _tf.v1.zeros_initializer())
        loss = tf.square(2.0 * w - 6.0)
        step = _tf.v1.train.GradientDescentOptimizer(0.125).minimize(loss)
        session.run(_tf.v1.global_variables_initializer())
        session.run(step)
        value = float(session.run(w))
    if abs(value - 3.0) > 1e-3:
        raise RuntimeError(f"a step of gradient descent on {where.kind} led to {value!r} instead of 3.0")
    _say(trained_on=where.kind, step_seconds=round(time.time() - begin, 2))


def _say(**found: Any) -> None:
    print(_MARK + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
