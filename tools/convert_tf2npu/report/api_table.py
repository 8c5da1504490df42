"""The TensorFlow and Horovod calls of a project, by API."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from ..engine.results import CHANGE, FINDING, FINE, ApiCall, Calls, FileResult
from .support import STATUSES, TF2, status_of


class ApiUse(NamedTuple):
    """One API and its calls in the project.

    ``status`` is a key of ``support.STATUSES``, for the calls as they are here; ``codes`` are the rules with a
    diagnostic for one; ``places`` are the number of the file and the call.
    """

    name: str
    status: str
    calls: Calls
    codes: tuple[str, ...]
    places: tuple[tuple[int, ApiCall], ...]

    @property
    def files(self) -> int:
        """The number of files that call it."""
        return len({number for number, _ in self.places})

    @property
    def short_name(self) -> str:
        """The name as scripts write it: ``tf.nn.relu``, ``hvd.init``."""
        for family, short in (("tensorflow.", "tf."), ("horovod.", "hvd.")):
            if self.name.startswith(family):
                return short + self.name[len(family) :]
        return self.name


def api_table(results: Sequence[FileResult], tensorflow: str) -> tuple[ApiUse, ...]:
    """Return every API that is called, those that need a manual change first.

    Args:
        results: the result of each file, with its calls listed.
        tensorflow: the version whose support list applies, ``support.TF1`` or ``support.TF2``. The second one also
            applies to an API that only programs of TensorFlow 2 call.
    """
    calls_by_name: dict[str, list[tuple[int, ApiCall]]] = {}
    for number, result in enumerate(results):
        for call in result.listed:
            calls_by_name.setdefault(call.name, []).append((number, call))
    uses = [
        _api_use(name, places, TF2 if {results[number].version for number, _ in places} == {"2"} else tensorflow)
        for name, places in calls_by_name.items()
    ]
    order = list(STATUSES)
    return tuple(
        sorted(
            uses,
            key=lambda use: (
                -use.calls.left,
                order.index(use.status),
                -use.calls.rewritten,
                -use.calls.total,
                use.name,
            ),
        )
    )


def _api_use(name: str, places: list[tuple[int, ApiCall]], tensorflow: str) -> ApiUse:
    outcomes = [call.outcome for _, call in places]
    codes = tuple(sorted({code for _, call in places for code in call.codes}))
    calls = Calls(outcomes.count(FINE), outcomes.count(CHANGE), outcomes.count(FINDING))
    status = status_of(name, codes, tensorflow)
    if "NPU275" in codes:
        status = "unsupported"  # TensorFlow 2.6 lacks it
    elif status in ("supported", "deprecated", "unexamined", "unlisted"):  # rules know how it is called
        status = "limited" if calls.left else "migrated" if calls.rewritten else status
    elif status == "migrated" and tensorflow == TF2 and not name.startswith("horovod."):
        status = "limited" if calls.left else status if calls.rewritten else "supported"
    return ApiUse(name, status, calls, codes, tuple(places))
