"""One strategy, one transport and one collective of a user's own."""
