"""How bytes move between ranks: one file per transport."""
