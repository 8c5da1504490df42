"""Kinds of recorded values. Their order is that of a training step: the first that departs is nearest to the cause."""

from __future__ import annotations

INPUT, LOSS, TAPE, GRADIENT = "input", "loss", "gradient of the tape", "gradient"
RATE, VARIABLE, UNTRAINED = "learning rate", "variable", "untrained variable"
INITIAL = "initial variable"  # of recordings that travel
FEED, FETCH, SUMMARY, LOG = "feed", "fetch", "summary", "log"
CALL, RESULT = "model call", "metric result"  # in loops of the script
METRIC, PREDICTION, FINAL, PRINT = "metric", "prediction", "final variable", "printed"
KINDS = (
    *(INITIAL, INPUT, FEED, LOSS, TAPE, GRADIENT, RATE, VARIABLE, UNTRAINED),
    *(FETCH, SUMMARY, LOG, CALL, RESULT, METRIC, PREDICTION, FINAL, PRINT),
)
HOST_KINDS = (FEED, FETCH, SUMMARY, LOG, METRIC, PREDICTION, FINAL, PRINT)  # of a run on a device
# How ranks work together; not compared as the values of others are.
ROWS, DRAW, REDUCED = "rows", "draw", "reduced elements"
# Deliberate changes: those that a migrated script has, and one that the original is given.
BATCH, POLICY, INPUT_FN, GIVEN = "static batch", "mixed policy", "static input", "given"
TRAINING_BATCH, STATIC_INITIALIZER = "static batch in training", "static initializer"
FIT = "full batches of fit"
POLICY_CODE = "NPU116"  # the rule for policies of Keras
LIBRARY_CODE = "NPU123"  # the rule for imports of the package keras
TAPES = "tape"  # a block in which a tape records
