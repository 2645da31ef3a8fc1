"""NCCL's collectives on nodes with GPUs: rings searched on the links, and the algorithm and protocol that NCCL's own
cost model selects."""
