"""The figures that a suite declares in figures.yaml: its page begins with them."""
