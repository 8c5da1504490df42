"""The functions and methods of TensorFlow that make a session, with their arguments."""

from __future__ import annotations

from .module_index import AnyType
from .signatures import SESSION
from .tf_types import Type

_CREATOR = ("scaffold", "master", "config", "checkpoint_dir", "checkpoint_filename_with_path")
_EVALUATE = ("initial_op", "initial_op_feed_dict")
_EVALUATED = (
    "eval_op",
    "eval_op_feed_dict",
    "final_op",
    "final_op_feed_dict",
    "summary_op",
    "summary_op_feed_dict",
    "variables_to_restore",
)
_MONITORED = (
    "master",
    "is_chief",
    "scaffold",
    "hooks",
    "chief_only_hooks",
    "save_checkpoint_secs",
    "save_summaries_steps",
    "config",
)
_GAN = ("train_ops", "logdir", "get_hooks_fn", *_MONITORED)
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "tensorflow.Session": SESSION,
    "tensorflow.InteractiveSession": SESSION,
    "tensorflow.train.ChiefSessionCreator": _CREATOR,
    "tensorflow.train.WorkerSessionCreator": _CREATOR[:3] + ("max_wait_secs",),
    "tensorflow.train.SingularMonitoredSession": (
        "hooks",
        "scaffold",
        "master",
        "config",
        "checkpoint_dir",
        "stop_grace_period_secs",
        "checkpoint_filename_with_path",
    ),
    "tensorflow.train.MonitoredTrainingSession": (
        "master",
        "is_chief",
        "checkpoint_dir",
        "scaffold",
        "hooks",
        "chief_only_hooks",
        "save_checkpoint_secs",
        "save_summaries_steps",
        "save_summaries_secs",
        "config",
        "stop_grace_period_secs",
        "log_step_count_steps",
        "max_wait_secs",
        "save_checkpoint_steps",
        "summary_dir",
        "save_graph_def",
    ),
    "tensorflow.contrib.training.train": (
        "train_op",
        "logdir",
        *_MONITORED,
        "max_wait_secs",
        "run_metadata",
    ),
    "tensorflow.contrib.slim.learning.train": (
        "train_op",
        "logdir",
        "train_step_fn",
        "train_step_kwargs",
        "log_every_n_steps",
        "graph",
        "master",
        "is_chief",
        "global_step",
        "number_of_steps",
        "init_op",
        "init_feed_dict",
        "local_init_op",
        "init_fn",
        "ready_op",
        "summary_op",
        "save_summaries_secs",
        "summary_writer",
        "startup_delay_steps",
        "saver",
        "save_interval_secs",
        "sync_optimizer",
        "session_config",
        "session_wrapper",
        "trace_every_n_steps",
        "ignore_live_threads",
    ),
    "tensorflow.contrib.slim.evaluation.evaluate_once": (
        ("master", "checkpoint_path", "logdir", "num_evals") + _EVALUATE + _EVALUATED + ("session_config", "hooks")
    ),
    "tensorflow.contrib.slim.evaluation.evaluation_loop": (
        ("master", "checkpoint_dir", "logdir", "num_evals")
        + _EVALUATE
        + ("init_fn",)
        + _EVALUATED
        + ("eval_interval_secs", "max_number_of_evaluations", "session_config", "timeout", "timeout_fn", "hooks")
    ),
    "tensorflow.contrib.training.evaluate_once": (
        "checkpoint_path",
        "master",
        "scaffold",
        "eval_ops",
        "feed_dict",
        "final_ops",
        "final_ops_feed_dict",
        "hooks",
        "config",
    ),
    "tensorflow.contrib.training.evaluate_repeatedly": (
        "checkpoint_dir",
        "master",
        "scaffold",
        "eval_ops",
        "feed_dict",
        "final_ops",
        "final_ops_feed_dict",
        "eval_interval_secs",
        "hooks",
        "config",
        "max_number_of_evaluations",
        "timeout",
        "timeout_fn",
    ),
    "tensorflow.contrib.predictor.from_contrib_estimator": (
        "estimator",
        "prediction_input_fn",
        "input_alternative_key",
        "output_alternative_key",
        "graph",
        "config",
    ),
    "tensorflow.contrib.predictor.from_estimator": (
        "estimator",
        "serving_input_receiver_fn",
        "output_key",
        "graph",
        "config",
    ),
    "tensorflow.contrib.predictor.from_saved_model": (
        "export_dir",
        "signature_def_key",
        "signature_def",
        "input_names",
        "output_names",
        "tags",
        "graph",
        "config",
    ),
    "tensorflow.contrib.gan.gan_train": _GAN,
    "tensorflow_gan.gan_train": _GAN,
}
_MANAGER = (
    "saver",
    "checkpoint_dir",
    "checkpoint_filename_with_path",
    "wait_for_checkpoint",
    "max_wait_secs",
    "config",
)
_PREPARE = ("master", "config", "wait_for_checkpoint", "max_wait_secs", "start_standard_services")
METHODS_OF: dict[AnyType | None, dict[str, tuple[str, ...]]] = {
    Type.SUPERVISOR: {
        "managed_session": ("master", "config", "start_standard_services", "close_summary_writer"),
        "prepare_or_wait_for_session": _PREPARE,
        "PrepareSession": _PREPARE,
    },
    Type.SESSION_MANAGER: {
        "prepare_session": ("master", "init_op") + _MANAGER + ("init_feed_dict", "init_fn"),
        "recover_session": ("master",) + _MANAGER,
        "wait_for_session": ("master", "config", "max_wait_secs"),
    },
}
