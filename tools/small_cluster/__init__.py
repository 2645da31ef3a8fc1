"""A real Slurm on one machine: slurmctld, and a slurmd in namespaces of its own for every node (docs/clusters.md)."""
