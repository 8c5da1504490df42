"""Pair the streams of two recordings."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from npu_shim.rehearsal.comparing.read_recording import Recording, Stream
from npu_shim.rehearsal.recording.kinds import FEED, FETCH, INITIAL, INPUT, KINDS, LOG, METRIC, PRINT, SUMMARY

_ANY = (FEED, FETCH, SUMMARY)  # what a session fetches besides training may differ: these pair only if counts are equal
_SCALARS = (LOG, METRIC)  # of Keras by name, in an order that depends on its version


class Matches(NamedTuple):
    """Pairs of streams, original and migrated, and the streams without a partner."""

    pairs: list[tuple[Stream, Stream]]
    only_original: list[Stream]
    only_migrated: list[Stream]


def match_streams(original: Recording, migrated: Recording) -> Matches:
    """Pair streams by kind and name, and the rest by order.

    If the names of a kind differ but number and shapes agree in order, all streams of the kind pair by order: Keras
    numbers layers anew for each model. Names of logs and metrics must be equal but for such numbers. Otherwise a stream
    without a partner pairs with the first other one of equal kind and shape, if possible with the same last part of the
    name: an optimizer that scales the loss makes beta1_power in a scope. What a session is fed and fetches must
    have the same number of values, too, and the same name counts only with values of the same steps if another one has
    those: an op that a rewrite replaces renumbers the names after it. An input pairs so only if there is one like it,
    and if both have as many values in a step: a model that a step calls twice has the batch and more.
    """
    pairs: list[tuple[Stream, Stream]] = []
    only_original: list[Stream] = []
    only_migrated: list[Stream] = []
    for kind in KINDS:
        ours, theirs = original.streams_of_kind(kind), migrated.streams_of_kind(kind)
        if (
            kind not in (*_ANY, PRINT)
            and _stream_names(ours) != _stream_names(theirs)
            and list(map(_shape_of_first_value, ours)) == list(map(_shape_of_first_value, theirs))
            and (kind != INPUT or list(map(_most_values_of_step, ours)) == list(map(_most_values_of_step, theirs)))
            and (
                kind not in _SCALARS
                or list(map(_name_without_keras_number, ours)) == list(map(_name_without_keras_number, theirs))
            )
        ):
            pairs += zip(ours, theirs)
            continue
        by_name = {stream.name: stream for stream in theirs}
        if kind in (PRINT, INITIAL):  # those of one script only mean nothing: messages, slots, metrics
            pairs += [(stream, by_name[stream.name]) for stream in ours if stream.name in by_name]
            continue
        left = []
        for stream in ours:
            partner = by_name.get(stream.name)
            if partner is None or (kind in _ANY and _steps(stream) != _steps(partner)):
                left.append(stream)
            else:
                pairs.append((stream, by_name.pop(stream.name)))
        for condition in (_has_equal_last_name, _has_equal_type_and_shape):
            alone, left = left, []
            for stream in alone:
                like = [other for other in by_name.values() if condition(stream, other)]
                if kind in _ANY:
                    same = [other for other in like if _steps(stream) == _steps(other)]
                    like = same or ([] if stream.name in by_name else like)
                if like and (kind != INPUT or len(like) == 1):  # images and masks may be alike
                    pairs.append((stream, by_name.pop(like[0].name)))
                else:
                    left.append(stream)
        for stream in left:
            if stream.name in by_name:
                pairs.append((stream, by_name.pop(stream.name)))
            else:
                only_original.append(stream)
        only_migrated += by_name.values()
    return Matches(pairs, only_original, only_migrated)


def _steps(stream: Stream) -> list[int]:
    return [value.step for value in stream.values]


def _stream_names(streams: list[Stream]) -> set[str]:
    return {stream.name for stream in streams}


def _name_without_keras_number(stream: Stream) -> str:
    """Return the name without the number that Keras adds to it. TensorFlow 1.15 calls an accuracy ``acc``."""
    return re.sub(r"(_\d+)?$", "", re.sub(r"(?<![a-z])acc(?![a-z])", "accuracy", stream.name), count=1)


def _shape_of_first_value(stream: Stream) -> tuple[int, ...]:
    return stream.values[0].shape


def _has_equal_last_name(one: Stream, other: Stream) -> bool:
    return _has_equal_type_and_shape(one, other) and one.name.split("/")[-1] == other.name.split("/")[-1]


def _has_equal_type_and_shape(one: Stream, other: Stream) -> bool:
    same = one.dtype == other.dtype and _shape_of_first_value(one) == _shape_of_first_value(other)
    if one.kind == INPUT:
        return same and _most_values_of_step(one) == _most_values_of_step(other)
    return same and (one.kind not in _ANY or len(one.values) == len(other.values))


def _most_values_of_step(stream: Stream) -> int:
    return max(Counter(_steps(stream)).values())
