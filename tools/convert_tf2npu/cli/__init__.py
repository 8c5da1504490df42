"""The command line: arguments, settings of a project, and what each command prints.

Imports: every other package of the tool.
Gives: exit codes to ``main``.
"""
