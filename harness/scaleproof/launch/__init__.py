"""Starts launches, watches them, and writes their records: the supervisor, checks before, nodes, launchers."""
