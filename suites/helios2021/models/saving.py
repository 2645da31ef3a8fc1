"""Placeholder."""

METRICS: list = []
