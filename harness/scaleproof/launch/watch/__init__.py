"""Watching the processes of a running launch: signs of failure, stacks, idle time."""
