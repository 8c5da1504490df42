"""The neighbors of atoms within a distance, with the images of periodic boundaries.

Each atom is compared with all others, so the time grows with the square of their number, the memory with the number.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from npu_shim._tensorflow.tf_api import numpy_function, tf
from npu_shim._tensorflow.types import Tensor

_HEAD = 16  # numbers before the lists of a mesh


def find_neighbors(
    coord: Tensor, types: Tensor, natoms: Tensor, cells: Tensor, mesh: Tensor, most: Sequence[int], cutoff: float
) -> tuple[Tensor, Tensor]:
    """Return the neighbors of atoms, and the lattice vectors to their images.

    Args:
        coord: [frames, 3 atoms].
        types: int32 [frames, atoms].
        natoms: int32 [2 + types]: the atoms that get a row; all atoms; atoms of each type.
        cells: [frames, 3, 3], lattice vectors in rows.
        mesh: as for deep_potential.prod_env_mat_a_operator.
        most: the most neighbors of each type; n is their sum.
        cutoff: the distance.
    Returns:
        int32 [frames, rows, n], -1 at empty places; float32 [frames, rows, n, 3], the number of lattice vectors to add
        to the neighbor's place.
    Raises:
        InvalidArgumentError: when it runs, if the mesh has another length.
    """

    def find(
        places: np.ndarray, kinds: np.ndarray, counts: np.ndarray, lattice: np.ndarray, lists: np.ndarray
    ) -> list[np.ndarray]:
        points = places.reshape(len(places), -1, 3).astype(np.float64)
        listed = _neighbor_lists(lists, int(counts[0]))
        atoms = np.full([len(points), counts[0], sum(most)], -1, np.int32)
        shifts = np.zeros([*atoms.shape, 3], np.float32)
        for frame, own in enumerate(points):
            wraps, images = _cell_offsets_and_images_in_reach(
                own, lattice[frame].astype(np.float64), cutoff if len(lists) == 6 else None
            )
            for row in range(counts[0]):
                candidates = np.arange(len(own)) if listed is None else listed[row]
                _nearest_neighbors(
                    row, own, kinds[frame], lattice[frame], wraps, images, candidates, most, cutoff,
                    atoms[frame, row], shifts[frame, row],
                )  # fmt: skip
        return [atoms, shifts]

    nlist, shifts = numpy_function(find, [coord, types, natoms, cells, mesh], [tf.int32, tf.float32])
    nlist.set_shape([coord.shape[0], None, sum(most)])
    shifts.set_shape([coord.shape[0], None, sum(most), 3])
    return nlist, shifts


def _neighbor_lists(mesh: np.ndarray, rows: int) -> list[np.ndarray] | None:
    """Return the neighbors of each atom in a mesh; None if it has none."""
    if len(mesh) in (0, 6):
        return None
    if len(mesh) < _HEAD + 2 * rows or len(mesh) == _HEAD:
        raise ValueError(
            f"prod_env_mat_a: the mesh has {len(mesh)} numbers. It must have 6 with periodic boundaries, 0 without, or "
            f"{_HEAD} and lists of neighbors. A mesh of addresses in LAMMPS is not supported."
        )
    atoms, counts = mesh[_HEAD : _HEAD + rows], mesh[_HEAD + rows : _HEAD + 2 * rows]
    parts = np.split(mesh[_HEAD + 2 * rows :], np.cumsum(counts))[:rows]
    return [part for _, part in sorted(zip(atoms.tolist(), parts), key=lambda pair: pair[0])]


def _cell_offsets_and_images_in_reach(
    points: np.ndarray, lattice: np.ndarray, cutoff: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lattice vectors to subtract so that points are in the cell, and those of all images in reach."""
    if cutoff is None:
        return np.zeros_like(points), np.zeros([1, 3])
    inverse = np.linalg.inv(lattice)
    reach = np.floor(cutoff * np.linalg.norm(inverse, axis=0)).astype(int) + 1
    axes = [np.arange(-steps, steps + 1) for steps in reach]
    return np.floor(points @ inverse), np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3).astype(np.float64)


def _nearest_neighbors(
    row: int, points: np.ndarray, kinds: np.ndarray, lattice: np.ndarray, wraps: np.ndarray, images: np.ndarray,
    candidates: np.ndarray, most: Sequence[int], cutoff: float, nlist: np.ndarray, shifts: np.ndarray,
) -> None:  # fmt: skip
    """Write the nearest neighbors of one atom, and the lattice vectors to them."""
    if kinds[row] < 0:
        return
    steps = images[:, None] - wraps[candidates] + wraps[row]  # [images, candidates, 3]
    distances = np.linalg.norm(points[candidates] + steps @ lattice - points[row], axis=-1)
    near = (distances < cutoff) & (kinds[candidates] >= 0) & ~((candidates == row) & (steps == 0).all(-1))
    image, number = np.nonzero(near)
    atoms = candidates[number]
    order = np.lexsort([image, atoms, distances[image, number], kinds[atoms]])
    ends = np.cumsum([0, *most])
    for kind in range(len(most)):
        chosen = [place for place in order if kinds[atoms[place]] == kind][: most[kind]]
        here = slice(ends[kind], ends[kind] + len(chosen))
        nlist[here] = atoms[chosen]
        shifts[here] = steps[image[chosen], number[chosen]]
