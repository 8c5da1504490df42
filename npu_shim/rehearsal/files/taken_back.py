"""Take back what a part of this process writes."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import Iterator

from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.rehearsal.files.file_watch import Watch
from npu_shim.rehearsal.files.kept import STORE, Kept, restore_files
from npu_shim.rehearsal.files.temporary import command_folder


@contextlib.contextmanager
def restoring_files() -> Iterator[Kept]:
    """Take back what the block writes through Python and TensorFlow, unless it sets ``stays``."""
    with command_folder("npu_shim_assess_") as folder:
        store = os.path.join(folder, STORE)
        kept = Kept(store, [folder])
        watch = Watch(kept)
        try:
            watch.start()
            after_tensorflow(watch.follow_tensorflow)
            yield kept
        finally:
            watch.stop()
            if not kept.stays:
                restore_files(store)
            shutil.rmtree(folder, ignore_errors=True)
