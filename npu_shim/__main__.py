"""``python -m npu_shim VERB``: the command ``npu-shim`` where it is not installed."""

from __future__ import annotations

import sys

from npu_shim.cli import main

if __name__ == "__main__":
    sys.exit(main())
