"""Scripts of TensorFlow 1 that run with TensorFlow 2, and the reverse: a sentence beside their AttributeError."""

from __future__ import annotations

import re
import sys

SPEAKS = "this script speaks TensorFlow"
_MISSING = re.compile(r"module '(tensorflow[\w.]*)' has no attribute '(\w+)'|No module named '(tensorflow)\.(contrib)'")


def version_advice(error: BaseException) -> str | None:
    """Return what to do about a name that only the other TensorFlow has; None for other errors."""
    missing = _MISSING.search(str(error)) if isinstance(error, (AttributeError, ImportError)) else None
    tensorflow = sys.modules.get("tensorflow")
    version = getattr(tensorflow, "__version__", "")
    if missing is None or not version:
        return None
    module, name = missing[1] or missing[3], missing[2] or missing[4]
    if version.startswith("1."):
        other, fix = "v2", "Use TensorFlow 2.6 or later."
    elif name == "contrib":
        return f"{SPEAKS} 1, and this is {version}, which has no tf.contrib. Use TensorFlow 1.15."
    else:
        other, fix = "v1", "Convert it with --compat-v1, or use TensorFlow 1.15."
    place = getattr(getattr(tensorflow, "compat", None), other, None)
    for part in re.sub(r"^tensorflow(_core)?(\._api\.v[12])?\.?", "", module).split("."):
        place = getattr(place, part, None) if part else place
    return f"{SPEAKS} {other[1]}, and this is {version}. {fix}" if hasattr(place, name) else None
