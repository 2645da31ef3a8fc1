"""Figures as inline SVG, one file per kind; each takes plain points and returns markup. All numbers in a figure are in
its CSV too."""
