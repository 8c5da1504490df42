"""The device file of a card and the vendor's package make the NPU the device."""

from __future__ import annotations

import os
import subprocess
import sys

from conftest import FACE, FOLDER, HERE

import npu_shim

NO_NAMESPACE = 125  # the machine allows no mount namespace


def test_the_device_is_the_card() -> None:
    found = npu_shim.device()
    assert (found.kind, found.package) == ("npu", FACE)


def test_a_device_file_in_dev_is_a_card() -> None:
    root = os.path.dirname(os.path.dirname(HERE))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((FOLDER, HERE, root))}
    question = [sys.executable, "-c", "import npu_shim; print(npu_shim.device())"]
    done = subprocess.run(
        [os.path.join(HERE, "with_card.sh"), *question],
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode == NO_NAMESPACE:
        answer = subprocess.check_output(question, env=environment, text=True)
        assert answer.startswith("cpu: the driver shows no card (/dev/davinci")
    else:
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("npu: the driver shows 1 card(s), first /dev/davinci0") and FACE in done.stdout
