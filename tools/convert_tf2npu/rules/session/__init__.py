"""Sessions: their configuration, devices, XLA, GPU settings."""
