"""Install the hooks of a recording as soon as the script, or npu_shim, has imported TensorFlow."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np

from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.rehearsal.recording.random_seeds import Apart
from npu_shim.rehearsal.recording.recorder import Recorder


def install(
    recorder: Recorder,
    seed: int,
    by_call_site: bool,
    deliberate: Mapping[str, Any] | None = None,
    records_initial: bool = False,
    given: Sequence[tuple[str, np.ndarray]] | None = None,
    apart: Apart | None = None,
) -> None:
    """Install the hooks when TensorFlow is imported, or now if it is.

    Args:
        recorder: receives the values.
        seed: of this run.
        by_call_site: True to derive the seeds of ops from their call sites.
        deliberate: the settings of recording.deliberate, or None.
        records_initial, given: as for hooks.install_all().
        apart: draws numbers of this rank where the script sets no seed; None to draw those of rank 0.
    """

    def hook() -> None:
        from npu_shim.rehearsal.recording import hooks

        hooks.install_all(recorder, seed, by_call_site, records_initial, given, apart)
        if deliberate is not None:
            from npu_shim.rehearsal.recording.deliberate import watch_deliberate_changes

            watch_deliberate_changes(recorder, deliberate)

    after_tensorflow(hook)
