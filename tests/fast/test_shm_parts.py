"""The parts of the shared memory backend that need no second process."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from npu_shim._host import host_env
from npu_shim.distributed import backend
from npu_shim.distributed.collectives import reductions
from npu_shim.distributed.collectives.buffer_list import BufferList
from npu_shim.distributed.collectives.buffer_pool import ALIGNMENT, BufferPool, empty_aligned
from npu_shim.distributed.shm import job_directory as jobs, rank_lock, rendezvous
from npu_shim.distributed.shm.liveness import Peers
from npu_shim.distributed.shm.segment import INCARNATION, Layout, Segment, _full_fence
from npu_shim.distributed.shm.slot_transport import split_chunk
from npu_shim.distributed.world import world


def from_bits(bits):
    return (np.asarray(bits, np.uint32) << np.uint32(16)).view(np.float32)


@settings(deadline=None, database=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(1 + 2.0**-8)  # ties, of which one is rounded down and one up
@example(1 + 3 * 2.0**-8)
def test_bfloat16_rounds_to_nearest_ties_to_even(value):
    """Compare with both neighbors in float64."""
    low = int(np.float32(value).view(np.uint32)) >> 16
    got = int(reductions._to_bfloat16(np.float32([value]))[0])
    assert got in (low, low + 1)
    below, above = (float(x) for x in from_bits([low, low + 1]))
    if math.isinf(above):  # beyond the largest finite value: the step to the next value continues
        above = below * 2 - float(from_bits([low - 1])[0])
    nearer = abs(float(np.float32(value)) - below) - abs(float(np.float32(value)) - above)
    assert got == (low if nearer < 0 or (nearer == 0 and low % 2 == 0) else low + 1)


def test_every_bfloat16_round_trips_through_float32():
    bits = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    back = reductions._to_bfloat16(reductions._from_bfloat16(bits))
    numbers = ~np.isnan(from_bits(bits))
    assert (back[numbers] == bits[numbers]).all()
    assert np.isnan(from_bits(back[~numbers])).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "int32"])
@pytest.mark.parametrize("reduction", reductions.REDUCTIONS)
def test_reduction_of_one_input_is_the_input(name, reduction):
    x = np.arange(5, dtype=np.uint16 if name == "bfloat16" else name)
    out = np.empty_like(x)
    reductions.combiner(reduction, name)([x], out)
    assert (out == x).all()


def test_infinities_and_nan_propagate_without_a_warning(recwarn):
    out = np.empty(4, np.float32)
    reductions.combiner("sum", "float32")(
        [np.float32([np.inf, np.inf, np.nan, 3e38]), np.float32([1, -np.inf, 1, 3e38])], out
    )
    assert str(out.tolist()) == "[inf, nan, nan, inf]"
    half = np.empty(1, np.float16)
    reductions.combiner("prod", "float16")([np.float16([60000]), np.float16([2])], half)
    assert half[0] == np.inf and not recwarn.list


@settings(max_examples=200, deadline=None, database=None)
@given(st.lists(st.integers(0, 9), max_size=8), st.data())
def test_buffer_list_behaves_like_the_concatenated_array(sizes, data):
    arrays = [np.arange(size) + 100 * i for i, size in enumerate(sizes)]
    joined = np.concatenate(arrays) if arrays else np.zeros(0, int)
    buffers = BufferList(arrays)
    assert buffers.count == len(joined)
    begin = data.draw(st.integers(0, len(joined)))
    end = data.draw(st.integers(begin, len(joined)))
    into = np.full(end - begin, -1)
    buffers.read(begin, end, into)
    assert (into == joined[begin:end]).all()
    view = buffers.view(begin, end)
    assert view is None or (view == joined[begin:end]).all()
    if len(arrays) == 1 and end > begin:
        assert view is not None
    buffers.write(begin, end, -into)
    joined[begin:end] *= -1
    assert not arrays or (np.concatenate(arrays) == joined).all()


@settings(deadline=None, database=None)
@given(st.integers(0, 10_000), st.integers(1, 9), st.sampled_from([1, 2, 4, 8]))
def test_parts_of_a_chunk_cover_it_and_start_at_cache_lines(count, size, itemsize):
    parts = split_chunk(count, size, itemsize)
    assert len(parts) == size and parts[0][0] == 0 and parts[-1][1] == count
    assert all(a[1] == b[0] for a, b in zip(parts, parts[1:]))
    assert all(low * itemsize % 64 == 0 or low == count for low, _ in parts)


@pytest.mark.parametrize("count", [1, 17])
def test_new_arrays_are_aligned(count):
    made = empty_aligned(count, np.dtype(np.int16))
    assert made.ctypes.data % ALIGNMENT == 0 and made.size == count


FLOATS = np.dtype(np.float32)


def address(arrays):
    return arrays[0].ctypes.data


def test_block_is_reused_when_no_array_refers_to_it():
    pool, wanted = BufferPool(), [(1 << 19, FLOATS), (3, np.dtype(np.int64)), (5, FLOATS)]
    first = pool.allocate(wanted)
    assert [(a.size, a.dtype, a.ctypes.data % ALIGNMENT) for a in first] == [(n, d, 0) for n, d in wanted]
    used, kept = address(first), first[1].reshape(1, 3)
    del first
    second = pool.allocate(wanted)
    assert not np.may_share_memory(second[0], kept) and not np.may_share_memory(second[1], kept)
    del kept
    third = pool.allocate(wanted)
    assert address(third) == used
    third[0][:], second[0][:] = 1, 2
    assert (third[0] == 1).all()


def test_slightly_larger_block_is_reused_and_much_larger_block_is_not():
    pool = BufferPool()
    used = address(pool.allocate([(1 << 20, FLOATS)]))
    assert address(pool.allocate([(900_000, FLOATS)])) == used
    small = pool.allocate([(1 << 18, FLOATS)])
    assert address(pool.allocate([(1 << 20, FLOATS)])) == used != address(small)


def test_pool_stays_below_its_limit():
    pool = BufferPool(max_bytes=3 << 20)
    for count in (1 << 18, 1 << 19, 3 << 18):
        pool.allocate([(count - 100, FLOATS)])
    assert sum(block.size for block in pool._blocks.values()) <= 3 << 20
    held = [pool.allocate([(3 << 17, FLOATS)]) for _ in range(4)]
    assert len({address(each) for each in held}) == 4 and len(pool._blocks) == 1


def test_long_text_is_truncated_between_characters():
    segment = Segment.create_private(Layout(1, 4096))
    segment.write_text(segment.text_offset(0), "ä" * 2000)
    assert segment.read_text(segment.text_offset(0)) == "ä" * 511
    assert segment.words[segment.first_word_of_page(0)] == 0


def test_fence_of_other_processors_returns():
    assert _full_fence() is None


def test_slots_fit_into_free_memory(tmp_path, monkeypatch):
    class Status:
        f_frsize, f_bavail = 4096, (8 << 20) // 4096

    monkeypatch.setattr(os, "statvfs", lambda path: Status)
    assert rendezvous.chunk_bytes_for(2, str(tmp_path)) == 512 << 10  # 2 halves of 2 ranks are a quarter of 8 MB
    Status.f_bavail = 1
    assert rendezvous.chunk_bytes_for(2, str(tmp_path)) == 64 << 10
    Status.f_bavail = 1 << 40
    assert rendezvous.chunk_bytes_for(2, str(tmp_path)) == 2 << 20
    assert rendezvous.chunk_bytes_for(64, str(tmp_path)) == 512 << 10


def test_each_job_has_its_own_directory(tmp_path):
    assert jobs.job_directory_path("a", str(tmp_path)) != jobs.job_directory_path("b", str(tmp_path))
    assert jobs.job_directory_path("a/b", str(tmp_path)).startswith(str(tmp_path) + "/npu_shim-")


def test_lock_file_is_created_held_and_removed(tmp_path):
    path = tmp_path / "job" / "rank_3"
    lock = rank_lock.RankLock(str(path))
    lock.publish("s-0123")
    assert path.read_bytes().endswith(b"s-0123\n")
    assert rank_lock.try_acquire_stale(str(path)) is None
    lock.release()
    lock.release()
    assert not path.exists() and rank_lock.find_other_holder(str(path)) is None


def test_a_process_keeps_its_lock_when_it_asks_for_the_holder(tmp_path):
    path = str(tmp_path / "rank_3")
    lock = rank_lock.RankLock(path)
    assert rank_lock.find_other_holder(path) is None
    ask = "import sys, npu_shim.distributed.shm.rank_lock as locks; print(locks.find_other_holder(sys.argv[1]).pid)"
    seen = subprocess.run([sys.executable, "-c", ask, path], stdout=subprocess.PIPE, check=True)
    lock.release()
    assert int(seen.stdout) == os.getpid()


def test_next_process_of_a_rank_is_not_taken_for_the_one_that_died(tmp_path, monkeypatch):
    segment = Segment.create_private(Layout(2, 4096))
    segment.words[segment.first_word_of_page(1) + INCARNATION] = 5
    peers = Peers(str(tmp_path), segment, [0, 1], 0)
    for incarnation, is_lost in ((5, False), (7, True)):
        monkeypatch.setattr(rank_lock, "find_other_holder", lambda path: rank_lock.Holder(incarnation, 1, None))
        assert bool(peers.find_lost()) == is_lost


def test_rank_does_not_join_a_segment_in_which_it_has_registered_before(tmp_path):
    world = Segment.create(jobs.segment_path(str(tmp_path), "0123"), Layout(2, 4096))
    world.allocate_memory()
    root = rank_lock.Holder(3, 1, "0123")
    assert rendezvous._find_ready_segment(str(tmp_path), root, 1, 2) is not None
    world.words[world.first_word_of_page(1) + INCARNATION] = 5
    assert rendezvous._find_ready_segment(str(tmp_path), root, 1, 2) is None


def test_clean_up_removes_only_files_of_dead_ranks(tmp_path):
    directory = tmp_path / "npu_shim-0-x"
    directory.mkdir()
    (directory / "rank_1").write_bytes(b"0123456789abcdef 1\n")
    (directory / "s-1").write_bytes(b"")
    jobs.clean_up_job_directory(str(directory))
    assert not directory.exists()
    lock = rank_lock.RankLock(str(directory / "rank_1"))
    (directory / "s-1").write_bytes(b"")
    jobs.clean_up_job_directory(str(directory))
    assert (directory / "rank_1").exists() and (directory / "s-1").exists()
    lock.release()


def test_processes_alone_have_jobs_of_their_own():
    """A job of one rank must not keep another one on this host from running."""
    opened = [backend._join_job(world({}), host_env.read_environment({})) for _ in range(2)]
    assert [each.size for each in opened] == [1, 1]
    for each in opened:
        each.close()
