"""Rank tables: model, reader, dialects, validation, generation, writer."""
