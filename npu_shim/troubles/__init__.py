"""Troubles of the vendor's stack: the table of symptoms, causes and fixes, and what explains logs by it."""
