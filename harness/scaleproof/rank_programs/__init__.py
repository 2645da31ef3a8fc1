"""Programs of a rank that yield what they do, and their driver in processes."""
