"""Tensors between ranks over one-sided memory (xue2019): channels, their mechanisms, and the analysis of graphs."""
