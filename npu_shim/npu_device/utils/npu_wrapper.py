"""The NPU's operators as Keras layers, so that models of the functional interface can be saved and loaded."""

from __future__ import annotations

import functools
from typing import Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_keras
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Function, Result, Structure
from npu_shim.npu_device import gen_npu_ops

_NAMES = "npu_api_names"
_symbols: dict[str, Function] = {}


def npu_symbol_register(names: str | Sequence[str], func: Function) -> Function:
    """Make a function or class known under names such as "npu.ops.gelu", and return it."""
    for name in [names] if isinstance(names, str) else names:
        _symbols[name] = func
    if names:
        setattr(func, _NAMES, names)
    return func


def get_npu_symbol_from_name(name: str) -> Function | None:
    """Return the function or class of a name; None for another name."""
    return _symbols.get(name)


def get_one_name_for_npu_symbol(symbol: object) -> str | None:
    """Return the first name of a function or class; None if it has none."""
    names = getattr(symbol, _NAMES, None)
    return names if names is None or isinstance(names, str) else names[0]


class NpuOpLambda(tf.keras.layers.Layer):
    """A layer that calls an operator of the NPU.

    Args:
        function: a function known by npu_symbol_register, or its name.
        **kwargs: arguments of the layer.
    Raises:
        ValueError: the function is not known.
    """

    def __init__(self, function: Function, **kwargs: object) -> None:
        symbol = function if isinstance(function, str) else get_one_name_for_npu_symbol(function)
        if symbol not in _symbols:
            raise ValueError(f"function={function!r} is not allowed: it must be one of {', '.join(sorted(_symbols))}.")
        assert symbol is not None
        super().__init__(**kwargs)
        self.symbol = symbol

    def call(self, inputs: Structure, *args: object) -> Structure:
        """Call the operator."""
        return _symbols[self.symbol](inputs, *args)

    def get_config(self) -> dict[str, object]:
        """Return the arguments of the layer, with the operator's name as "function"."""
        return {**super().get_config(), "function": self.symbol}

    @classmethod
    def from_config(cls, config: dict[str, Result], custom_objects: dict[str, object] | None = None) -> NpuOpLambda:
        """Return the layer of get_config()."""
        return cls(**config)


if not host_device.has_npu_device():  # the vendor's package registers its own
    tf_keras.register_serializable("npu_device.utils.npu_wrapper", NpuOpLambda)
    npu_symbol_register("npu.ops.gelu", gen_npu_ops.fast_gelu)


def npu_functional_support(op: Function) -> Function:
    """Return an operator that, called with the output of a Keras layer, adds a layer to the model."""

    @functools.wraps(op)
    def called(*args: object, **kwargs: object) -> Result:
        if any(tf_keras.is_keras_tensor(x) for x in tf.nest.flatten([args, kwargs])):
            return NpuOpLambda(op)(*args, **kwargs)
        return op(*args, **kwargs)

    return called


host_device.copy_vendor_names(__name__)
