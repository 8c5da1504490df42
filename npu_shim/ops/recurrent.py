"""The loop and the checks that the recurrent operators share (:mod:`lstm`, :mod:`gru`)."""

from __future__ import annotations

from typing import Callable

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor


def run_over_steps(
    name: str, step: Callable[[tuple[Tensor, ...], Tensor], tuple[Tensor, ...]], x: Tensor, states: list[Tensor],
    gates: int, seq_length: Tensor | None, direction: str,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return y, the states and the gates of all steps.

    Args:
        step: a function of the states and x of a step that returns the new states and the gates.
        states: [1, batch, units] or [batch, units] each; the first one is h.
        gates: the number of gates.
    """
    if direction not in ("UNIDIRECTIONAL", "REDIRECTIONAL"):
        raise ValueError(
            f"{name}: direction={direction!r} is not allowed: it must be 'UNIDIRECTIONAL' or 'REDIRECTIONAL'."
        )
    first = tuple(without_first_axis(state) for state in states)
    kept = len(first)

    def masked(before: tuple[Tensor, ...], now: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        number, x_t = now
        after = step(before[:kept], x_t)
        if seq_length is None:
            return after
        lives = tf.cast(tf.expand_dims(number < tf.cast(seq_length, tf.int32), 1), x_t.dtype)
        return tuple(lives * new + (1 - lives) * old for new, old in zip(after[:kept], before)) + after[kept:]

    numbers = tf.range(tf.shape(x)[0])
    start = first + (tf.zeros_like(first[0]),) * gates
    results = tf.scan(masked, (numbers, x), start, reverse=direction == "REDIRECTIONAL")
    h = results[0]
    if seq_length is None:
        return (h, *results)
    lives = tf.transpose(tf.sequence_mask(seq_length, tf.shape(x)[0], h.dtype))
    return (h * tf.expand_dims(lives, -1), *results)


def without_first_axis(state: Tensor) -> Tensor:
    """Return a state as [batch, units]."""
    state = tf.convert_to_tensor(state)
    return state[0] if state.shape.rank == 3 else state


def raise_for_unsupported_arguments(
    name: str, cell_depth: int, keep_prob: float, cell_clip: float, num_proj: int, time_major: bool, activation: str
) -> None:
    """Raise ValueError for an argument that no recurrent operator supports."""
    check_only_values(name, cell_depth=(cell_depth, 1), keep_prob=(keep_prob, 1.0), cell_clip=(cell_clip, -1.0))
    check_only_values(name, num_proj=(num_proj, 0), time_major=(time_major, True), activation=(activation, "tanh"))


def check_only_values(name: str, **given: tuple[object, object]) -> None:
    """Raise ValueError unless each argument has its only supported value.

    Args:
        name: of the operator.
        **given: the value and the supported value of each argument.
    """
    for argument, (value, only) in given.items():
        if value != only:
            raise ValueError(f"{name}: {argument}={value!r} is not supported. Use {only!r}.")
