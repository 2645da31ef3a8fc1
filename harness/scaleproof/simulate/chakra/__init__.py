"""MLCommons Chakra execution traces: written for cases, read and replayed."""
