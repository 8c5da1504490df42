"""Dumps of the NPU: read, paired with what TensorFlow computes, and compared.

``compare`` compares two folders, ``overflow`` explains overflow dumps, ``reference`` defines the folder of the side
that TensorFlow computes, and ``collect`` writes it. ``reports`` writes what they find.
"""
