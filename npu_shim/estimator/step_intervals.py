"""What several steps per run mean for the intervals of an Estimator, said in numbers before training starts."""

from __future__ import annotations

from typing import Any

from npu_shim import _tf


def tell(config: Any) -> None:
    """Logs how the hooks of an NPUEstimator run.

    Args:
        config: an NPURunConfig with iterations_per_loop greater than 1.
    """
    steps = config.iterations_per_loop
    _tf.logging.info(
        "npu_shim: iterations_per_loop=%d: each session.run makes %d training steps, and hooks run every %d steps.",
        steps,
        steps,
        steps,
    )
    for name, value in _intervals(config):
        if value % steps:
            _tf.logging.warning(
                "npu_shim: %s=%d is no multiple of iterations_per_loop=%d, so the interval is kept only to within %d "
                "steps. Use a multiple of %d.",
                name,
                value,
                steps,
                steps,
                steps,
            )


def _intervals(config: Any) -> list[Any]:
    names = ("save_checkpoints_steps", "save_summary_steps", "log_step_count_steps")
    return [(name, getattr(config, name)) for name in names if getattr(config, name)]


def tell_overrun(iterations: int, start: int, steps: int | None, max_steps: int | None) -> None:
    """Logs that training goes on to the end of the last run when the number of steps is no multiple of a run.

    Args:
        iterations: training steps per run.
        start: the global step that training starts from.
        steps, max_steps: as for Estimator.train.
    """
    wanted = steps if steps is not None else max_steps - start if max_steps is not None else 0
    if wanted > 0 and wanted % iterations:
        made = -(-wanted // iterations) * iterations
        _tf.logging.warning(
            "npu_shim: %d training steps are no multiple of iterations_per_loop=%d; as on the card, whole runs are made: %d "
            "steps, to global step %d. Train a multiple of %d.",
            wanted,
            iterations,
            made,
            start + made,
            iterations,
        )
