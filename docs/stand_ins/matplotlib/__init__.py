"""Take the place of matplotlib where a script only draws."""

import sys
from unittest import mock

use = mock.MagicMock()
for (
    _name
) in "animation axes cm collections colors figure font_manager gridspec image lines patches style ticker".split():
    sys.modules[f"{__name__}.{_name}"] = mock.MagicMock()
