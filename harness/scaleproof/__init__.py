"""Scaleproof: benchmarks of distributed deep learning, and verdicts on published claims."""

__version__ = "0.1.0"
