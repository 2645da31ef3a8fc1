"""gRPC requests a tensor, another transport delivers it: one file for each transport that can deliver."""
