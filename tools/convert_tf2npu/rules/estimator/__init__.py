"""Estimators: run configurations, TPU Estimators, Keras models as Estimators."""
