"""The vendor's npu_bridge._api.experimental. Generated from npu_shim/_vendor_paths/table.py; do not edit."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._host.lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from npu_shim.experimental.get_shape import getshape
    from npu_shim.experimental.image import decode_image
else:
    __getattr__, __dir__ = _lazy_names(__name__, {
        "npu_shim.experimental.get_shape": "getshape", "npu_shim.experimental.image": "decode_image",
    })

__all__ = ["decode_image", "getshape"]
