"""Install the hooks of a recording as soon as the script, or npu_shim, has imported TensorFlow."""

from __future__ import annotations

from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.settings import HookSettings


def install_hooks(recorder: Recorder, settings: HookSettings) -> None:
    """Install the hooks of a recording when the script, or npu_shim, imports TensorFlow, or now if it is imported.

    Args:
        recorder: receives the values.
        settings: of the hooks.
    """

    def install() -> None:
        from npu_shim.rehearsal.recording import hooks

        hooks.install_recording_hooks(recorder, settings)

    after_tensorflow(install)
