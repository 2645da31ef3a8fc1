"""finish."""
