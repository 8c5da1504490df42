"""All hooks of a recording."""

from __future__ import annotations

import tensorflow as tf

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_recording
from npu_shim.ops.cpu_kernels import forms
from npu_shim.rehearsal.recording import random_seeds
from npu_shim.rehearsal.recording.deliberate_hooks import watch_deliberate_changes
from npu_shim.rehearsal.recording.estimators import watch_estimators
from npu_shim.rehearsal.recording.evaluation import watch_metrics
from npu_shim.rehearsal.recording.functions import disable_xla, watch_functions
from npu_shim.rehearsal.recording.host_values import HostUpdates
from npu_shim.rehearsal.recording.initial import InitialVariables
from npu_shim.rehearsal.recording.keras_models import watch_keras_models
from npu_shim.rehearsal.recording.limit import Limit
from npu_shim.rehearsal.recording.optimizers import UpdateRecording
from npu_shim.rehearsal.recording.order_of_data import make_data_deterministic
from npu_shim.rehearsal.recording.prints import watch_prints
from npu_shim.rehearsal.recording.queues import order_queues
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.restored import watch_restores
from npu_shim.rehearsal.recording.saved_graphs import watch_saved_graphs
from npu_shim.rehearsal.recording.sessions import variables_of, watch_sessions
from npu_shim.rehearsal.recording.settings import HookSettings
from npu_shim.rehearsal.recording.sharing import watch_checkpoints, watch_collectives
from npu_shim.rehearsal.recording.summaries import watch_summaries
from npu_shim.rehearsal.recording.tapes import mark_tapes, watch_tapes
from npu_shim.rehearsal.recording.variables import EagerVariables


def install_recording_hooks(recorder: Recorder, settings: HookSettings) -> None:
    """Install all hooks in this process, in which TensorFlow is loaded. The recorder receives the values."""
    on_device = host_device.detect_without_import().is_npu
    recorder.writer.write_event("note", tensorflow=tf.__version__, on_device=on_device)
    recorder.script_line = tf_recording.script_line_text
    watches = [watch_prints, watch_summaries, watch_keras_models, watch_estimators, watch_restores]
    if not on_device:
        _make_reproducible(recorder, settings)
        watches.insert(0, watch_metrics)
        watches += [watch_collectives, watch_checkpoints] if recorder.is_rank else []
    variables = None if on_device else EagerVariables(recorder)
    counting = HostUpdates(recorder) if variables is None else UpdateRecording(recorder, variables.record_untrained)
    limit = None if recorder.limit is None else Limit(recorder, counting)
    if limit is not None:
        limit.watch_sessions()
    if settings.given is not None or (settings.records_initial and not on_device):
        InitialVariables(recorder, settings.given, not on_device).watch()
    counting.install()
    watch_sessions(
        recorder, counting.variables_of if isinstance(counting, HostUpdates) else variables_of, settings.ordered
    )
    watch_saved_graphs()
    mark_tapes(recorder)
    if variables is not None:
        watch_tapes(recorder, variables)
        watch_functions(recorder, variables)
    for watch in watches:
        watch(recorder)
    if limit is not None:
        limit.watch()
    if settings.deliberate is not None:
        watch_deliberate_changes(recorder, settings.deliberate)


def _make_reproducible(recorder: Recorder, settings: HookSettings) -> None:
    """Make the run reproducible. Graphs change by seeds and by forms of ops."""
    forms.use_cpu_forms()  # for a script that does not import npu_shim, too
    if settings.by_call_site:
        random_seeds.seed_ops_by_call_site(
            settings.seed, recorder.record_seed, settings.apart, recorder.updates_in_tape
        )
    else:
        random_seeds.shift_graph_seeds(settings.seed)
    disable_xla()
    tf_recording.serialize_loop_iterations()
    order_queues()
    make_data_deterministic()
