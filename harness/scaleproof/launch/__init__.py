"""The supervisor and one file per launcher."""
