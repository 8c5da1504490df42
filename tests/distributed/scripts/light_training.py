"""Trains a small model with NumPy on ranks of one host, without TensorFlow; goes on from its checkpoint.

    python light_training.py FOLDER STEPS [LATE_RANK LATE_SECONDS]

Rank 0 saves every fifth step. Each rank writes end_RANK.npy at the end.
"""
import os
import sys
import time

import numpy as np

from npu_shim._host import host_env
from npu_shim.distributed import shm

FOLDER, STEPS = sys.argv[1], int(sys.argv[2])
ENV = host_env.read_environment()
RANK, SIZE = ENV.rank_id, ENV.rank_size
CHECKPOINT = os.path.join(FOLDER, 'checkpoint.npz')


def save(step, weights, speed):
    with open(CHECKPOINT + '.part', 'wb') as stream:
        np.savez(stream, step=step, weights=weights, speed=speed)
    os.replace(CHECKPOINT + '.part', CHECKPOINT)


def restored():
    """Step, weights and momentum as the last checkpoint has them."""
    if not os.path.exists(CHECKPOINT):
        return [np.int64(0), np.random.RandomState(1).normal(size=2000), np.zeros(2000)]
    with np.load(CHECKPOINT) as found:
        return [found[name] for name in ('step', 'weights', 'speed')]


def gradient(step, weights):
    """Return the gradient of this rank's share of the step's 24 rows."""
    rows = np.random.RandomState(step).normal(size=(24, len(weights)))[RANK::SIZE] / 50
    return rows.T @ (rows @ weights - 1.0) / len(rows)


if len(sys.argv) > 3 and int(sys.argv[3]) == RANK:
    time.sleep(float(sys.argv[4]))
backend = shm.join_job(RANK, SIZE, ENV.job_id, connect_timeout_s=ENV.connect_timeout_s, stall_timeout_s=ENV.collective_timeout_s)
given = restored() if RANK == 0 else [np.int64(0), np.zeros(2000), np.zeros(2000)]
begin, weights, speed = backend.world.broadcast(given, root=0, key='state')
weights, speed = weights.copy(), speed.copy()
for step in range(int(begin), STEPS):
    speed = 0.9 * speed + backend.world.allreduce(gradient(step, weights), 'sum', key='gradient') / SIZE
    weights -= 0.1 * speed
    if RANK == 0 and (step + 1) % 5 == 0:
        save(step + 1, weights, speed)
    time.sleep(0.002)  # so that there is time for something to go wrong
np.save(os.path.join(FOLDER, 'end_%d.npy' % RANK), weights)
time.sleep(float(os.environ.get('LINGER_SECONDS', '0')))  # where only being ended shall end it
