"""Owns every patch npu_shim makes, and takes each back exactly."""

from __future__ import annotations

import functools
import os
from typing import Any, Callable

_originals: dict[tuple[type, str], Any] = {}  # the one piece of global state: what install() replaced
_variables: dict[str, str] = {}  # and what it set


def install() -> None:
    """Makes every new Session and InteractiveSession carry the NPU config.

    The Keras session and those of Estimator and MonitoredTrainingSession are
    sessions too, so they carry it as well. Sessions made before stay as they
    are. Without a card, they have the graph passes that the script asks for,
    which are off on the card, and TensorFlow keeps the memory of tensors for
    the next ones (NPU_SHIM_MEMORY). Calling it again changes nothing.

    Raises:
        RuntimeError: there is no NPU and NPU_SHIM_FALLBACK=error.
    """
    from npu_shim import _allocator, _device, _tf

    if not _device.resolve().is_npu:
        _variables.update(_allocator.variables(os.environ))
        os.environ.update(_variables)
    for owner in (_tf.Session, _tf.InteractiveSession):
        replace(owner, "__init__", decorator_tf_session)


def uninstall() -> None:
    """Puts back every original exactly; calling it again, or without install(), changes nothing.

    A process that has had a session keeps the allocator that TensorFlow chose for it.
    """
    while _originals:
        (owner, name), original = _originals.popitem()
        setattr(owner, name, original)
    while _variables:
        name, value = _variables.popitem()
        if os.environ.get(name) == value:
            del os.environ[name]


def replace(owner: type, name: str, make: Callable[[Any], Any]) -> None:
    """Replaces ``owner.name`` by ``make(original)`` until uninstall(); once."""
    if (owner, name) not in _originals:
        original = owner.__dict__[name]
        setattr(owner, name, make(original))
        _originals[owner, name] = original


def decorator_tf_session(func: Callable) -> Callable:
    """Wraps the ``__init__`` of a session class so that its config goes through session_config.

    Args:
        func: ``Session.__init__`` or one with the same arguments.
    Returns:
        The wrapper.
    """
    from npu_shim import _tf
    from npu_shim.config.graph_passes import for_this_device
    from npu_shim.config.session import session_config, with_threads

    @functools.wraps(func)
    def with_npu_config(self: Any, target: str = "", graph: Any = None, config: Any = None) -> None:
        try:
            config = with_threads(session_config(config), graph or _tf.v1.get_default_graph())
            if target:  # a server has the threads, and refuses sessions that bring their own
                config.use_per_session_threads = False
        except Exception:
            _tf.never_opened(self)
            raise
        func(self, target=target, graph=graph, config=for_this_device(config))
        _tf.say_config(self, config)

    return with_npu_config
