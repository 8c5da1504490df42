"""The use of a dataset in observed runs: training or evaluation, and partial batches."""

from __future__ import annotations

from ..facts.seen import Seen
from ..files.message import Message

_NO_TRAINING = frozenset({"evaluation", "prediction"})
_WHILE_RUNNING = frozenset({"keras", "for"})  # training that drop_in_training() tells from evaluation
_BY_USE = _WHILE_RUNNING | {"estimator"}


class ObservedUse:
    """The use of a dataset in all observed runs.

    Args:
        seen: the notes; None if no run reached it.
    """

    def __init__(self, seen: Seen | None) -> None:
        self._seen = seen or Seen()
        self._uses = frozenset(self._seen.all("used") or ())

    @property
    def runs(self) -> int:
        """The number of runs that reached it."""
        return self._seen.runs

    @property
    def is_unread(self) -> bool:
        """True if runs made it and read no batch of it."""
        return bool(self._seen.times) and not {"used", "batch"} & self._seen.values.keys()

    @property
    def is_full(self) -> bool:
        """True if no batch was partial."""
        return self._has_observed_batches and "partial" not in self._seen.values

    @property
    def trains_only(self) -> bool:
        """True if it only trained, and what dropping partial batches loses is known."""
        return self._has_observed_batches and self._uses == {"training"}

    @property
    def needs_nothing(self) -> bool:
        """True if it fed no training, or only the training of Estimators, which drop partial batches themselves."""
        by_estimator = self._seen.only("trained_by") == "estimator" and "other" not in self._uses
        return bool(self._uses) and (self._uses <= _NO_TRAINING or by_estimator)

    @property
    def is_endless(self) -> bool:
        """True if the examples of training repeated forever, so that none of its batches was partial."""
        return self._seen.only("endless") is True and "other" not in self._uses

    @property
    def is_shared(self) -> bool:
        """True if it fed training and something else, and npu_shim can tell them apart."""
        trained_by = frozenset(self._seen.all("trained_by") or ())
        return (
            self._has_observed_batches
            and self._uses > {"training"}
            and "other" not in self._uses
            and trained_by <= _BY_USE
            and not self._length_is_read_in_loops
        )

    @property
    def trains_where_known(self) -> bool:
        """True if only Keras and ``for`` loops trained on it, of which npu_shim knows when they train."""
        trained_by = frozenset(self._seen.all("trained_by") or ())
        return bool(trained_by) and trained_by <= _WHILE_RUNNING and not self._length_is_read_in_loops

    @property
    def _length_is_read_in_loops(self) -> bool:
        """True if a script that reads it in loops asks for its length, which would have the partial batch."""
        return "counted" in self._seen.values and "for" in (self._seen.all("trained_by") or ())

    @property
    def lost(self) -> str:
        """Why training would lose the same examples in each epoch, or all; the empty string if it would not."""
        examples, most = self._seen.only("examples"), self._seen.greatest("size")
        partial = self._seen.all("lost") or ()
        if False in partial:
            return Message(
                "an observed run had fewer examples than a batch of {0}, so drop_remainder=True would leave no batch. "
                "Use a smaller batch size",
                most,
            )
        if True not in partial or self._seen.only("mixed") is True:
            return ""
        dropped = Message("would drop the same examples in each epoch")
        if isinstance(examples, int) and isinstance(most, int):
            dropped = Message("would drop the same {0} of {1} examples in each epoch", examples % most, examples)
        shuffled = "n" if examples is None else examples
        return Message("drop_remainder=True {0}. Call shuffle({1}) before batch, and pass it", dropped, shuffled)

    @property
    def _has_observed_batches(self) -> bool:
        return self._seen.greatest("size") is not None and "batch" in self._seen.values
