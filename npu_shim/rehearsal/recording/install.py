"""Install the hooks of a recording as soon as the script, or npu_shim, has imported TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.rehearsal.recording.recorder import Recorder

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Value


def install_hooks(recorder: Recorder, *args: Value) -> None:
    """Install the hooks of a recording when the script, or npu_shim, imports TensorFlow, or now if it is imported.

    Args:
        recorder: receives the values.
        args: the other ones of hooks.install_all().
    """

    def install() -> None:
        from npu_shim.rehearsal.recording import hooks

        hooks.install_all(recorder, *args)

    after_tensorflow(install)
