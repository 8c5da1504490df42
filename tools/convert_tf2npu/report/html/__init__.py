"""The HTML report: one page that needs no network.

Imports: the report's model and texts.
Gives: the page as text.
"""
