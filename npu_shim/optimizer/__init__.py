"""Optimizers: wrappers for several ranks, loss scaling, loops of steps."""
