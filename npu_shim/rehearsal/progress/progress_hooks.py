"""All hooks of a watched process."""

from __future__ import annotations

from npu_shim.rehearsal.progress.counted_functions import Functions
from npu_shim.rehearsal.progress.counted_sessions import Sessions
from npu_shim.rehearsal.progress.counted_updates import Updates
from npu_shim.rehearsal.progress.progress import Progress
from npu_shim.rehearsal.progress.tape_losses import watch_tapes
from npu_shim.rehearsal.recording.estimators import watch_estimators
from npu_shim.rehearsal.recording.keras_models import watch_keras_models
from npu_shim.rehearsal.recording.summaries import watch_summaries


def install_progress_hooks(progress: Progress) -> None:
    """Install all hooks in this process, in which TensorFlow is loaded."""
    functions = Functions(progress)
    functions.watch()
    Sessions(progress).watch_sessions()
    watch_tapes(progress, functions)
    Updates(progress, functions).install()
    watch_summaries(progress)
    watch_keras_models(progress)
    watch_estimators(progress)
