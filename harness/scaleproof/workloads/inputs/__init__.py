"""Checks of data sets before timing: D1 to D12 of docs/inputs.md."""
