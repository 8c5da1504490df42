"""The migration tool: TensorFlow training scripts to npu_shim, by the meaning of names.

It needs the standard library of Python 3.7 or later, and never imports TensorFlow. Its packages are stages; each
imports only from those below it: ``api``, ``cli``, ``report``, ``engine``, ``rules``, ``rewrite``, ``analysis``,
``project``, ``semantics``, ``syntax``, ``tf_api``, ``files``. docs/architecture.md shows how a file passes through
them. ``api`` has all that npu_shim uses.
"""

import os
import re

_WITHOUT_LIBRARY = "0.0.0+unknown"  # a copy of this folder alone


def _version() -> str:
    """Return the version in the text of the library's ``__init__.py``: in an installation, or else in a checkout."""
    here = os.path.dirname(os.path.abspath(__file__))
    for parent in (os.path.dirname(here), os.path.dirname(os.path.dirname(here))):
        try:
            with open(os.path.join(parent, "npu_shim", "__init__.py"), encoding="utf-8") as stream:
                assigned = re.search(r'^__version__ = "(.+)"$', stream.read(), re.M)
        except OSError:
            continue
        if assigned is not None:
            return assigned[1]
    return _WITHOUT_LIBRARY


__version__ = _version()
