"""Public scripts of TensorFlow 2 that docs/make_acceptance.py verifies."""

from __future__ import annotations

from acceptance import Script

SCRIPTS: tuple[Script, ...] = ()
