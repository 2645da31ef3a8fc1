"""Mutated files of all suites and clusters, each through everything that a user's commands do with it before a launch:
every one of them is taken as it is, or gives one line with file, line and the nearest valid name."""

SEED = 2016
FILES, TESTED = 20_000, 1_200
"""How many files the command makes; the first so many are part of the tests."""
