"""The event engine: one queue of events for all ranks, one network for all messages, inner loops compiled."""
