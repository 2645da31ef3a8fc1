"""Speed of transports and collectives beside their bounds; `make bench` runs it."""
