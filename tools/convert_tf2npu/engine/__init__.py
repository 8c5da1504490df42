"""Convert files: one file through all rules, or a folder in one process or several.

Imports: ``rules`` and below; never ``report`` or ``cli``.
Gives: results as data, which reports and writers read.
"""
