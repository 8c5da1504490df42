"""All hooks of a recording."""

from __future__ import annotations

from typing import Sequence

import numpy as np
import tensorflow as tf

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_recording
from npu_shim.ops.cpu_kernels import forms
from npu_shim.rehearsal.recording import random_seeds
from npu_shim.rehearsal.recording.changes import Changes
from npu_shim.rehearsal.recording.deliberate import watch_deliberate_changes
from npu_shim.rehearsal.recording.estimators import watch_estimators
from npu_shim.rehearsal.recording.evaluation import watch_metrics
from npu_shim.rehearsal.recording.functions import watch_functions, without_xla
from npu_shim.rehearsal.recording.host_values import HostUpdates
from npu_shim.rehearsal.recording.initial import InitialVariables
from npu_shim.rehearsal.recording.keras_models import watch_keras_models
from npu_shim.rehearsal.recording.limit import Limit
from npu_shim.rehearsal.recording.optimizers import Recording, watch_optimizers
from npu_shim.rehearsal.recording.order_of_data import order_data
from npu_shim.rehearsal.recording.prints import watch_prints
from npu_shim.rehearsal.recording.queues import order_queues
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.restored import watch_restores
from npu_shim.rehearsal.recording.sessions import variables_of, watch_sessions
from npu_shim.rehearsal.recording.sharing import watch_checkpoints, watch_collectives
from npu_shim.rehearsal.recording.summaries import watch_summaries
from npu_shim.rehearsal.recording.tapes import watch_tapes
from npu_shim.rehearsal.recording.variables import EagerVariables


def install_all(
    recorder: Recorder,
    seed: int,
    by_call_site: bool,
    deliberate: Changes | None = None,
    records_initial: bool = False,
    given: Sequence[tuple[str, np.ndarray]] | None = None,
    apart: random_seeds.Apart | None = None,
) -> None:
    """Install all hooks in this process, in which TensorFlow is loaded.

    Args:
        recorder: receives the values.
        seed: of this run.
        by_call_site: True to derive the seeds of ops from their call sites.
        deliberate: the deliberate changes, or None.
        records_initial: True to record the variables before the first step, too.
        given: name and value of the variables to begin with; None to leave them to the script.
        apart: draws numbers of this rank where the script sets no seed; None to draw those of rank 0.
    """
    on_device = host_device.look().is_npu
    recorder.writer.event("note", tensorflow=tf.__version__, on_device=on_device)
    recorder.script_line = tf_recording.script_line
    watches = [watch_prints, watch_summaries, watch_keras_models, watch_estimators, watch_restores]
    if not on_device:
        _control(recorder, seed, by_call_site, apart)
        watches.insert(0, watch_metrics)
        watches += [watch_collectives, watch_checkpoints] if recorder.is_rank else []
    variables = None if on_device else EagerVariables(recorder)
    counting = HostUpdates(recorder) if variables is None else Recording(recorder, variables.record_untrained)
    limit = None if recorder.limit is None else Limit(recorder, counting)
    if limit is not None:
        limit.watch_sessions()
    if given is not None or (records_initial and not on_device):
        InitialVariables(recorder, given, not on_device).watch()
    watch_optimizers(counting)
    watch_sessions(recorder, counting.variables_of if isinstance(counting, HostUpdates) else variables_of)
    if variables is not None:
        watch_tapes(recorder, variables)
        watch_functions(recorder, variables)
    for watch in watches:
        watch(recorder)
    if limit is not None:
        limit.watch()
    if deliberate is not None:
        watch_deliberate_changes(recorder, deliberate)


def _control(recorder: Recorder, seed: int, by_call_site: bool, apart: random_seeds.Apart | None) -> None:
    """Make the run reproducible. Graphs change by seeds and by forms of ops."""
    forms.use()  # for a script that does not import npu_shim, too
    if by_call_site:
        random_seeds.seed_ops_by_call_site(seed, recorder.seed, apart)
    else:
        random_seeds.seed_graphs(seed)
    without_xla()
    tf_recording.run_iterations_in_turn()
    order_queues()
    order_data()
