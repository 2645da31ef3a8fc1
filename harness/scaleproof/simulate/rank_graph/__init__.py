"""Graphs of rank programs in the event engine."""
