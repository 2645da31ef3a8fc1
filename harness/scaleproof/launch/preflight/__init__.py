"""Checks before the first launch of an experiment: the machine, its nodes, and the ranks among themselves."""
