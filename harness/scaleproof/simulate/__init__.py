"""What a message, a reduction and a collective cost, by models that are fitted to measured launches."""
