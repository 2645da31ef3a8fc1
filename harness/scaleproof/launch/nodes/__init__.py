"""Launches over the nodes of an allocation: what was given to run on, who starts an agent on each node, and what agents
do (docs/clusters.md)."""
