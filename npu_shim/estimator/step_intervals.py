"""Log how several steps per run change the intervals of an Estimator, before training starts."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import RunConfig


def log_intervals(config: RunConfig) -> None:
    """Log the intervals of the hooks of an NPUEstimator.

    Args:
        config: an NPURunConfig with iterations_per_loop greater than 1.
    """
    steps = config.iterations_per_loop
    tf_api.logging.info(
        "npu_shim: iterations_per_loop=%d: each session.run makes %d training steps, and hooks run every %d steps.",
        steps,
        steps,
        steps,
    )
    for name in ("save_checkpoints_steps", "save_summary_steps", "log_step_count_steps"):
        value = getattr(config, name)
        if value and value % steps:
            tf_api.logging.warning(
                "npu_shim: %s=%d is not a multiple of iterations_per_loop=%d, so the interval varies by up to %d "
                "steps. Use a multiple of %d.",
                name,
                value,
                steps,
                steps,
                steps,
            )


def log_overrun(iterations: int, start: int, steps: int | None, max_steps: int | None) -> None:
    """Warn if the number of steps is not a multiple of a run, because the last run makes all its steps.

    Args:
        iterations: training steps per run.
        start: the global step at which training starts.
        steps, max_steps: as for Estimator.train.
    """
    wanted = steps if steps is not None else max_steps - start if max_steps is not None else 0
    if wanted > 0 and wanted % iterations:
        total = -(-wanted // iterations) * iterations
        tf_api.logging.warning(
            "npu_shim: %d training steps are not a multiple of iterations_per_loop=%d, so training makes %d steps, to "
            "global step %d. Train a multiple of %d.",
            wanted,
            iterations,
            total,
            start + total,
            iterations,
        )
