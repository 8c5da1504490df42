"""Estimators on the NPU: NPUEstimator, NPUEstimatorSpec, hooks, Keras models.

The modules here are imported by name; this package imports nothing by itself.
"""
