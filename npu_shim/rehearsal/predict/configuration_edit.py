"""The edit of a script that sets what a prediction proposes, in the way in which the script is configured."""

from __future__ import annotations

from typing import Sequence

from npu_shim.rehearsal.predict.prediction import Proposal

ESTIMATOR, SESSION, KERAS, FUNCTION = "Estimator", "session", "Keras", "tf.function"
BATCH, LOOP, SPLIT, PRECISION = "batch size", "iterations_per_loop", "set_split_strategy_by_size", "precision_mode"
KERAS_LOOP = "steps_per_execution"
KERAS_SESSION = "Keras in graph mode"  # it runs each step itself
# The names of the functions that Keras 2 and 3 make for fit.
_OF_KERAS = frozenset({"train_function", "one_step_on_iterator", "multi_step_on_iterator", "one_step_on_data"})


def trainer_of_function(name: str) -> str:
    """Return who calls a tf.function that trains, by its name, such as ``train_function (2)``: KERAS or FUNCTION."""
    return KERAS if name.partition(" ")[0] in _OF_KERAS else FUNCTION


def edit_of_configuration(trainer: str, batch: int | None, proposals: Sequence[Proposal]) -> list[str]:
    """Return lines that set the proposed options.

    Args:
        trainer: ESTIMATOR, SESSION, KERAS_SESSION, KERAS or FUNCTION.
        batch: of the script.
        proposals: of its prediction.
    """
    values = {proposal.option: proposal.value for proposal in proposals}
    lines = []
    if BATCH in values:
        lines.append(f"# batch size: {values[BATCH]} in place of {batch}")
    options = {PRECISION: f'"{values[PRECISION]}"'} if PRECISION in values else {}
    if LOOP in values:
        options.update({LOOP: values[LOOP], "enable_data_pre_proc": "True"})
    arguments = ", ".join(f"{name}={value}" for name, value in options.items())
    if options and trainer == ESTIMATOR:
        lines.append(f"config = NPURunConfig(..., {arguments})")
    elif options and trainer in (SESSION, KERAS_SESSION):
        lines.append(f"config = npu_shim.session_config(config, {arguments})")
        if LOOP in values:
            lines.append(f"train_op = util.set_iteration_per_loop(sess, train_op, {values[LOOP]})")
    elif options:
        lines += [f"npu.global_options().{name} = {value}" for name, value in options.items()]
    if KERAS_LOOP in values:
        lines.append(f"model.compile(..., {KERAS_LOOP}={values[KERAS_LOOP]})")
    if SPLIT in values:
        lines += [f"from npu_shim.hccl.split.api import {SPLIT}", f"{SPLIT}({values[SPLIT]})"]
    return lines
