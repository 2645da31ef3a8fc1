"""Measures the false-alarm rate of comparisons of identical arms, and how often an injected slowdown is detected. Real
launches, kept in results/reference/."""
