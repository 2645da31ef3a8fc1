"""Does comparing identical arms keep its false-alarm rate, and is an injected slowdown found? Shown on real launches,
kept in results/reference/."""
