"""Ranks, groups, rank tables, collectives and their backends."""
