"""The networks on which ranks run: the machine's own, and emulated ones."""
