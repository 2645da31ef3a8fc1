"""Fabric `guests`: nodes with their own Linux kernel on this machine."""
