"""Strategy, callbacks and broadcasting for training on several ranks."""
