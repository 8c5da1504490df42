"""Sessions that are open when Python ends.

On an NPU they must be closed before the vendor's package closes the device, which it does when Python ends. TensorFlow
closes them later, when it deletes them.
"""

from __future__ import annotations

import atexit
import os
import threading
from weakref import WeakKeyDictionary

from npu_shim._host import host_device
from npu_shim._tensorflow import patches, tf_api, tf_session
from npu_shim._tensorflow.types import Session

_process_of: WeakKeyDictionary[Session, int] = WeakKeyDictionary()  # the process that made each session


def close_at_exit(session: Session) -> None:
    """Close a session when Python ends, if it is open then. It lives no longer than without this call."""
    _process_of[session] = os.getpid()


def register_closing_at_exit() -> None:
    """Close sessions when Python ends, before what was registered for its end until now; see close_at_exit()."""
    atexit.register(_close_all)
    patches.register_undo(_cancel_closing_at_exit)


def _cancel_closing_at_exit() -> None:
    atexit.unregister(_close_all)


def _close_all() -> None:
    """Close the sessions of this process that are open. On the CPU, leave them to threads that still run."""
    if threading.active_count() > 1 and not host_device.detect_without_import().is_npu:
        return  # daemon threads, such as those of queue runners: their errors would end them with a traceback
    for session, process in list(_process_of.items()):
        if process == os.getpid() and not tf_session.is_remote(session):
            try:
                tf_session.BaseSession.close(session)
            except tf_api.tf.errors.OpError as error:
                tf_api.logging.warning("npu_shim: a session that is open when Python ends does not close: %s", error)
