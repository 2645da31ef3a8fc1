"""horovod."""
