"""One file per command. At import a command only declares its arguments: what it does is imported when it runs."""
