"""Rehearse a migration: run a script and its migrated form on the CPU, and examine what they compute."""
