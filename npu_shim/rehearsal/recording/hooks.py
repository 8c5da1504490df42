"""All hooks of a recording."""

from __future__ import annotations

from typing import Sequence

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_recording
from npu_shim.cpu_kernels import forms
from npu_shim.rehearsal.recording import random_seeds
from npu_shim.rehearsal.recording.estimators import watch_estimators
from npu_shim.rehearsal.recording.evaluation import watch_metrics
from npu_shim.rehearsal.recording.functions import without_xla
from npu_shim.rehearsal.recording.initial import InitialVariables
from npu_shim.rehearsal.recording.keras_models import watch_keras_models
from npu_shim.rehearsal.recording.limit import Limit
from npu_shim.rehearsal.recording.optimizers import Recording, watch_optimizers
from npu_shim.rehearsal.recording.order_of_data import order_data
from npu_shim.rehearsal.recording.prints import watch_prints
from npu_shim.rehearsal.recording.queues import order_queues
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.sessions import watch_sessions
from npu_shim.rehearsal.recording.summaries import watch_summaries
from npu_shim.rehearsal.recording.tapes import watch_tapes


def install_all(
    recorder: Recorder,
    seed: int,
    by_call_site: bool,
    records_initial: bool,
    given: Sequence[tuple[str, np.ndarray]] | None,
) -> None:
    """Install all hooks in this process, in which TensorFlow is loaded.

    Args:
        recorder: receives the values.
        seed: of this run.
        by_call_site: True to derive the seeds of ops from their call sites.
        records_initial: True to record the variables before the first step, too.
        given: name and value of the variables to begin with; None to leave them to the script.
    """
    recorder.writer.event("note", tensorflow=tf.__version__)
    forms.use()  # for a script that does not import npu_shim, too
    if by_call_site:
        random_seeds.seed_ops_by_call_site(seed, recorder.seed)
    else:
        random_seeds.seed_graphs(seed)
    recorder.script_line = tf_recording.script_line
    without_xla()
    tf_recording.run_iterations_in_turn()
    order_queues()
    order_data()
    recording = Recording(recorder)
    limit = None if recorder.limit is None else Limit(recorder, recording)
    if limit is not None:
        limit.watch_sessions()
    if records_initial:
        InitialVariables(recorder, given).watch()
    watch_optimizers(recording)
    for watch in (
        watch_tapes,
        watch_metrics,
        watch_prints,
        watch_sessions,
        watch_summaries,
        watch_keras_models,
        watch_estimators,
    ):
        watch(recorder)
    if limit is not None:
        limit.watch()
