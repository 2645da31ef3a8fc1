"""Collectives over graphs of links: packings of spanning trees, their bounds, and the rings that they are compared with
(blink2020)."""
