"""Options that a command gives to every session and device of a script, whatever the script itself configures.

On a card every way to configure a session ends in the parameter_map of the NpuOptimizer entry of its config, and every
way to configure the device of TensorFlow 2 in the vendor's global options. The options are written there last. Where
there is no card they are only checked.
"""

from __future__ import annotations

import functools
from typing import Callable, Mapping

from npu_shim._host import host_device
from npu_shim._tensorflow import patches
from npu_shim._tensorflow.types import ConfigProto, Function, OptionValue, Session
from npu_shim.config import parameter_map
from npu_shim.options.check import checked_session_options
from npu_shim.options.table import KEYS


def apply_to_new_sessions(
    options: Mapping[str, OptionValue],
    note: Callable[[Mapping[str, OptionValue]], None] = lambda options: None,
    of_device: Mapping[str, OptionValue] | None = None,
) -> None:
    """Give options to the sessions that are made from now on, and to the device of TensorFlow 2.

    Call it when TensorFlow has been imported.

    Args:
        options: by parameter_map key. They replace those of the script; what excludes them there goes.
        note: takes the options that a session, or the device, gets in the end.
        of_device: those of the device of TensorFlow 2, if they are others.
    Raises:
        TypeError, ValueError: as session_config does.
    """
    checked = checked_session_options(options)
    if not host_device.is_npu():
        return
    from npu_shim._tensorflow import tf_session

    patches.replace_attribute(
        tf_session.BaseSession, "__init__", functools.partial(_wrap_session_init, options=checked, note=note)
    )
    if host_device.has_npu_device():
        owner = host_device.import_vendor_module("npu_device.configs.npu_config").NpuConfig
        base = next(cls for cls in owner.__mro__ if "as_dict" in vars(cls))
        own = checked if of_device is None else checked_session_options(of_device)
        patches.replace_attribute(
            base, "as_dict", functools.partial(_wrap_as_dict, options=own, owner=owner, note=note)
        )


def config_with_options(config: ConfigProto, options: Mapping[str, OptionValue]) -> ConfigProto:
    """Return a copy of a config whose NpuOptimizer entries have the options; a config without an entry as it is."""
    if parameter_map.find_entry(config) is None:
        return config
    from npu_shim._tensorflow import tf_api

    result = tf_api.ConfigProto()
    result.CopyFrom(config)
    for entry in result.graph_options.rewrite_options.custom_optimizers:
        if entry.name == parameter_map.NPU_OPTIMIZER:
            for name in options:
                for other in KEYS[name].excludes:
                    entry.parameter_map.pop(other, None)
            parameter_map.write_options(entry, dict(options))
    return result


def _wrap_session_init(
    original: Function, options: Mapping[str, OptionValue], note: Callable[[Mapping[str, OptionValue]], None]
) -> Function:
    @functools.wraps(original)
    def init(self: Session, target: str = "", graph: object = None, config: ConfigProto | None = None) -> None:
        given = config_with_options(config, options) if config is not None else None
        entry = parameter_map.find_entry(given)
        if entry is not None:
            note(parameter_map.read_options(entry))
        original(self, target, graph, given)

    return init


def _wrap_as_dict(
    original: Function,
    options: Mapping[str, OptionValue],
    owner: type,
    note: Callable[[Mapping[str, OptionValue]], None],
) -> Function:
    @functools.wraps(original)
    def as_dict(self: object) -> dict[str, str]:
        texts: dict[str, str] = original(self)
        for name, value in options.items() if isinstance(self, owner) else ():
            for other in KEYS[name].excludes:
                texts.pop(other, None)
            key = (KEYS[name].tf2_path or "").rpartition(".")[2]
            texts.update({key: str(int(value)) if isinstance(value, bool) else str(value)} if key else {})
        if isinstance(self, owner):
            note(dict(texts))
        return texts

    return as_dict
