"""The process on every rank: context, events, board, parent."""
