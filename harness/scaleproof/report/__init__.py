"""Pages from records and verdicts only; never starts anything."""
