"""Install the NPU config in every new session of this process, and uninstall it."""

from __future__ import annotations

import functools
import inspect
from typing import Callable

from npu_shim._host import host_env
from npu_shim._tensorflow import patches
from npu_shim._tensorflow.types import ConfigProto, Graph, Session


def install() -> None:
    """Make every new Session and InteractiveSession carry the NPU config.

    This includes the sessions of Keras, Estimator and MonitoredTrainingSession.
    Existing sessions do not change. On the NPU, a sharded saver on which the
    vendor's graph passes fail writes its checkpoints in two runs. On the CPU, sessions run with the graph
    passes that the script asks for (they are off on the NPU), TensorFlow reuses
    the memory of tensors (NPU_SHIM_MEMORY), and ops that only GPUs and NPUs
    compute run in another form (npu_shim.ops.cpu_kernels). On ranks, Keras of TensorFlow 1.15 clips
    averages. Device scopes of graphs that name a GPU name the CPU, from which the NPU takes ops.
    Sessions that are open when Python ends are closed. A second call does nothing.

    Raises:
        RuntimeError: if there is no NPU and NPU_SHIM_FALLBACK=error.
    """
    from npu_shim._host import allocator, host_device
    from npu_shim._tensorflow import tf_api, tf_devices, tf_session
    from npu_shim.config import open_sessions
    from npu_shim.config.keras_clipping import patch_gradient_clipping
    from npu_shim.config.sharded_checkpoints import wrap_save_in_two_runs
    from npu_shim.ops.cpu_kernels import forms

    if host_device.require_device().is_npu:
        patches.replace_attribute(tf_api.v1.train.Saver, "save", wrap_save_in_two_runs)
    else:
        variables = allocator.allocator_variables(host_env.process_environ())
        patches.register_undo(host_env.set_variables(variables))
        forms.use_cpu_forms()
    patch_gradient_clipping()
    tf_devices.patch_device_scopes_of_graphs()
    if not patches.is_replaced(tf_session.Session, "__init__"):
        open_sessions.register_closing_at_exit()
    for owner in (tf_session.Session, tf_session.InteractiveSession):
        patches.replace_attribute(owner, "__init__", decorator_tf_session)


def uninstall() -> None:
    """Restore every original exactly. Without install(), and on a second call, it does nothing.

    A process that has had a session keeps the allocator that TensorFlow chose for it.
    """
    patches.restore_all()


def set_npu_default_config(
    func: Callable[..., None], args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Put the config of a call of a session's constructor through session_config.

    Args:
        func: ``Session.__init__``, or a function with a parameter ``config``.
        args: positional arguments of the call, without ``self``.
        kwargs: its arguments by name.
    Returns:
        Arguments with the config by name; those given do not change.
    """
    from npu_shim.config.session import session_config

    place = [name for name in inspect.signature(func).parameters if name != "self"].index("config")
    config = kwargs.get("config", args[place] if len(args) > place else None)
    return args[:place] + args[place + 1 :], {**kwargs, "config": session_config(config)}


def decorator_tf_session(func: Callable[..., None]) -> Callable[..., None]:
    """Wrap the ``__init__`` of a session class so that its config goes through session_config.

    Args:
        func: ``Session.__init__``, or a function with the same arguments.
    Returns:
        The wrapper.
    """
    from npu_shim._tensorflow import tf_session
    from npu_shim.config import open_sessions
    from npu_shim.config.graph_passes import config_for_this_device
    from npu_shim.config.session import session_config

    @functools.wraps(func)
    def with_npu_config(
        self: Session, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None
    ) -> None:
        try:
            config = session_config(config)
        except Exception:
            tf_session.silence_failed_session(self)
            raise
        func(self, target=target, graph=graph, config=config_for_this_device(config))
        tf_session.set_reported_config(self, config)
        open_sessions.close_at_exit(self)

    return with_npu_config
