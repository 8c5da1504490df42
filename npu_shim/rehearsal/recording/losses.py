"""Names of the losses of a run, so that those of two optimizers or tapes in one step are not mixed."""

from __future__ import annotations

import threading
from typing import Hashable

FIRST = "loss"
BY_INPUTS = "loss by inputs"  # differentiated by other tensors than variables, as for the penalty of a critic


class Losses:
    """Number losses in the order in which a script differentiates them first: ``loss``, ``loss 2``, ``loss 3`` ...

    Two losses are the same if they come from the same place and share variables: trainable variables may change while
    a script runs, and a function may differentiate the losses of several models.
    """

    def __init__(self) -> None:
        self._known: list[tuple[Hashable, set[str]]] = []
        self._lock = threading.Lock()

    def name_of_loss(self, place: Hashable, variables: set[str]) -> str:
        """Return the name of a loss.

        Args:
            place: of the call that differentiates it, or of the loss among those of its graph.
            variables: the names of the variables of its gradients.
        """
        if not variables:
            return BY_INPUTS
        with self._lock:
            numbers = [n for n, (known, shared) in enumerate(self._known) if known == place and shared & variables]
            if not numbers:
                numbers = [len(self._known)]
                self._known.append((place, set()))
            self._known[numbers[0]][1].update(variables)
        return f"{FIRST} {numbers[0] + 1}" if numbers[0] else FIRST
