"""The check of two cards, which sum a tensor: two processes with device files, hccn.conf and operators of the vendor's names."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import FOLDER, HERE
from test_device import NO_NAMESPACE

import npu_shim

pytestmark = pytest.mark.nightly

CHECK = """
import sys
from npu_shim.cli._diagnostics.card_check import CHECKS, check_card

check_card(lambda outcome: print(outcome.check.name, outcome.state, outcome.text),
           tuple(check for check in CHECKS if check.name in sys.argv))
"""


def test_two_cards_sum_a_tensor(tmp_path: pathlib.Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "ranks").mkdir()
    (tmp_path / "etc" / "hccn.conf").write_text("address_0=10.0.0.1\naddress_1=10.0.0.2\n")
    root = os.path.dirname(os.path.dirname(npu_shim.__file__))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((FOLDER, HERE, root, os.path.join(root, "tools"))),
        "CARDS": "2",
        "ETC": str(tmp_path / "etc"),
        "CARD_RANKS": str(tmp_path / "ranks"),
    }
    names = ["cards", "access", "session", "network", "collectives"]
    done = subprocess.run(
        [os.path.join(HERE, "with_card.sh"), sys.executable, "-c", CHECK, *names],
        env=environment,
        cwd=str(tmp_path),
        capture_output=True,
        text=True,
    )
    if done.returncode == NO_NAMESPACE:
        pytest.fail("this machine allows no mount namespace: run the nightly tests where `unshare --mount true` works")
    assert done.stdout.splitlines() == [
        "cards passed /dev/davinci0, /dev/davinci1",
        "access passed this user can read and write 2 device files",
        "session passed w after a step in a session: 3",
        "network passed 2 addresses in /etc/hccn.conf",
        "collectives passed sum of 2 rank numbers: 1",
    ], done.stderr
