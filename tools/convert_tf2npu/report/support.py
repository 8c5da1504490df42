"""How far the NPU supports a call of TensorFlow or Horovod: a status, and what follows from it.

The facts are the vendor's lists for TensorFlow 1.15 and 2.6 (support_list.json); where a rule of the tool
knows better (``api_support``), the rule is right.
"""

from __future__ import annotations

import functools
import json
import os
from typing import NamedTuple

from ..syntax.expressions import last_part
from ..tf_api.support import SUPPORT

_LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "support_list.json")

TF1, TF2 = "1.15", "2.6"  # the versions of which there are lists


class Status(NamedTuple):
    """A status: its short name for people, and what follows from it."""

    label: str
    advice: str


# What needs a thought comes first.
STATUSES: dict[str, Status] = {
    "unsupported": Status("not supported", "does not run on the NPU"),
    "limited": Status("with limits", "runs on the NPU within limits; a finding stands where they matter"),
    "unclear": Status(
        "contradictory",
        "the vendor's list says both that it is supported and that it is to "
        "be avoided; run one step with it on a card before a long training",
    ),
    "unexamined": Status(
        "not examined", "the vendor has not examined it; run one step with it on a card before a long training"
    ),
    "unlisted": Status(
        "not listed",
        "not in the vendor's list: a private part of TensorFlow, a package of "
        "its own, or of another version; it runs as far as the operations it is made of do",
    ),
    "deprecated": Status(
        "deprecated",
        "TensorFlow has given it up and the vendor does not examine it; it "
        "runs as far as the operations it is made of do; prefer its successor, if any",
    ),
    "ignored": Status("no effect", "may stay, and does nothing on the NPU"),
    "migrated": Status("after migration", "runs on the NPU once the migration has rewritten what needs it"),
    "supported": Status("supported", "runs on the NPU as it is"),
}
# What the kinds of api_support mean here.
_KINDS = {
    "eager": "unsupported",
    "tpu": "unsupported",
    "gpu": "unsupported",
    "lite": "unsupported",
    "queue": "unsupported",
    "horovod": "unsupported",
    "finite": "limited",
    "table": "limited",
    "unclear": "unclear",
    "unverified": "unexamined",
}
# Ordinary Python under a name of TensorFlow.
_PYTHON = ("tensorflow.flags.", "tensorflow.app.")


def status_of(name: str, codes: tuple[str, ...] = (), tensorflow: str = TF1) -> str:
    """The status of a call, a key of :data:`STATUSES`.

    Args:
        name: its canonical name; without a family, as in ``.batch``, it is known only to the rules.
        codes: the rules that spoke of such calls.
        tensorflow: which list is asked, :data:`TF1` or :data:`TF2`.
    """
    if not name.partition(".")[0]:
        return "migrated" if all(code.startswith(("NPU1", "NPU3")) for code in codes) else "limited"
    if name.startswith("keras."):
        return "unsupported"  # tf.keras runs, the package keras does not
    if name.startswith(_PYTHON):
        return "supported"
    if name in SUPPORT:
        return _KINDS[SUPPORT[name]]
    listed = _listed(TF1 if name.startswith("horovod.") else tensorflow)  # which only the first list has
    owner, _, last = name.rpartition(".")
    if name not in listed and last and last_part(owner)[:1].isupper():
        return status_of(owner, codes, tensorflow)  # of a method, that of its class
    return listed.get(name, "unlisted")


@functools.lru_cache(maxsize=None)
def _listed(tensorflow: str) -> dict[str, str]:
    with open(_LIST, encoding="utf-8") as stream:
        names = json.load(stream)[tensorflow]
    return {
        f"{module}.{last}": status
        for status, modules in names.items()
        for module, lasts in modules.items()
        for last in lasts.split()
    }
