"""Take back what a part of this process writes."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import Iterator

from npu_shim.rehearsal.files.file_watch import Watch
from npu_shim.rehearsal.files.kept import STORE, Kept, take_back
from npu_shim.rehearsal.files.temporary import temporary


class Written:
    """The files that a block writes.

    Args:
        kept: notes it.
    Attributes:
        stays: True to leave it.
    """

    def __init__(self, kept: Kept) -> None:
        self._kept, self.stays = kept, False

    def changed(self) -> list[str]:
        """Return the files that were there before and have another content now."""
        return self._kept.changed()


@contextlib.contextmanager
def taken_back() -> Iterator[Written]:
    """Take back what the block writes through Python and TensorFlow, unless it sets ``stays``."""
    with temporary("npu_shim_assess_") as folder:
        store = os.path.join(folder, STORE)
        kept = Kept(store, [folder])
        watch, written = Watch(kept), Written(kept)
        try:
            watch.start()
            watch.follow_tensorflow()
            yield written
        finally:
            watch.stop()
            if not written.stays:
                take_back(store)
            shutil.rmtree(folder, ignore_errors=True)
