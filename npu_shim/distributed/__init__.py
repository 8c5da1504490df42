"""Ranks, collectives, strategy. The modules here are imported by name; this package imports nothing by itself."""
