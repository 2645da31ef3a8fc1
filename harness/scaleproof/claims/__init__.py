"""Named metrics, the rules that judge them, and the verdicts."""
