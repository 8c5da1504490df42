"""Contents of embedding tables in files: FOLDER/TABLE-STEP.npz, in NumPy's format.

They are not the files of the NPU, whose format is not published.
"""

from __future__ import annotations

import os
from typing import Sequence

import numpy as np

from npu_shim._tensorflow.tf_api import numpy_function, tf
from npu_shim._tensorflow.types import Operation, Tensor
from npu_shim.ops.embedding_tables import op_or_none_if_eager

_PARTS = ("keys", "counters", "filter_flags", "values")


def embedding_hashmap_export(
    file_path: Tensor, table_ids: Tensor, table_names: Tensor, global_step: Tensor, keys: Sequence[Tensor],
    counters: Sequence[Tensor], filter_flags: Sequence[Tensor], values: Sequence[Tensor], name: str | None = None,
) -> Operation | None:  # fmt: skip
    """Write contents that embedding_hash_table_export returned to files, one for each table.

    A file appears under its name when it is complete.

    Args:
        file_path: scalar string, the folder; it is made if it is not there.
        table_ids: int32 [tables]; it has no effect.
        table_names: string [tables].
        global_step: int32 or int64 scalar.
        keys, counters, filter_flags, values: for each table int64 [n], uint64 [n], uint8 [n] and float32 [n size].
        name: name of the ops.
    Returns:
        The op; None in eager code.
    """

    def write(folder: bytes, names: np.ndarray, step: np.ndarray, *parts: np.ndarray) -> None:
        for number, table in enumerate(names.ravel()):
            path = _table_file_path(folder, table, step)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + ".part", "wb") as stream:
                np.savez(stream, **dict(zip(_PARTS, parts[number :: len(names)])))
            os.replace(path + ".part", path)

    with tf.name_scope(name or "embedding_hashmap_export"):
        contents = [*keys, *counters, *filter_flags, *values]
        return op_or_none_if_eager(numpy_function(write, [file_path, table_names, global_step, *contents], []))


def embedding_hashmap_export_v2(
    file_path: Tensor, table_ids: Tensor, table_names: Tensor, global_step: Tensor, keys: Sequence[Tensor],
    counters: Sequence[Tensor], filter_flag: Sequence[Tensor], values: Sequence[Tensor], num: int,
) -> Operation | None:  # fmt: skip
    """Write contents of tables to files. Arguments and result as for embedding_hashmap_export.

    Args:
        num: the number of tables.
    Raises:
        ValueError: num is another number.
    """
    _check_number_of_tables("embedding_hashmap_export_v2", num, keys)
    return embedding_hashmap_export(file_path, table_ids, table_names, global_step, keys, counters, filter_flag, values)


def embedding_hashmap_file_size(
    file_path: Tensor,
    table_ids: Tensor,
    table_names: Tensor,
    global_step: Tensor,
    embedding_dims: Sequence[int],
    name: str | None = None,
) -> Tensor:
    """Return the number of keys in the files of tables, int64 [tables]. Arguments as for embedding_hashmap_export.

    Args:
        embedding_dims: has no effect.
    Raises:
        InvalidArgumentError: when it runs, if a file is not there.
    """

    def count(folder: bytes, names: np.ndarray, step: np.ndarray) -> np.ndarray:
        return np.array([len(_read_table_file(folder, table, step)["keys"]) for table in names.ravel()], np.int64)

    with tf.name_scope(name or "embedding_hashmap_file_size"):
        sizes = numpy_function(count, [file_path, table_names, global_step], tf.int64)
        sizes.set_shape([None])
        return sizes


def embedding_hashmap_import(
    file_path: Tensor, table_ids: Tensor, table_sizes: Tensor, table_names: Tensor, global_step: Tensor,
    embedding_dims: Sequence[int], num: int, name: str | None = None,
) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:  # fmt: skip
    """Read contents of tables from files, for embedding_hash_table_import. Arguments as for embedding_hashmap_export.

    Args:
        table_sizes: int64 [tables]; it has no effect.
        embedding_dims: the numbers of a row, for each table.
        num: the number of tables.
    Returns:
        keys, counters, filter_flags and values, a list each.
    Raises:
        ValueError: embedding_dims has another length than num.
        InvalidArgumentError: when it runs, if a file is not there, or its rows have another size.
    """
    _check_number_of_tables("embedding_hashmap_import", num, embedding_dims)
    types = [tf.int64, tf.uint64, tf.uint8, tf.float32]

    def load(number: int) -> list[Tensor]:
        def read(folder: bytes, names: np.ndarray, step: np.ndarray) -> list[np.ndarray]:
            arrays = _read_table_file(folder, names.ravel()[number], step)
            size = embedding_dims[number]
            if len(arrays["values"]) != len(arrays["keys"]) * size:
                raise ValueError(
                    f"{_table_file_path(folder, names.ravel()[number], step)} has {len(arrays['keys'])} keys and "
                    f"{len(arrays['values'])} values, not {size} for each key. Pass its embedding_dims."
                )
            return [arrays[part] for part in _PARTS]

        parts = numpy_function(read, [file_path, table_names, global_step], types)
        for part in parts:
            part.set_shape([None])
        return parts

    with tf.name_scope(name or "embedding_hashmap_import"):
        tables = [load(number) for number in range(num)]
        keys, counters, filter_flags, values = ([table[part] for table in tables] for part in range(4))
        return keys, counters, filter_flags, values


embedding_hashmap_file_size_v2, embedding_hashmap_import_v2 = embedding_hashmap_file_size, embedding_hashmap_import


def _check_number_of_tables(operator: str, num: int, tables: Sequence[object]) -> None:
    if num != len(tables):
        raise ValueError(f"{operator}: num={num!r}, but there are {len(tables)} tables. Pass {len(tables)}.")


def _table_file_path(folder: bytes, table: bytes, step: np.ndarray) -> str:
    return os.path.join(folder.decode(), f"{table.decode()}-{int(step)}.npz")


def _read_table_file(folder: bytes, table: bytes, step: np.ndarray) -> dict[str, np.ndarray]:
    path = _table_file_path(folder, table, step)
    if not os.path.exists(path):
        raise ValueError(f"there is no file {path}. Write it with embedding_hashmap_export_v2 first.")
    with np.load(path, allow_pickle=False) as file:
        return dict(file)
