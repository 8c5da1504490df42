"""Accept every call and draw nothing."""

import sys
from unittest import mock

sys.modules[__name__] = mock.MagicMock()
