"""Schedules of pipelines as data: which worker carries out which pass of which micro-batches, and in which order."""
