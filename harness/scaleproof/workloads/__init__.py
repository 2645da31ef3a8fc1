"""Networks, data and optimisers: what is trained."""
