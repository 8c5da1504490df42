"""Training batches and loss scaling."""
