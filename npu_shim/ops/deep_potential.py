"""The environment matrix of a Deep Potential, and forces and virials from it.

For a neighbor j of an atom i, with (x, y, z) = r_j - r_i and r its length:

    env[i, j] = s(r) (1 / r, x / r^2, y / r^2, z / r^2)
    s(r) = 1 for r < rcut_r_smth, 0 for r >= rcut_r, else 1 + u^3 (-6 u^2 + 15 u - 10),
           u = (r - rcut_r_smth) / (rcut_r - rcut_r_smth)

Sources: Zhang et al., "End-to-end Symmetry Preserving Inter-atomic Potential Energy Model", arXiv:1805.09003, and the
operators ProdEnvMatA, ProdForceSeA and ProdVirialSeA of DeePMD-kit.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor
from npu_shim.ops import atom_neighbors


def prod_env_mat_a_operator(
    coord: Tensor, type: Tensor, natoms: Tensor, box: Tensor, mesh: Tensor, davg: Tensor, dstd: Tensor,
    sel_a: Sequence[int], sel_r: Sequence[int], rcut_a: float = 0.0, rcut_r: float = 0.0, rcut_r_smth: float = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the environment matrix of atoms, its derivative, the vectors to neighbors, and their numbers.

    The neighbors of an atom are the atoms, and with periodic boundaries their images, within rcut_r: those of type 0
    first, then those of type 1 and so on; of one type the nearest first. There are n = sum(sel_a) places. The
    coordinates have a gradient, through the environment matrix and the vectors.

    Args:
        coord: [frames, 3 atoms], float16 or float32.
        type: int32 [frames, atoms]; an atom with a type below 0 has zeros, and is nobody's neighbor.
        natoms: int32 [2 + types]: the atoms that get a row, which are the first ones; all atoms; atoms of each type.
        box: [frames, 9], three lattice vectors.
        mesh: int32 [6] with periodic boundaries, [0] without; [16 + 2 rows + neighbors] for lists of neighbors from
            outside: 16 numbers without effect, the atoms, the number of neighbors of each, and all neighbors.
        davg, dstd: [types, 4 n], the mean of env and its standard deviation, by the type of i.
        sel_a: the most neighbors of each type; others are left out.
        sel_r: has no effect.
        rcut_a: has no effect.
        rcut_r, rcut_r_smth: lengths.
        name: name of the ops.
    Returns:
        (env - davg) / dstd, [frames, rows 4 n]; its derivative with respect to r_i, [frames, rows 12 n]; the vectors,
        [frames, rows 3 n], zeros at empty places; the neighbors, int32 [frames, rows n], -1 at empty places.
    Raises:
        ValueError: rcut_r is not above rcut_r_smth.
        InvalidArgumentError: when it runs, if the mesh has another length.
    """
    if rcut_r <= rcut_r_smth:
        raise ValueError(f"prod_env_mat_a: rcut_r={rcut_r!r} must be above rcut_r_smth={rcut_r_smth!r}.")
    with tf.name_scope(name or "prod_env_mat_a"):
        given, natoms = tf.convert_to_tensor(coord), tf.convert_to_tensor(natoms)
        types = tf.convert_to_tensor(type)
        frames, rows, places = tf.shape(given)[0], natoms[0], sum(sel_a)
        cells = tf.reshape(tf.cast(box, tf.float32), [-1, 3, 3])
        nlist, shifts = atom_neighbors.find_neighbors(given, types, natoms, cells, mesh, list(sel_a), rcut_r)
        here = tf.reshape(tf.cast(given, tf.float32), [frames, -1, 3])
        lives = tf.expand_dims(nlist >= 0, -1)
        there = tf.gather(here, tf.maximum(nlist, 0), batch_dims=1) + tf.einsum("fijk,fkd->fijd", shifts, cells)
        rij = _where(lives, there - tf.expand_dims(here[:, :rows], 2), tf.zeros_like(there))
        env, derivative = _environment_matrix(rij, lives, rcut_r_smth, rcut_r)
        own = types[:, :rows]
        mean, deviation = (
            tf.reshape(tf.gather(tf.cast(tensor, tf.float32), tf.maximum(own, 0)), [frames, rows, places, 4])
            for tensor in (davg, dstd)
        )
        counts = tf.cast(own >= 0, tf.float32)[:, :, None, None]
        results = (
            counts * (env - mean) / deviation,
            counts[..., None] * derivative / deviation[..., None],
            rij,
        )
        flat = [tf.cast(tf.reshape(tensor, [frames, -1]), given.dtype) for tensor in results]
        return flat[0], flat[1], flat[2], tf.reshape(nlist, [frames, -1])


def prod_force_se_a(
    net_deriv: Tensor, in_deriv: Tensor, nlist: Tensor, natoms: Tensor, n_a_sel: int = 0, n_r_sel: int = 0,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the forces on atoms, from the gradient of the energy with respect to the environment matrix.

    Each place adds net_deriv in_deriv to the force on its neighbor, and subtracts it from that on its own atom.

    Args:
        net_deriv: [frames, rows 4 n], the gradient of the energy; it has a gradient.
        in_deriv: [frames, rows 12 n], the derivative that prod_env_mat_a returns.
        nlist: int32 [frames, rows n], the neighbors that it returns.
        natoms: int32 [2 + types]: rows; all atoms; atoms of each type.
        n_a_sel, n_r_sel: have no effect; n is that of nlist.
        name: name of the ops.
    Returns:
        [frames, 3 atoms].
    """
    with tf.name_scope(name or "prod_force_se_a"):
        pull, nlist, rows, atoms = _pair_forces(net_deriv, in_deriv, nlist, natoms)
        pull = tf.reduce_sum(pull, 3)  # [frames, rows, n, 3]
        rest = tf.zeros([tf.shape(pull)[0], atoms - rows, 3], pull.dtype)
        own = tf.concat([tf.reduce_sum(pull, 2), rest], 1)
        return tf.reshape(_sum_by_neighbor(pull, nlist, atoms) - own, [tf.shape(pull)[0], -1])


def prod_virial_se_a(
    net_deriv: Tensor, in_deriv: Tensor, rij: Tensor, nlist: Tensor, natoms: Tensor, n_a_sel: int = 0, n_r_sel: int = 0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the virial of frames and of atoms: the sum of (net_deriv in_deriv) rij^T over places.

    Args:
        rij: [frames, rows 3 n], the vectors that prod_env_mat_a returns.
        others: as for prod_force_se_a.
    Returns:
        [frames, 9], and by neighbor [frames, 9 atoms].
    """
    with tf.name_scope(name or "prod_virial_se_a"):
        pull, nlist, rows, atoms = _pair_forces(net_deriv, in_deriv, nlist, natoms)
        vectors = tf.reshape(rij, [tf.shape(pull)[0], rows, -1, 3])
        virials = tf.einsum("fijd,fije->fijde", tf.reduce_sum(pull, 3), vectors)
        virials = tf.reshape(
            virials * tf.cast(nlist >= 0, pull.dtype)[..., None, None], tf.concat([tf.shape(nlist), [9]], 0)
        )
        of_atoms = _sum_by_neighbor(virials, nlist, atoms)
        return tf.reduce_sum(of_atoms, 1), tf.reshape(of_atoms, [tf.shape(pull)[0], -1])


def prod_env_mat_a(
    coord: Tensor, types: Tensor, natoms: Tensor, box: Tensor, mesh: Tensor, davg: Tensor, dstd: Tensor,
    rcut_a: float = 0.0, rcut_r: float = 0.0, rcut_r_smth: float = 0.0, sel_a: Sequence[int] | None = None,
    sel_r: Sequence[int] | None = None, name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the environment matrix of atoms. Arguments and results as for prod_env_mat_a_operator."""
    return prod_env_mat_a_operator(
        coord, types, natoms, box, mesh, davg, dstd, sel_a or [], sel_r or [], rcut_a, rcut_r, rcut_r_smth, name
    )


prodforcesea, prodvirialsea = prod_force_se_a, prod_virial_se_a
_where = tf.compat.v2.where


def _environment_matrix(rij: Tensor, lives: Tensor, begin: float, end: float) -> tuple[Tensor, Tensor]:
    """Return env, [..., n, 4], and its derivative with respect to r_i, [..., n, 4, 3]; zeros at empty places."""
    r2 = _where(lives, tf.reduce_sum(tf.square(rij), -1, keepdims=True), tf.ones_like(rij[..., :1]))
    r = tf.sqrt(r2)
    u = tf.clip_by_value((r - begin) / (end - begin), 0.0, 1.0)
    s = 1 + u**3 * (-6 * u**2 + 15 * u - 10)
    ds = -30 * u**2 * (u - 1) ** 2 / (end - begin)
    raw = tf.concat([1 / r, rij / r2], -1)
    row = tf.expand_dims(rij, -2)  # the direction of the derivative
    of_raw = tf.concat(
        [row / (r2 * r)[..., None], 2 * rij[..., None] * row / (r2**2)[..., None] - tf.eye(3) / r2[..., None]], -2
    )
    counts = tf.cast(lives, rij.dtype)
    derivative = of_raw * s[..., None] - raw[..., None] * (ds / r)[..., None] * row
    return raw * s * counts, derivative * counts[..., None]


def _pair_forces(net_deriv: Tensor, in_deriv: Tensor, nlist: Tensor, natoms: Tensor) -> tuple[Tensor, ...]:
    """Return net_deriv in_deriv, [frames, rows, n, 4, 3], the neighbors [frames, rows, n], rows and atoms."""
    natoms = tf.convert_to_tensor(natoms)
    rows, atoms = natoms[0], natoms[1]
    net, nlist = tf.convert_to_tensor(net_deriv), tf.convert_to_tensor(nlist)
    frames = tf.shape(net)[0]
    nlist = tf.reshape(nlist, [frames, rows, -1])
    shape = tf.concat([tf.shape(nlist), [4, 1]], 0)
    return tf.reshape(net, shape) * tf.reshape(in_deriv, tf.concat([shape[:-1], [3]], 0)), nlist, rows, atoms


def _sum_by_neighbor(values: Tensor, nlist: Tensor, atoms: Tensor) -> Tensor:
    """Add the values of places, [frames, rows, n, k], up by neighbor: [frames, atoms, k]."""
    frames, width = tf.shape(values)[0], values.shape.as_list()[-1]
    first = tf.range(frames)[:, None, None] * atoms
    place = tf.reshape(_where(nlist >= 0, nlist + first, -tf.ones_like(nlist)), [-1])  # a negative one is left out
    width = tf.shape(values)[-1] if width is None else width
    sums = tf.math.unsorted_segment_sum(tf.reshape(values, [-1, width]), place, frames * atoms)
    return tf.reshape(sums, [frames, atoms, width])
