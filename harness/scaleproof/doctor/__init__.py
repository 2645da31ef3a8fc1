"""Plugins and tools that work on this machine, and leftovers of dead launches."""
