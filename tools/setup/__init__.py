"""Makes the environment of a clone: `python3 -m tools.setup`. Standard library only, since nothing else is
installed yet."""
