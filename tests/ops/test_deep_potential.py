"""The operators of Deep Potentials against NumPy, with their gradients (see operator_case)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.estimator import npu_aicore_ops
from npu_shim.estimator.npu_aicore_ops import npu_aicore_ops as operators
from tests.ops.operator_case import Case, check_gradients, check_values, in_graph, random

pytestmark = [pytest.mark.twice, pytest.mark.slow]

TYPES = np.array([[0, 1, 0, -1], [1, 0, 0, 1]], np.int32)
NATOMS = np.array([3, 4, 2, 2], np.int32)  # the last atom has no row
SELECTED, CUTOFF, SMOOTH = [3, 2], 1.3, 0.6
PLACES = sum(SELECTED)
LATTICE = np.array([[1.8, 0, 0], [0.3, 1.6, 0], [0, 0.2, 2.0]])
BOX = np.tile(LATTICE.reshape(1, 9), [2, 1]).astype(np.float32)
SHIFTS = np.array(list(itertools.product(range(-3, 4), repeat=3)))
COORD = random.uniform(0, 2, [2, 12]).astype(np.float32)
MEAN, DEVIATION = random.standard_normal([2, 4 * PLACES]), random.uniform(0.5, 2, [2, 4 * PLACES])
PERIODIC, OPEN = np.zeros(6, np.int32), np.zeros(0, np.int32)
# lists of neighbors: for atom 1, 2 and 0
LISTS = np.array([0] * 16 + [1, 2, 0] + [2, 1, 3] + [0, 2, 1, 1, 2, 3], np.int32)


def near(points: Any, types: Any, atom: int, mesh: Any) -> list[tuple[int, Any]]:
    """Return the neighbors of an atom and the vectors to them, in the order of their places."""
    steps = SHIFTS if len(mesh) == 6 else np.zeros([1, 3])
    listed = np.array({1: (0, 2), 2: (1,), 0: (1, 2, 3)}[atom] if len(mesh) > 6 else range(len(points)))
    vectors = points[listed] + (steps @ LATTICE)[:, None] - points[atom]  # [steps, listed, 3]
    distances = np.linalg.norm(vectors, axis=-1)
    found = [
        (types[listed[other]], distances[step, other], listed[other], vectors[step, other])
        for step, other in zip(*np.nonzero((distances > 0) & (distances < CUTOFF)))
        if types[listed[other]] >= 0 and types[atom] >= 0
    ]
    places: list[tuple[int, Any]] = []
    for kind, most in enumerate(SELECTED):
        own = sorted((each for each in found if each[0] == kind), key=lambda each: each[1])[:most]
        places += [each[2:] for each in own] + [(-1, np.zeros(3))] * (most - len(own))
    return places


def smooth(r: float) -> float:
    u = min(max((r - SMOOTH) / (CUTOFF - SMOOTH), 0), 1)
    return 1 - 10 * u**3 + 15 * u**4 - 6 * u**5


def environment(vector: Any) -> Any:
    r = np.linalg.norm(vector)
    return smooth(r) * np.array([1 / r, *(vector / r**2)])


def env_mat(coord: Any, mesh: Any) -> list[Any]:
    """Return the float results of prod_env_mat_a, and its neighbors; the derivative is taken numerically."""
    env, derivative = np.zeros([2, 3, PLACES, 4]), np.zeros([2, 3, PLACES, 4, 3])
    rij, nlist = np.zeros([2, 3, PLACES, 3]), np.full([2, 3, PLACES], -1)
    for frame, atom in np.ndindex(2, 3):
        kind = TYPES[frame, atom]
        points = coord[frame].reshape(-1, 3)
        scale = DEVIATION[kind].reshape(PLACES, 4)
        for place, (other, vector) in enumerate(near(points, TYPES[frame], atom, mesh)):
            nlist[frame, atom, place] = other
            rij[frame, atom, place] = vector
            if other >= 0:
                env[frame, atom, place] = environment(vector)
                for axis, step in enumerate(np.eye(3) * 1e-5):
                    change = environment(vector - step) - environment(vector + step)
                    derivative[frame, atom, place, :, axis] = change / 2e-5
        if kind >= 0:
            env[frame, atom] = (env[frame, atom] - MEAN[kind].reshape(PLACES, 4)) / scale
            derivative[frame, atom] /= scale[..., None]
    return [each.reshape(2, -1) for each in (env, derivative, rij, nlist)]


def call(coord: Any, mesh: Any) -> Any:
    return npu_aicore_ops.prod_env_mat_a(
        coord, TYPES, NATOMS, BOX, mesh, MEAN.astype(np.float32), DEVIATION.astype(np.float32),
        rcut_r=CUTOFF, rcut_r_smth=SMOOTH, sel_a=SELECTED, sel_r=[0, 0],
    )  # fmt: skip


NET = random.standard_normal([2, 3 * PLACES * 4]).astype(np.float32)
_, DERIVATIVE, VECTORS, NEIGHBORS = (each.astype(np.float32) for each in env_mat(COORD.astype(np.float64), PERIODIC))
NEIGHBORS = NEIGHBORS.astype(np.int32)


def force(net: Any, derivative: Any) -> Any:
    y = np.zeros([2, 4, 3])
    pulls = (net.reshape(2, 3, PLACES, 4, 1) * derivative.reshape(2, 3, PLACES, 4, 3)).sum(3)
    for frame, atom, place in np.ndindex(2, 3, PLACES):
        y[frame, atom] -= pulls[frame, atom, place]
        other = NEIGHBORS.reshape(2, 3, PLACES)[frame, atom, place]
        if other >= 0:
            y[frame, other] += pulls[frame, atom, place]
    return y.reshape(2, -1)


def virial(net: Any, derivative: Any, vectors: Any) -> list[Any]:
    y = np.zeros([2, 4, 3, 3])
    pulls = (net.reshape(2, 3, PLACES, 4, 1) * derivative.reshape(2, 3, PLACES, 4, 3)).sum(3)
    for frame, atom, place in np.ndindex(2, 3, PLACES):
        other = NEIGHBORS.reshape(2, 3, PLACES)[frame, atom, place]
        if other >= 0:
            y[frame, other] += np.outer(pulls[frame, atom, place], vectors.reshape(2, 3, PLACES, 3)[frame, atom, place])
    return [y.sum(1).reshape(2, 9), y.reshape(2, -1)]


INFO = np.array([0.0, 1.0, 2.0, 0.25, 0.5, 0.0], np.float32)  # 4 fine intervals, 2 coarse ones
TABLE = random.standard_normal([6, 6 * 3]).astype(np.float32)
ARGUMENTS = np.array([[-0.4, 0.13, 0.6], [1.2, 1.7, 2.3]], np.float32)  # the first and the last are outside
MATRIX = random.standard_normal([2, 3, 4]).astype(np.float32)


def tabulated(x: Any, em: Any) -> Any:
    y = np.zeros([2, 4, 3])
    for i, j in np.ndindex(2, 3):
        inside = min(max(x[i, j], 0), 2)
        place = min(int(inside / 0.25) if inside < 1 else 4 + int((inside - 1) / 0.5), 5)
        start = place * 0.25 if place < 4 else 1 + (place - 4) * 0.5
        for k in range(3):
            g = np.polynomial.Polynomial(TABLE.astype(np.float64)[place].reshape(3, 6)[k])
            value = g(inside - start) + g.deriv()(inside - start) * (x[i, j] - inside)
            y[i, :, k] += em[i, j] * value
    return y


CASES = {
    "prod_env_mat_a": Case(
        lambda coord: list(call(coord, PERIODIC)[:3]), (COORD,), lambda coord: env_mat(coord, PERIODIC)[:3], (0,)
    ),
    "prodforcesea": Case(
        lambda net, derivative: npu_aicore_ops.prodforcesea(net, derivative, NEIGHBORS, NATOMS, PLACES),
        (NET, DERIVATIVE),
        force,
        (0, 1),
    ),
    "prodvirialsea": Case(
        lambda net, derivative, vectors: list(
            npu_aicore_ops.prodvirialsea(net, derivative, vectors, NEIGHBORS, NATOMS, PLACES)
        ),
        (NET, DERIVATIVE, VECTORS),
        virial,
        (0,),
    ),
    "tabulatefusionsea": Case(
        lambda x, em: npu_aicore_ops.tabulatefusionsea(TABLE, INFO, x, em, 3), (ARGUMENTS, MATRIX), tabulated, (0, 1)
    ),
}
cases = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))


@cases
def test_values_in_graphs_functions_loops_and_eager_code(case: Case) -> None:
    check_values(case)


@cases
def test_gradients_are_those_of_the_reference(case: Case) -> None:
    check_gradients(case)


@pytest.mark.parametrize("mesh", [PERIODIC, OPEN, LISTS], ids=["periodic", "open", "lists"])
def test_neighbors(mesh: Any) -> None:
    nlist, descrpt = in_graph(lambda: (call(COORD, mesh)[3], call(COORD, mesh)[0]))
    wanted = env_mat(COORD.astype(np.float64), mesh)
    assert nlist.dtype == np.int32 and nlist.tolist() == wanted[3].tolist()
    np.testing.assert_allclose(descrpt, wanted[0], rtol=1e-4, atol=1e-4)


def test_forces_are_the_gradient_of_an_energy() -> None:
    """The energy is a sum over the environment matrix, so the gradient of the coordinates is known in two ways."""

    def build() -> Any:
        coord = tf.constant(COORD)
        env, derivative, rij, nlist = call(coord, PERIODIC)
        energy = tf.reduce_sum(tf.constant(NET) * env)
        return npu_aicore_ops.prodforcesea(NET, derivative, nlist, NATOMS), -tf.gradients(energy, coord)[0]

    np.testing.assert_allclose(*in_graph(build), rtol=1e-4, atol=1e-4)


def test_gradient_operators_of_tables() -> None:
    dy = random.standard_normal([2, 4, 3]).astype(np.float32)

    def build() -> Any:
        x, em = tf.constant(ARGUMENTS), tf.constant(MATRIX)
        y = operators.tabulate_fusion_se_a(TABLE, INFO, x, em, 3)
        wanted = tf.gradients(y, [x, em], dy)
        older = npu_aicore_ops.tabulatefusion(TABLE, INFO, tf.reshape(x, [6, 1]), em, 3)
        return [
            [y, *wanted],
            [older, *tf.gradients(older, [x, em], dy)],
            [y, *npu_aicore_ops.tabulatefusionseagrad(TABLE, INFO, x, em, dy, y)],
            [y, *npu_aicore_ops.tabulatefusiongrad(TABLE, INFO, x, em, dy, y)],
        ]

    wanted, *forms = in_graph(build)
    for form in forms:
        for found, true in zip(form, wanted):
            np.testing.assert_allclose(found, true, rtol=1e-5, atol=1e-6)


def test_wrong_arguments() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="rcut_r=0.0 must be above rcut_r_smth=0.0"):
        npu_aicore_ops.prod_env_mat_a(COORD, TYPES, NATOMS, BOX, OPEN, MEAN, DEVIATION, sel_a=SELECTED)
    with pytest.raises(Exception, match="the mesh has 16 numbers. It must have 6 with periodic boundaries"):
        in_graph(lambda: call(COORD, np.zeros(16, np.int32))[3])
