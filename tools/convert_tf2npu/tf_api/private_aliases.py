"""The public names of what TensorFlow's private modules have."""

from __future__ import annotations

import re

from .name_tables import PUBLIC_MODULES

# Families of private modules, where only the last name tells: the path of modules, and where it is public.
_FAMILIES = tuple(
    (re.compile(pattern + r"\.(?=[A-Za-z_]\w*\Z)"), new)
    for pattern, new in (
        (r"tensorflow\.contrib\.(\w+)\.python(?:\.\w+)*", r"tensorflow.contrib.\1."),
        (r"tensorflow(?:_estimator)?\.python\.estimator\.tpu(?:\.\w+)*", "tensorflow.estimator.tpu."),
        (r"tensorflow(?:_estimator)?\.python\.estimator\.export(?:\.\w+)*", "tensorflow.estimator.export."),
        (r"tensorflow(?:_estimator)?\.python\.estimator\.keras", "tensorflow.keras.estimator."),
        (r"tensorflow(?:_estimator)?\.python\.estimator(?:\.\w+)*", "tensorflow.estimator."),
        (r"tensorflow\.python\.distribute\.\w+", "tensorflow.distribute."),
        (r"tensorflow\.python\.training\.experimental\.\w+", "tensorflow.train.experimental."),
        (r"tensorflow\.python\.training(?:\.\w+)*", "tensorflow.train."),
        (r"tensorflow\.python\.tpu\.tpu_(?:config|estimator)", "tensorflow.estimator.tpu."),
        (r"tensorflow\.python\.tpu(?:\.\w+)*", "tensorflow.tpu."),
        (r"tensorflow\.python\.data\.experimental\.ops\.\w+", "tensorflow.data.experimental."),
        (r"tensorflow\.python\.data\.ops\.\w+", "tensorflow.data."),
        (r"tensorflow\.python\.keras\.engine\.\w+", "tensorflow.keras."),
        (r"tensorflow\.python\.keras\.(layers|applications|utils|callbacks)\.[a-z]\w*", r"tensorflow.keras.\1."),
        (r"tensorflow\.python\.keras\.optimizer_v[12]\.\w+", "tensorflow.keras.optimizers."),
    )
)
# Packages whose other names are public under the same path.
_PACKAGES = (("tensorflow.python.data.", "tensorflow.data."), ("tensorflow.python.keras.", "tensorflow.keras."))
_CLASS = re.compile(r"[A-Z]")


def public_name(name: str) -> str:
    """Return the public name of a name that may be private.

    Args:
        name: a dotted name, for example ``tensorflow.python.client.session.Session``.

    Returns:
        The public name, for example ``tensorflow.Session``. Public names are returned unchanged.
    """
    if ".python." not in name and ".core." not in name and not name.startswith("tensorflow_estimator."):
        return name
    parts = name.split(".")
    for cut in range(len(parts), 1, -1):
        module = PUBLIC_MODULES.get(".".join(parts[:cut]))
        if module:
            return ".".join([module] + parts[cut:])
    # The parts after the first class are its attributes.
    end = next((i for i, part in enumerate(parts) if _CLASS.match(part)), len(parts) - 1) + 1
    whole = ".".join(parts[:end])
    for pattern, new in _FAMILIES:
        match = pattern.match(whole)
        if match:
            return ".".join([match.expand(new) + whole[match.end() :]] + parts[end:])
    for old, new in _PACKAGES:
        if name.startswith(old):
            return new + name[len(old) :]
    return name
