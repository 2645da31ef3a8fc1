"""Rank programs as graphs: what every rank computes, sends and receives, and what waits for what."""
