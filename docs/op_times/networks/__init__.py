"""The networks by kind: importing a module registers those of it."""

from . import classification, detection, generation, language, recommendation
from .layers import NETWORKS

__all__ = ["NETWORKS", "classification", "detection", "generation", "language", "recommendation"]
