"""Questions that several rules ask: devices, training phase, datasets, batches, optimizers, gelu.

Imports: ``project`` and below.
Gives: answers about expressions and calls; no edits.
"""
