from __future__ import annotations

from typing import Iterator

import pytest

from npu_shim._tensorflow import patches
from npu_shim.ops.cpu_kernels import forms


@pytest.fixture
def in_use() -> Iterator[None]:
    forms.use_cpu_forms()
    yield
    patches.restore_all()
