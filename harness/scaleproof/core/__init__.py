"""What many packages use: the record's schema, a rank's context, board, recorder and rendezvous."""
