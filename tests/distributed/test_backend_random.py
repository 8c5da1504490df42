"""Random programs of collectives on several threads, in a different order on each rank."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

pytestmark = pytest.mark.once

RUN = """
    import concurrent.futures, random
    def one(step):
        kind, key, count, root = step
        x = np.arange(count, dtype=np.int64) * (rank + 1) + root
        if kind == "allreduce":
            return world.allreduce([x, x[:1]], key=key)
        if kind == "allgather":
            return [world.allgather(x, key=key)]
        if kind == "broadcast":
            return [world.broadcast(x, root=root % size, key=key)]
        if kind == "reduce":
            return [world.reduce(x, "max", root=root % size, key=key)]
        if kind == "reduce_scatter":
            return [world.reduce_scatter(np.tile(x, size), key=key)]
        if kind == "pair" and size > 1:
            first, second = root % size, (root + 1) % size
            if rank == first:
                return world.send(x, dest=second, tag=root) or []
            return [world.receive(x.shape, x.dtype, source=first, tag=root)] if rank == second else []
        if kind == "parity":
            return [backend.group("parity", range(rank % 2, size, 2)).allreduce(x, key=key)]
        return world.barrier(key=key) or []
    chance = random.Random(seed * 100 + rank)
    result = []
    for steps in rounds:  # the steps of a round run in any order, on as many threads
        order = list(range(len(steps)))
        chance.shuffle(order)
        with concurrent.futures.ThreadPoolExecutor(len(steps)) as pool:
            done = dict(zip(order, pool.map(lambda i: one(steps[i]), order)))
        result.append([done[i] for i in range(len(steps))])
    """
KINDS = ["allreduce", "allgather", "broadcast", "reduce", "reduce_scatter", "pair", "parity", "barrier"]
steps = st.tuples(st.sampled_from(KINDS), st.integers(0, 1500), st.integers(0, 7))


def expected(step, rank, size):
    """Return the results of a step on a rank."""
    kind, _, count, root = step
    inputs = [np.arange(count, dtype=np.int64) * (r + 1) + root for r in range(size)]
    total = functools.reduce(np.add, inputs)
    return {
        "allreduce": lambda: [total, total[:1]],
        "allgather": lambda: [np.concatenate(inputs)],
        "broadcast": lambda: [inputs[root % size]],
        "reduce": lambda: [functools.reduce(np.maximum, inputs) if rank == root % size else inputs[rank]],
        "reduce_scatter": lambda: [total],
        "pair": lambda: [inputs[root % size]] if rank == (root + 1) % size else [],
        "parity": lambda: [functools.reduce(np.add, inputs[rank % 2 :: 2])],
        "barrier": lambda: [],
    }[kind]()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=st.lists(st.lists(steps, min_size=1, max_size=8), min_size=1, max_size=4), seed=st.integers(0, 1000))
def test_random_program_returns_the_results_of_numpy(ranks, program, seed):
    # the keys of one round must differ
    rounds = [
        [(kind, f"{kind} {place}", count, 8 * place + root) for place, (kind, count, root) in enumerate(one)]
        for one in program
    ]
    got = ranks.run(RUN, rounds=rounds, seed=seed)
    for rank in range(ranks.size):
        for steps_, answers in zip(rounds, got[rank]):
            for step, answer in zip(steps_, answers):
                wanted = expected(step, rank, ranks.size)
                assert len(answer) == len(wanted), step
                for a, w in zip(answer, wanted):
                    np.testing.assert_array_equal(a, w, str(step))
