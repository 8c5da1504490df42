"""The work of the ranks of a job together: the rows that each trains on, what they average, the files that they write.

Ranks that all do everything compute what one process computes, so a comparison of values cannot see them.
"""

from __future__ import annotations

from typing import Callable, Iterator, NamedTuple, Sequence

import numpy as np

from npu_shim.rehearsal.comparing.matching import match_streams
from npu_shim.rehearsal.comparing.ranks import metrics_equal_only_in_mean
from npu_shim.rehearsal.comparing.read_recording import Recording, Stream
from npu_shim.rehearsal.recording.digest import elements_from_digest, scalar_from_digest
from npu_shim.rehearsal.recording.kinds import DRAW, GRADIENT, INPUT, LOSS, REDUCED, ROWS
from npu_shim.rehearsal.recording.row_sums import MODULUS

Places = Callable[[], Sequence[str]]

_SEED = "tf.random.set_seed"
_FIGURES = 16  # elements that scripts average for their logs; gradients have more


class Rows(NamedTuple):
    """Rows of an input: how many, and the sum of their checksums."""

    number: int
    checksum: int

    def __add__(self, other: Rows) -> Rows:  # type: ignore[override]
        return Rows(self.number + other.number, (self.checksum + other.checksum) % MODULUS)


_NO_ROWS = Rows(0, 0)


def needs_random_numbers_by_rank(ranks: Sequence[Recording]) -> bool:
    """Return True if a script must run again with random numbers of its own on each rank, to see what ranks do.

    A recording gives all ranks the same random numbers where the script sets no seed, and does not use the global seed
    of the script. That hides variables that nobody broadcasts, and data that each rank shuffles by itself.
    """
    if ranks[0].notes.on_device:
        return False  # the seeds are those of the script
    seeds = [global_seeds(rank) for rank in ranks]
    return (
        not has_broadcast(ranks)
        or do_equal_work(ranks)
        or bool(ops_with_equal_draws(ranks))
        or any(s != seeds[0] for s in seeds)
    )


def has_broadcast(ranks: Sequence[Recording]) -> bool:
    """Return True if the ranks have broadcast numbers, such as their variables."""
    return all(rank.notes.broadcast for rank in ranks)


def global_seeds(recording: Recording) -> list[str]:
    """Return the global seeds of TensorFlow that a script sets."""
    return sorted({value for call, value, _ in recording.seeds if call == _SEED})


def do_equal_work(ranks: Sequence[Recording]) -> bool:
    """Return True if all ranks compute the same losses from the same inputs, bit by bit."""
    losses, inputs = (_equal_on_all_ranks(ranks, kind) for kind in (LOSS, INPUT))
    if not losses or not all(losses.values()) or not all(inputs.values()):
        return False
    return bool(inputs) or not reduces_tensors(ranks[0])  # else the loss may be the mean over the ranks


def reduces_tensors(recording: Recording) -> bool:
    """Return True if collectives of a rank reduce more in a step than a few figures for the log."""
    most = max((reduced for reduced, _ in _reduced_elements_by_step(recording)), default=0.0)
    elements = sum(int(np.prod(stream.values[0].shape)) for stream in recording.streams_of_kind(GRADIENT))
    return most >= elements or most > _FIGURES


def ops_with_equal_draws(ranks: Sequence[Recording]) -> list[str]:
    """Return the random ops of a step of which all ranks draw the same numbers."""
    is_equal = _equal_on_all_ranks(ranks, DRAW)
    return [name for name in is_equal if is_equal[name] and ranks[0].streams[DRAW, name].values[0].shape != (1,)]


def fault_sentences(whole: Recording, ranks: Sequence[Recording], places: Places) -> list[str]:
    """Return what is wrong with the work of the ranks, as sentences, also if all values agree with the original.

    Args:
        whole: the recording of one process.
        ranks: the recordings of all ranks.
        places: returns code and place of each finding of the tool about ranks in the migrated script.
    """
    sentences = []
    steps = [max((step for _, step in _reduced_elements_by_step(rank)), default=rank.steps) for rank in ranks]
    other = next((number for number, count in enumerate(steps) if count != steps[0]), 0)
    if other:
        sentences.append(
            f"Rank 0 makes {steps[0]} training steps, rank {other} makes {steps[other]}. Give all the same number."
        )
    if do_equal_work(ranks):
        who = "Both ranks" if len(ranks) == 2 else f"All {len(ranks)} ranks"
        counts = [_rows_by_step(stream)[0].number for stream in ranks[0].streams_of_kind(ROWS)]
        rows = f"{max(counts)} rows" if counts else "data"
        sentences.append(
            f"{who} train on the same {rows}; {_averaging_text(ranks[0])}{_places_in_parentheses(places)}."
        )
    if not (ranks[0].end and ranks[0].end.reduced):  # after the last step
        for name in metrics_equal_only_in_mean(whole, ranks):
            sentences.append(
                f"Metric {name!r} of rank 0 is that of its share; the mean over the ranks is right. Average it."
            )
    return sentences


def double_checkpoint_sentences(ranks: Sequence[Recording]) -> list[str]:
    """Return a sentence about each checkpoint that several ranks write."""
    sentences = []
    for path, line in ranks[0].saved.items():
        also = [str(number) for number, rank in enumerate(ranks) if path in rank.saved]
        if len(also) > 1:
            sentences.append(f"Ranks {' and '.join(also)} write {path} ({line}). Save on rank 0 only.")
    return sentences


def cause_sentences(whole: Recording, ranks: Sequence[Recording], are_equal: bool, places: Places) -> list[str]:
    """Return what explains a difference between ranks and one process, as sentences.

    Args:
        whole: the recording of one process.
        ranks: those of all ranks.
        are_equal: True if gradients and variables are equal on all ranks.
        places: as for faults().
    """
    sentences = []
    if do_equal_work(ranks):
        return []
    if not are_equal and not reduces_tensors(ranks[0]):
        sentences.append(f"{_averaging_text(ranks[0]).capitalize()}{_places_in_parentheses(places)}.")
    sentences += _unread_rows_sentences(whole, ranks, are_equal)
    equal = ops_with_equal_draws(ranks)
    own = [stream.name for stream in ranks[0].streams_of_kind(DRAW) if stream.values[0].shape != (1,)]
    for names, text in (
        (equal, "All ranks draw the same random numbers in a step: {}. Seed them by rank."),
        (
            [name for name in own if name not in equal],
            "Each rank draws its own random numbers in a step: {}. Turn them off to compare.",
        ),
    ):
        if names:
            sentences.append(text.format(f"{names[0]!r} ({ranks[0].lines.get((DRAW, names[0]), '')})"))
    return sentences


def _averaging_text(rank: Recording) -> str:
    if reduces_tensors(rank):
        return "their average is the gradient of one rank"
    return (
        "the gradients are not averaged"
        if any(reduced for reduced, _ in _reduced_elements_by_step(rank))
        else "nothing is averaged"
    )


def _places_in_parentheses(places: Places) -> str:
    texts = places()
    return f" ({'; '.join(texts)})" if texts else ""


def _unread_rows_sentences(whole: Recording, ranks: Sequence[Recording], are_equal: bool) -> Iterator[str]:
    """Yield a sentence about the first input of which the ranks together do not read the rows of the original."""
    for one, other in match_streams(whole, ranks[0]).pairs:
        key = ROWS, other.name
        if one.kind != INPUT or (ROWS, one.name) not in whole.streams or not all(key in rank.streams for rank in ranks):
            continue
        ours = _rows_by_step(whole.streams[ROWS, one.name])
        rows_of_ranks = [_rows_by_step(rank.streams[key]) for rank in ranks]
        if (
            all(rows[0] == rows_of_ranks[0][0] for rows in rows_of_ranks)
            or one.values[0].shape[1:] != other.values[0].shape[1:]
        ):
            continue  # every rank has it, as a rate, or slices it in the step; or its rows are along another axis
        first = sum([rows[0] for rows in rows_of_ranks], _NO_ROWS)
        if first.number != ours[0].number:
            yield (
                f"At step 1 the ranks train on {first.number} rows together, the original on {ours[0].number}. Set the "
                "batch sizes with --original-arguments and --migrated-arguments."
            )
        elif first != ours[0]:
            is_order = sum(ours, _NO_ROWS) == sum([part for rows in rows_of_ranks for part in rows], _NO_ROWS)
            order = " but those of the whole run are" if is_order else ""
            equal = (
                " The ranks average their gradients and stay equal." if are_equal and reduces_tensors(ranks[0]) else ""
            )
            yield (
                f"At step 1 the rows of all ranks together are not those of the original,{order}: input {one.name!r}."
                f"{equal} Shuffle alike on all ranks, then shard."
            ).replace(",:", ":")
        else:
            continue
        return


def _rows_by_step(stream: Stream) -> list[Rows]:
    """Return the rows of each step."""
    by_step: dict[int, Rows] = {}
    for value in stream.values:
        elements = elements_from_digest(value.digest, value.shape)
        assert elements is not None
        by_step[value.step] = by_step.get(value.step, _NO_ROWS) + Rows(*map(int, elements))
    return list(by_step.values())


def _equal_on_all_ranks(ranks: Sequence[Recording], kind: str) -> dict[str, bool]:
    """Return for each stream of a kind if its values are equal on all ranks."""
    is_equal = {}
    for stream in ranks[0].streams_of_kind(kind):
        others = [rank.streams.get((kind, stream.name)) for rank in ranks[1:]]
        mine = [(value.shape, value.digest.tobytes()) for value in stream.values]
        is_equal[stream.name] = all(
            other is not None and mine == [(value.shape, value.digest.tobytes()) for value in other.values]
            for other in others
        )
    return is_equal


def _reduced_elements_by_step(recording: Recording) -> list[tuple[float, int]]:
    """Return the elements that collectives reduce in each step, and the step."""
    totals: dict[int, float] = {}
    for stream in recording.streams_of_kind(REDUCED):
        for value in stream.values:
            totals[value.step] = totals.get(value.step, 0.0) + scalar_from_digest(value.digest)
    return [(total, step) for step, total in totals.items()]
