"""Builds the Horovod wheel that this project uses, from the released source and horovod-0.28.1.patch; `build.py` says
how."""
