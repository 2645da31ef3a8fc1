"""Figures as inline SVG, one file per kind; each takes plain points and returns markup, never a number that is not in
its CSV."""
