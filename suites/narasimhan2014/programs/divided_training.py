"""The same training on several ranks, where nothing of scikit-learn runs: its import would take a second."""

from suite_programs.training import obstacle, run

__all__ = ["obstacle", "run"]
