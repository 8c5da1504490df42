"""Make convert_tf2npu/report/support_list.json: the vendor's support status of each name of TensorFlow.

``python tools/make_support_list.py LIST115.json LIST26.json > tools/convert_tf2npu/report/support_list.json``

The lists for TensorFlow 1.15 and 2.6 map API names to ``status``. The tool spells each name without ``compat.v1``. The
script drops such names of the first list. In the second list they are the names that TensorFlow 1 scripts call. The
table of make_api_support.py, which decides about findings, takes precedence over this list.
"""

from __future__ import annotations

import json
import sys
from typing import Iterator

from make_api_support import canonical_name

# The statuses of the list and their names in the tool; report/support.py explains them.
_STATUSES = {
    "supported_no_change": "supported",
    "supported_after_tool_migration": "migrated",
    "training_works_after_tool_migration": "migrated",
    "unsupported_no_impact": "ignored",
    "deprecated": "deprecated",
    "under_analysis": "unexamined",
    "unsupported_avoid": "unsupported",
}
# Corrections: a query and two switches of Python's behavior without effect in a graph, and an optimizer that a rule
# removes.
_DECIDED = {
    "tf.executing_eagerly": "ignored",
    "tf.enable_tensor_equality": "ignored",
    "tf.enable_v2_tensorshape": "ignored",
    "tf.tpu.CrossShardOptimizer": "migrated",
    "tf.contrib.tpu.CrossShardOptimizer": "migrated",
}

# Corrections of the list for TensorFlow 2.6 alone. It excludes base classes of every model, functions that run Python
# on the host, which input pipelines may do, names that published models train with on the NPU, and objects that it
# supports under another name.
_DECIDED_2 = {
    "tf.SparseTensor": "unclear",
    "tf.device": "migrated",
    "tf.einsum": "unclear",
    "tf.ensure_shape": "unclear",
    "tf.keras.layers.AbstractRNNCell": "supported",
    "tf.keras.layers.Bidirectional": "unclear",
    "tf.keras.layers.DepthwiseConv2D": "unclear",
    "tf.keras.layers.experimental.EinsumDense": "unclear",
    "tf.keras.layers.Layer": "supported",
    "tf.keras.layers.PReLU": "unclear",
    "tf.keras.losses.CategoricalCrossentropy": "unclear",
    "tf.linalg.einsum": "unclear",
    "tf.numpy_function": "limited",
    "tf.py_function": "limited",
    "tf.random.get_global_generator": "unclear",
    "tf.random.stateless_uniform": "unclear",
}


def statuses(rows: dict[str, dict[str, str]], decided: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each name without ``compat.v1``, and its status.

    Args:
        rows: the rows of a list by name.
        decided: the statuses that correct it.
    """
    for name, row in rows.items():
        # npu_shim.horovod has all of Horovod (hvd.), whatever the list says.
        if row["status"] not in _STATUSES or name.startswith(("tf.compat.", "hvd.")):
            continue
        of_v1 = rows.get("tf.compat.v1." + name[3:], row)["status"]
        # Usually both are the same function, so the verified status of one holds for both.
        status = row["status"] if of_v1 in ("under_analysis", "compatible") else of_v1
        yield name, decided.get(name, _STATUSES[status])
    for name, row in rows.items():
        bare = "tf." + name[len("tf.compat.v1.") :]
        if name.startswith("tf.compat.v1.") and row["status"] in _STATUSES and bare not in rows:
            yield bare, decided.get(bare, _STATUSES[row["status"]])


def support_list(rows: dict[str, dict[str, str]], tensorflow: str = "1.15") -> dict[str, dict[str, str]]:
    """Return the last parts of the names, joined by spaces, by status and module."""
    decided = {**_DECIDED, **_DECIDED_2} if tensorflow == "2.6" else _DECIDED
    found: dict[str, dict[str, list[str]]] = {}
    for name, status in statuses(rows, decided):
        module, _, last = canonical_name(name).rpartition(".")
        if last:
            found.setdefault(status, {}).setdefault(module, []).append(last)
    return {
        status: {module: " ".join(sorted(set(names))) for module, names in sorted(modules.items())}
        for status, modules in sorted(found.items())
    }


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: python tools/make_support_list.py LIST115.json LIST26.json", file=sys.stderr)
        return 2
    made = {}
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as stream:
            listed = json.load(stream)
        version = listed["meta"]["tensorflow"]
        made[version] = support_list(listed["apis"], version)
    print(json.dumps(made, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
