"""Kernels for fabric `guests`: User-Mode Linux built from Debian's source, and Debian's stock kernel for QEMU taken
from its package."""
