"""A plugin of every kind, of a user's own."""
