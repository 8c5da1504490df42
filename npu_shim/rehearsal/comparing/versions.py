"""Values that versions of TensorFlow define differently, so that recordings of both are not compared by them."""

from __future__ import annotations

import re

from npu_shim.rehearsal.comparing.read_recording import Recording
from npu_shim.rehearsal.recording.kinds import FINAL, LOG, UNTRAINED

_COUNT = "elements that a Normalization layer has counted, which Keras 3 does not count"
# the first version of the new meaning, kind and pattern of the name, what differs
_CHANGES = (
    ((2, 2), LOG, "batch ", "logs of batches, which are means of the epoch from TensorFlow 2.2 on"),
    ((2, 16), UNTRAINED, r".*normaliz\w*/count$", _COUNT),
    ((2, 16), FINAL, r".*normaliz\w*/count$", _COUNT),
)


def drop_redefined_values(original: Recording, migrated: Recording) -> list[str]:
    """Drop the values that the versions of two recordings define differently. Return a text for each kind of them."""
    one, other = _tensorflow_version(original), _tensorflow_version(migrated)
    texts = []
    for version, kind, pattern, text in _CHANGES:
        if one and other and (one < version) != (other < version):
            for streams in (original.streams, migrated.streams):
                keys = [key for key in streams if key[0] == kind and re.match(pattern, key[1])]
                for key in keys:
                    del streams[key]
                texts += [text] * bool(keys)
    return list(dict.fromkeys(texts))


def _tensorflow_version(recording: Recording) -> tuple[int, ...]:
    """Return the first two numbers of the version of TensorFlow; an empty tuple if it is unknown."""
    version = recording.notes.tensorflow
    return tuple(map(int, version.split(".")[:2])) if version else ()
