"""Dumps of the NPU: read, paired with what TensorFlow computes, and compared.

``dump_comparison`` compares two folders, ``device_overflows`` explains overflow dumps, ``reference`` defines the folder
of the side that TensorFlow computes, ``cpu_dump`` writes it, and ``bands`` adds what 16 bits may change. ``diagnosis``
walks from a run that differs to its cause. ``reports`` writes what they find.
"""
