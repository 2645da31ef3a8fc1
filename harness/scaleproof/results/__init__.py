"""Managing a results folder: choosing launches, queries, export, merging, pruning, migration."""
