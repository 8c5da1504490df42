"""Check an operator against NumPy in float64: in a graph, a function, a loop and eager code, with its gradients."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np
import tensorflow as tf

random = np.random.RandomState(3)


class Case(NamedTuple):
    """An operator: ``call`` and ``reference`` get the inputs; ``trained`` are the inputs that have a gradient."""

    call: Callable[..., Any]
    inputs: tuple[Any, ...]
    reference: Callable[..., Any]
    trained: tuple[int, ...]
    is_eager: bool = True  # False: the vendor's wrapper raises an error in eager code


def made(*shape: int) -> Any:
    """Return an array whose elements keep a distance from 0, where some operators have no gradient."""
    values = random.uniform(0.1, 1.5, shape) * random.choice([-1, 1], shape)
    return values.astype(np.float32)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def flat(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def in_graph(build: Callable[[], Any]) -> Any:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(build())


def check_values(case: Case) -> None:
    """Compare a graph, a function, a loop and eager code with the reference."""

    def build() -> Any:
        inputs = [tf.constant(each) for each in case.inputs]
        plain = flat(case.call(*inputs))
        in_function = flat(tf.function(lambda *given: case.call(*given))(*inputs))

        def body(number: Any, *sums: Any) -> Any:
            return (number + 1, *[total + each for total, each in zip(sums, flat(case.call(*inputs)))])

        start = (tf.constant(0), *[tf.zeros_like(each) for each in plain])
        looped = tf.while_loop(lambda number, *_: number < 2, body, start)
        return plain, in_function, [0.5 * total for total in looped[1:]]

    wanted = flat(case.reference(*[each.astype(np.float64) for each in case.inputs]))
    forms = list(in_graph(build))
    if tf.executing_eagerly() and case.is_eager:
        forms.append([each.numpy() for each in flat(case.call(*[tf.constant(each) for each in case.inputs]))])
    for form in forms:
        assert len(form) == len(wanted)
        for found, true in zip(form, wanted):
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, true, rtol=2e-5, atol=2e-6)


def check_gradients(case: Case) -> None:
    """Compare the gradients with those of the reference, which are taken numerically."""
    exact = [each.astype(np.float64) for each in case.inputs]
    weights = [random.standard_normal(np.shape(each)) for each in flat(case.reference(*exact))]

    def loss(number: int, values: Any) -> float:
        given = [values if place == number else each for place, each in enumerate(exact)]
        return float(sum((weight * each).sum() for weight, each in zip(weights, flat(case.reference(*given)))))

    def build() -> Any:
        inputs = [tf.constant(each) for each in case.inputs]
        results = flat(case.call(*inputs))
        total = tf.add_n([tf.reduce_sum(each * weight.astype(np.float32)) for each, weight in zip(results, weights)])
        return tf.gradients(total, [inputs[number] for number in case.trained])

    for number, found in zip(case.trained, in_graph(build)):
        numeric = np.zeros_like(exact[number])
        for place in np.ndindex(numeric.shape):
            step = np.zeros_like(numeric)
            step[place] = 1e-5
            numeric[place] = (loss(number, exact[number] + step) - loss(number, exact[number] - step)) / 2e-5
        np.testing.assert_allclose(found, numeric, rtol=1e-3, atol=2e-5)
