"""The network that the ranks stand on."""
