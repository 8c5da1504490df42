"""Accept every call and draw nothing."""

from __future__ import annotations

import sys
from typing import Any
from unittest import mock


def _subplots(rows: int = 1, columns: int = 1, *_: Any, **__: Any) -> Any:
    """Return a figure, and an axis or an array of axes without sides of one."""
    import numpy as np

    axes = np.empty((rows, columns), object)
    for place in np.ndindex(rows, columns):  # NumPy takes a list of mocks for a list of empty lists
        axes[place] = mock.MagicMock()
    return mock.MagicMock(), axes.squeeze() if axes.size > 1 else axes[0, 0]


sys.modules[__name__] = mock.MagicMock(subplots=_subplots)
