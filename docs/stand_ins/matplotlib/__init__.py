"""Take the place of matplotlib where a script only draws."""

import sys
from unittest import mock

use = mock.MagicMock()
for _name in ("animation", "cm", "colors", "gridspec", "lines", "patches", "style", "ticker"):
    sys.modules[f"{__name__}.{_name}"] = mock.MagicMock()
