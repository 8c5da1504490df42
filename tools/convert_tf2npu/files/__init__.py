"""Trees of files: read, copy, stage, replace all or nothing; messages and errors for people.

Imports: nothing of the tool.
Gives: bytes in and bytes out; a run that is killed leaves no file half written.
"""
