"""Transport `ucx`: ctypes bindings of libucp, its objects and requests, and connections that show when a peer ends."""
