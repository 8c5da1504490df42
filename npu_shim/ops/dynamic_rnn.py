"""Layers of recurrent operators: LSTM, GRU and GRU with an attentional update gate over all steps of a batch.

lstm.py and gru.py have the formulas, sources and gradients. On the CPU a batch may have any size. On the NPU its size
must be static.
"""

from __future__ import annotations

import math

from npu_shim._tensorflow import tf_api, tf_layers
from npu_shim._tensorflow.types import DType, Initializer, Tensor, TensorShape, Value, Variable
from npu_shim.ops import gru, lstm

tf = tf_api.tf
DYNAMIC_RNN_UNIDIRECTION = "UNIDIRECTIONAL"
DYNAMIC_RNN_BIDIRECTION = "BIDIRECTIONAL"
DYNAMIC_RNN_REDIRECTIONAL = "REDIRECTIONAL"
_BATCH = 16  # of the variable seq_length if the batch size is not static


class _Recurrent(tf_layers.layer_class()):  # type: ignore[misc]
    """A layer with the arguments that the three have in common, as properties."""

    def __init__(self, hidden_size: int, dtype: DType, settings: dict[str, Value]) -> None:
        super().__init__(dtype=tf.as_dtype(dtype))
        self._hidden_size = hidden_size
        self._settings = settings

    direction = property(lambda self: self._settings["direction"])
    cell_depth = property(lambda self: self._settings["cell_depth"])
    keep_prob = property(lambda self: self._settings["keep_prob"])
    cell_clip = property(lambda self: self._settings["cell_clip"])
    num_proj = property(lambda self: self._settings["num_proj"])
    time_major = property(lambda self: self._settings["time_major"])
    activation = property(lambda self: self._settings["activation"])
    is_training = property(lambda self: self._settings["is_training"])

    def build(self, input_shape: TensorShape) -> None:
        """Make the variable seq_length, which checkpoints of the NPU contain."""
        time, batch = tf.TensorShape(input_shape).as_list()[:2]
        self._seq_length = self.add_weight(
            "dynamicbase/seq_length",
            shape=[batch or _BATCH],
            dtype=tf.int32,
            initializer=tf_api.v1.constant_initializer(time or 1),
            trainable=False,
        )
        super().build(input_shape)

    def _weight(self, name: str, shape: list[int], initializer: Initializer) -> Variable:
        return self.add_weight(name, shape=shape, dtype=self.dtype, initializer=initializer)

    def _input_size(self, input_shape: TensorShape) -> int:
        size: int | None = tf.TensorShape(input_shape).as_list()[2]
        if size is None:
            raise ValueError(
                f"{type(self).__name__}: the input has shape {input_shape}, but its last size must be static. Set it "
                "with set_shape."
            )
        return size

    def _zeros(self, x: Tensor, *first: int) -> Tensor:
        return tf.zeros([*first, tf.shape(x)[1], self._hidden_size], self.dtype)


class DynamicRNN(_Recurrent):
    """An LSTM over the steps of a batch.

    Args:
        hidden_size: int, the units.
        dtype: tf.float16 or tf.float32.
        cell_type: "LSTM".
        direction: "UNIDIRECTIONAL"; or "BIDIRECTIONAL" for a second LSTM from the last step to the first, whose results
            follow those of the first along a new axis 0.
        cell_depth, use_peephole, keep_prob, cell_clip, num_proj, time_major, activation: their defaults; no other value
            is supported.
        forget_bias: added to the forget gate.
        is_training: the results for the gradient are also returned if it is False.
    Raises:
        ValueError: when the layer is called, if an argument is not supported.
    """

    def __init__(
        self, hidden_size: int, dtype: DType, cell_type: str = "LSTM", direction: str = DYNAMIC_RNN_UNIDIRECTION,
        cell_depth: int = 1, use_peephole: bool = False, keep_prob: float = 1.0, cell_clip: float = -1.0,
        num_proj: int = 0, time_major: bool = True, activation: str = "tanh", forget_bias: float = 0.0,
        is_training: bool = True,
    ) -> None:  # fmt: skip
        names = (
            "cell_type direction cell_depth use_peephole keep_prob cell_clip num_proj time_major activation "
            "forget_bias is_training"
        )
        given = locals()
        super().__init__(hidden_size, dtype, {name: given[name] for name in names.split()})

    cell_type = property(lambda self: self._settings["cell_type"])
    use_peephole = property(lambda self: self._settings["use_peephole"])
    forget_bias = property(lambda self: self._settings["forget_bias"])

    def build(self, input_shape: TensorShape) -> None:
        """Make the weights: dynamicrnn/w, [inputs + units, 4 units], and dynamicrnn/b; twice if bidirectional."""
        first = [2] if self.direction == DYNAMIC_RNN_BIDIRECTION else []
        rows, units = self._input_size(input_shape) + self._hidden_size, self._hidden_size
        self._w = self._weight("dynamicrnn/w", [*first, rows, 4 * units], tf_api.v1.glorot_uniform_initializer(seed=10))
        self._b = self._weight("dynamicrnn/b", [*first, 4 * units], tf_api.v1.zeros_initializer())
        super().build(input_shape)

    def call(
        self, x: Tensor, seq_length: Tensor | None = None, init_h: Tensor | None = None, init_c: Tensor | None = None,
        weight: Tensor | None = None, bias: Tensor | None = None,
    ) -> list[Tensor]:  # fmt: skip
        """Run the steps.

        Args:
            x: [steps, batch, inputs].
            seq_length: int32 [batch], the steps of each example; all if None.
            init_h, init_c: [1, batch, units], or [2, batch, units] if bidirectional; zeros if None.
            weight, bias: used in place of the layer's.
        Returns:
            y, output_h, output_c, and the activations i, j, f, o, tanhc; each [steps, batch, units], or
            [2, steps, batch, units] if bidirectional.
        """
        w, b = self._w if weight is None else weight, self._b if bias is None else bias
        if self.direction not in (DYNAMIC_RNN_UNIDIRECTION, DYNAMIC_RNN_BIDIRECTION):
            raise ValueError(
                f"DynamicRNN: direction={self.direction!r} is not allowed: it must be {DYNAMIC_RNN_UNIDIRECTION!r} or "
                f"{DYNAMIC_RNN_BIDIRECTION!r}."
            )
        if self.direction == DYNAMIC_RNN_UNIDIRECTION:
            init_h = self._zeros(x, 1) if init_h is None else init_h
            init_c = self._zeros(x, 1) if init_c is None else init_c
            return list(lstm.dynamic_rnn(x, w, b, seq_length, init_h, init_c, **self._settings))
        init_h = self._zeros(x, 2) if init_h is None else tf.convert_to_tensor(init_h)
        init_c = self._zeros(x, 2) if init_c is None else tf.convert_to_tensor(init_c)
        w, b = tf.convert_to_tensor(w), tf.convert_to_tensor(b)
        both = [
            lstm.dynamic_rnn(
                x,
                w[number],
                b[number],
                seq_length,
                init_h[number],
                init_c[number],
                **{**self._settings, "direction": way},
            )
            for number, way in enumerate((DYNAMIC_RNN_UNIDIRECTION, DYNAMIC_RNN_REDIRECTIONAL))
        ]
        return [tf.stack(pair) for pair in zip(*both)]


class _GRU(_Recurrent):
    _folder = ""

    def __init__(
        self, hidden_size: int, dtype: DType, direction: str = DYNAMIC_RNN_UNIDIRECTION, cell_depth: int = 1,
        keep_prob: float = 1.0, cell_clip: float = -1.0, num_proj: int = 0, time_major: bool = True,
        activation: str = "tanh", gate_order: str = "zrh", reset_after: bool = True, is_training: bool = True,
    ) -> None:  # fmt: skip
        names = (
            "direction cell_depth keep_prob cell_clip num_proj time_major activation gate_order reset_after is_training"
        )
        given = locals()
        super().__init__(hidden_size, dtype, {name: given[name] for name in names.split()})

    gate_order = property(lambda self: self._settings["gate_order"])
    reset_after = property(lambda self: self._settings["reset_after"])

    def build(self, input_shape: TensorShape) -> None:
        """Make the weights, uniform in +-1 / sqrt(units): weight_input, weight_hidden, bias_input, bias_hidden."""
        inputs, units = self._input_size(input_shape), self._hidden_size
        limit = 1 / math.sqrt(units)
        shapes = {"weight_input": [inputs, 3 * units], "weight_hidden": [units, 3 * units]}
        shapes.update({"bias_input": [3 * units], "bias_hidden": [3 * units]})
        self._parts = [
            self._weight(f"{self._folder}/{name}", shape, tf_api.v1.random_uniform_initializer(-limit, limit))
            for name, shape in shapes.items()
        ]
        super().build(input_shape)


class DynamicGRUV2(_GRU):
    """A GRU over the steps of a batch.

    Args:
        hidden_size: int, the units.
        dtype: tf.float16 or tf.float32.
        direction: "UNIDIRECTIONAL".
        cell_depth, keep_prob, cell_clip, num_proj, time_major, activation: their defaults; no other value is supported.
        gate_order: "zrh" or "rzh".
        reset_after: True: the reset gate multiplies h w_h + b_h. False: it multiplies h.
        is_training: the results for the gradient are also returned if it is False.
    Raises:
        ValueError: when the layer is called, if an argument is not supported.
    """

    _folder = "dynamicgruv2"

    def call(self, x: Tensor, seq_length: Tensor | None = None, init_h: Tensor | None = None) -> tuple[Tensor, ...]:
        """Run the steps.

        Args:
            x: [steps, batch, inputs].
            seq_length: int32 [batch], the steps of each example; all if None.
            init_h: [batch, units]; zeros if None.
        Returns:
            y, output_h, update, reset, new, hidden_new; each [steps, batch, units].
        """
        init_h = self._zeros(x) if init_h is None else init_h
        w_x, w_h, b_x, b_h = self._parts
        return gru.dynamic_gru_v2(x, w_x, w_h, b_x, b_h, seq_length, init_h, **self._settings)


class DynamicAUGRU(_GRU):
    """A GRU with an attentional update gate over the steps of a batch. Arguments as for DynamicGRUV2."""

    _folder = "dynamicaugru"

    def call(
        self, x: Tensor, weight_att: Tensor, seq_length: Tensor | None = None, init_h: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Run the steps.

        Args:
            x: [steps, batch, inputs].
            weight_att: [steps, batch], the attention of each step.
            seq_length: int32 [batch], the steps of each example; all if None.
            init_h: [batch, units]; zeros if None.
        Returns:
            y, output_h, update, update_att, reset, new, hidden_new; each [steps, batch, units].
        """
        init_h = self._zeros(x) if init_h is None else init_h
        w_x, w_h, b_x, b_h = self._parts
        return gru.dynamic_augru(x, w_x, w_h, weight_att, b_x, b_h, seq_length, init_h, **self._settings)
