"""Transports `horovod` and `horovod-mpi`, over a shared base and one binding per framework."""
