"""New weights for a session that serves: placeholders and assignments that are made once.

A script that calls ``tf.assign`` or ``variable.load`` for each update adds ops to the graph, or copies through another
program. On an NPU each change of the graph is compiled anew.
"""

from __future__ import annotations

from typing import Iterable, Mapping

import numpy as np

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Session, Variable
from npu_shim.options.near import did_you_mean


class WeightUpdater:
    """Assigns new values to variables of a graph, as often as wanted, with the ops of one construction.

    Make it before the first run of the session, so that the graph of the session is complete then::

        updater = WeightUpdater()
        with tf.Session(config=npu_config_proto()) as sess:
            saver.restore(sess, checkpoint)
            serve(sess)
            updater.update(sess, {"dense/kernel": kernel})
            updater.restore(sess, newer_checkpoint)

    Args:
        variables: the variables to update; None for all global variables of the default graph.
    Raises:
        ValueError: there is no variable.
    """

    def __init__(self, variables: Iterable[Variable] | None = None) -> None:
        updated = list(tf_api.v1.global_variables() if variables is None else variables)
        if not updated:
            raise ValueError("the graph has no variables to update. Make the WeightUpdater after the model")
        with updated[0].graph.as_default(), tf_api.v1.name_scope("npu_shim_weight_updates"):
            given = [tf_api.v1.placeholder(variable.dtype.base_dtype, variable.shape) for variable in updated]
            assigned = [tf_api.v1.assign(variable, value).op for variable, value in zip(updated, given)]
        self._updates = {variable.op.name: update for variable, *update in zip(updated, given, assigned)}

    def update(self, session: Session, values: Mapping[str, np.ndarray]) -> None:
        """Assign values in one run: all of them, or none if one does not fit.

        Args:
            session: a session of the graph.
            values: by the name of a variable, without ``:0``, an array of its shape and type.
        Raises:
            ValueError: a name that is none of the variables, or an array of another shape or type.
        """
        for name, value in values.items():
            self._check_fits_variable(name, np.asarray(value))
        given = {self._updates[name][0]: value for name, value in values.items()}
        session.run([self._updates[name][1] for name in values], given)

    def restore(self, session: Session, checkpoint: str) -> None:
        """Assign the values that a checkpoint has for the variables, without the ops of a Saver.

        Args:
            session: a session of the graph.
            checkpoint: the prefix of a checkpoint, as ``tf.train.latest_checkpoint`` returns it.
        Raises:
            ValueError: a variable is missing in the checkpoint, or its shape or type differs.
        """
        reader = tf_api.v1.train.NewCheckpointReader(checkpoint)
        missing = sorted(name for name in self._updates if not reader.has_tensor(name))
        if missing:
            others = f" and {len(missing) - 1} other variables" if missing[1:] else ""
            lacks = f"the checkpoint {checkpoint!r} has no value for {missing[0]!r}{others}"
            raise ValueError(f"{lacks}. Pass WeightUpdater the variables that it has")
        self.update(session, {name: reader.get_tensor(name) for name in self._updates})

    def _check_fits_variable(self, name: str, value: np.ndarray) -> None:
        if name not in self._updates:
            raise ValueError(
                f"{name!r} is no variable of this WeightUpdater.{did_you_mean(name, self._updates)} "
                f"It has {len(self._updates)}, such as {sorted(self._updates)[0]!r}"
            )
        shape, dtype = self._updates[name][0].shape, self._updates[name][0].dtype.as_numpy_dtype
        if not shape.is_compatible_with(value.shape) or value.dtype != dtype:
            raise ValueError(
                f"the value for {name!r} has type {value.dtype} and shape {list(value.shape)}. "
                f"Pass type {np.dtype(dtype)} and shape {shape}"
            )
