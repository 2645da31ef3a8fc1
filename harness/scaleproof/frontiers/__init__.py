"""Frontiers of memory and time over all ways to divide a network's operators among devices (tensoropt2022)."""
