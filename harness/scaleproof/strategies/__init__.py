"""How replicas stay in step: one file per strategy."""
