"""The NPU options: one row each, in options.json, with lookups in ``table`` and checks in ``check``."""
