"""Fabric `netns`: nodes made of network namespaces on this machine."""
