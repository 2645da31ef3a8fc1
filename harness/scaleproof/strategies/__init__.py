"""How replicas stay in step: one file per strategy (those with a PLUGIN), and what strategies share."""
