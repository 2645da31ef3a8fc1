"""The sniff test of nodes before an experiment (docs/preflight.md)."""
