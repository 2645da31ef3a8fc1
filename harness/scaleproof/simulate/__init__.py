"""Predicts launches: an engine in virtual time, and cost models that are fitted to measured launches."""
