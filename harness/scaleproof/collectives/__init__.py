"""Algorithms over point-to-point messages: one file per algorithm, one engine."""
