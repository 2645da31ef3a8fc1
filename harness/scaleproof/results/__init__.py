"""A results folder as a whole: choosing launches, asking them, handing them on, merging folders, pruning."""
