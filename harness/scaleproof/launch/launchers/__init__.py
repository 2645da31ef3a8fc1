"""One file per launcher: the command that starts a launch's ranks."""
