"""What may be asked for: names, units, cases, experiments, suites, and the messages about a wrong one."""
