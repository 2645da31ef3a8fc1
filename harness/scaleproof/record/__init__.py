"""The record of a launch: what it holds, and the store of all records."""
