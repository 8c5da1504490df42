"""Dumps of the NPU: read, paired with what TensorFlow computes, and compared.

``compare`` compares two folders, ``overflow`` explains overflow dumps, ``reference`` defines the folder of the side
that TensorFlow computes, ``collect`` writes it, and ``bands`` adds what 16 bits may change. ``diagnosis`` walks
from a run that differs to its cause. ``reports`` writes what they find.
"""
