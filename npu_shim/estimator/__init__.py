"""Estimators on the NPU: NPUEstimator, NPUEstimatorSpec, hooks, Keras models.

Import the modules by name; the package itself imports nothing.
"""
