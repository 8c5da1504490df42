"""The package of a model."""
