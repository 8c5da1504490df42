"""Results of a run as text, JSON, SARIF and HTML, and on the terminal.

Imports: ``engine.results`` and below; never ``cli``.
Gives: a table of writers, one per format.
"""
