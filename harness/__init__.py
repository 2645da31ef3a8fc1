"""Scaleproof: turns claims about distributed deep learning into experiments and verdicts."""

__version__ = "0.1.0"
