"""Prediction and frozen graphs: sessions, imports, and parts of training that a frozen graph keeps."""
