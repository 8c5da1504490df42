"""The keras package instead of tf.keras.

Only the Keras of TensorFlow runs on the NPU. The separate package ``keras`` creates sessions and graphs without the
NPU configuration. Import ``keras`` and its modules from ``tensorflow``. The rule reports one finding for each file.

Reported::

    from keras.models import Sequential
    from keras.layers import Dense

Reported::

    import keras

    model = keras.Sequential()

Untouched::

    from tensorflow import keras

    model = keras.Sequential()

Untouched::

    try:
        from tensorflow import keras
    except ImportError:
        import keras
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import in_test
from ...semantics.model import Binding
from ...semantics.resolved_name import ResolvedName
from ..base import Context, Finding, Result

CODE = "NPU228"


def check_file(context: Context) -> Iterator[Result]:
    if "keras" not in context.source.text or in_test(context, context.names.tree):
        return
    scopes = [context.names.module] + [f.scope for f in context.names.functions]
    found: list[Binding] = []
    for scope in scopes:
        for bindings in scope.bindings.values():
            targets = [b.target for b in bindings if b.kind == "import"]
            if any(t.startswith("tensorflow.") for t in targets):
                continue
            found += [b for b in bindings if b.kind == "import" and b.node is not None and _is_native(context, b)]
    if found:
        first = min(found, key=lambda b: getattr(b.node, "lineno", 0))
        assert first.node is not None
        module = first.target.split(".")[1] if "." in first.target else "layers"
        yield Finding(
            first.node,
            "the keras package does not run on the NPU. Write from tensorflow import keras, "
            f"from tensorflow.keras.{module} import NAME",
        )


def _is_native(context: Context, binding: Binding) -> bool:
    names = context.names
    target = names.project.follow(binding.target, names.path) if names.project else ResolvedName(binding.target)
    return target is not None and not target.path and target.dotted.partition(".")[0] == "keras"
