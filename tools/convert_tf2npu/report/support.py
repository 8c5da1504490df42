"""The support status of calls of TensorFlow and Horovod on the NPU.

The data are the vendor's lists for TensorFlow 1.15 and 2.6 (support_list.json). The tables of the rules
(``tf_api.name_tables``) take precedence over the lists.
"""

from __future__ import annotations

import functools
import json
import os
from typing import NamedTuple

from ..syntax.expressions import last_part
from ..tf_api.name_tables import SUPPORT

_LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "support_list.json")

TF1, TF2 = "1.15", "2.6"  # the versions that have a list


class Status(NamedTuple):
    """A status: its label and its advice."""

    label: str
    advice: str


# Sorted by urgency.
STATUSES: dict[str, Status] = {
    "unsupported": Status("not supported", "does not run on the NPU"),
    "limited": Status("with limits", "runs on the NPU with limits; findings report where they matter"),
    "unclear": Status(
        "contradictory",
        "the support information is contradictory; run one step with it on an NPU before a long training",
    ),
    "unexamined": Status(
        "not verified", "the vendor has not verified it; run one step with it on an NPU before a long training"
    ),
    "unlisted": Status(
        "not listed",
        "not in the vendor's list: a private name, another package or another version; it runs if its operations do",
    ),
    "deprecated": Status(
        "deprecated",
        "deprecated in TensorFlow and not verified by the vendor; it runs if its operations do; prefer its successor",
    ),
    "ignored": Status("no effect", "can stay; it has no effect on the NPU"),
    "migrated": Status("after migration", "runs on the NPU after the conversion"),
    "supported": Status("supported", "runs on the NPU without changes"),
}
# The statuses of the kinds of tf_api.name_tables.
_KINDS = {
    "eager": "unsupported",
    "tpu": "unsupported",
    "gpu": "unsupported",
    "lite": "unsupported",
    "queue": "unsupported",
    "finite": "limited",
    "table": "limited",
    "unclear": "unclear",
    "unverified": "unexamined",
}
# The kinds that do not hold for TensorFlow 2, which has a list of its own.
_ONLY_IN_1 = frozenset({"eager", "unclear", "unverified"})
# Plain Python under a name of TensorFlow.
_PYTHON = ("tensorflow.flags.", "tensorflow.app.")


def status_of(name: str, codes: tuple[str, ...] = (), tensorflow: str = TF1) -> str:
    """Return the status of a call, a key of :data:`STATUSES`.

    Args:
        name: the canonical name; a name without a root, as ``.batch``, is known only to the rules.
        codes: the rules that rewrote or reported such calls.
        tensorflow: the list to use, :data:`TF1` or :data:`TF2`.
    """
    if not name.partition(".")[0]:
        return "migrated" if all(code.startswith(("NPU1", "NPU3")) for code in codes) else "limited"
    if name.startswith("keras."):
        return "unsupported"  # tf.keras runs, the package keras does not
    if name.startswith("horovod."):
        return "migrated"  # npu_shim.horovod has all of it
    if name.startswith(_PYTHON):
        return "supported"
    kind = SUPPORT.get(name, "")
    if kind and not (tensorflow == TF2 and kind in _ONLY_IN_1):
        return _KINDS[kind]
    if kind == "eager":
        return "ignored"  # TensorFlow 2 is eager without it
    listed = _statuses_by_name(tensorflow)
    owner, _, last = name.rpartition(".")
    if name not in listed and last and last_part(owner)[:1].isupper():
        return status_of(owner, codes, tensorflow)  # a method has the status of its class
    return listed.get(name, "unlisted")


@functools.lru_cache(maxsize=None)
def _statuses_by_name(tensorflow: str) -> dict[str, str]:
    with open(_LIST, encoding="utf-8") as stream:
        names = json.load(stream)[tensorflow]
    return {
        f"{module}.{last}": status
        for status, modules in names.items()
        for module, lasts in modules.items()
        for last in lasts.split()
    }
