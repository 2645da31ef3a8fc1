"""Data sets, one file each: descriptor, rows or their generator, checks."""
