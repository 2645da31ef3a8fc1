"""Transport `rdma`: a verbs device, queue pairs to every peer, messages and one-sided transfers on them."""
