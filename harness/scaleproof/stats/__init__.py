"""Intervals, tests and stopping rules over launches."""
