"""What works on this machine, and what dead launches left on it."""
