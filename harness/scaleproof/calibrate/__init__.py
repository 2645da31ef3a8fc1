"""Noise floors and bounds of a machine, measured with identical arms, and what share of a bound a value attains."""
