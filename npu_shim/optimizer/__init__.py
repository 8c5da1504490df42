"""Optimizers, loss scaling, and training loops in one run."""
