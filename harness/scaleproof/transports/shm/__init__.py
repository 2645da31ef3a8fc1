"""Transport `shm`: memory that all ranks of a machine map, and messages through it."""
