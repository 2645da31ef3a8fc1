"""The processes of ranks: the parent that forks them, the program of one rank, its facts, clocks and preflight."""
