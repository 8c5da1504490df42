"""Words that may be evidence for a version of TensorFlow: to find them takes less time than to analyse a file."""

from __future__ import annotations

import re

from ..semantics.module_index import ModuleIndex
from ..syntax.words import has_words, spread_word_pattern
from .near_frameworks import near_frameworks

_EAGER, _GRADIENTS = "eager", "gradients"
_WORDS: dict[str, tuple[bytes, ...]] = {
    _EAGER: (b"GradientTape", b".function", b"functions_eagerly"),
    "two": (b".numpy", b"set_seed", b"set_random_seed"),  # and those of eager code
    "one": (
        b"placeholder",
        b"Session",
        b"layers.",
        b"contrib",
        b"get_variable",
        b"stimator",
        b"disable_",
        b"enable_",
        b"tf.app",
        b"npu_init",
        b"_session",
        b"_backend",
        b"multi_gpu_model",
        b"engine.topology",
        b"keras.legacy",
        b"objectives",
    ),
    "only_one": (b"contrib", b"enable_", b"layers.", b"placeholder", b"Session", b"get_variable", b"tf.app"),
    "enables": (b"enable_",),
    _GRADIENTS: (b".gradients",),
    "trains": (b"GradientTape", b"fit_generator", b"train_on_batch", b".minimize"),  # and fit
}
_FIT = re.compile(spread_word_pattern(".fit").encode("ascii") + rb"(?!\w)")  # many words begin with it
_ARGUMENTS = (b"nb_epoch", b"border_mode", b"samples_per_epoch")  # of methods of Keras


def files_with_evidence_words(project: ModuleIndex, kind: str) -> frozenset[str]:
    """Return the files near TensorFlow with a word of a kind."""
    return frozenset(
        path for path in project.once(near_frameworks) if kind in project.once(evidence_kinds_in_file, path)
    )


def evidence_kinds_in_file(project: ModuleIndex, path: str) -> frozenset[str]:
    """Return the kinds of evidence of which a file of a project has a word."""
    return evidence_kinds_of_bytes(project.raw(path))


def evidence_kinds_of_bytes(raw: bytes) -> frozenset[str]:
    """Return the kinds of evidence of which a file has a word."""
    kinds = {kind for kind, words in _WORDS.items() if has_words(raw, words)}
    if b"fit" in raw and _FIT.search(raw):
        kinds.add("trains")
    if any(word in raw for word in _ARGUMENTS):
        kinds.add("one")
    if b"npu_shim" in raw and has_words(raw, (b".open",)):
        kinds.add("opens")
    if _EAGER in kinds:  # eager code is of version 2, and its gradients train
        kinds.update({"two", "trains"} if _GRADIENTS in kinds else {"two"})
    return frozenset(kinds)
