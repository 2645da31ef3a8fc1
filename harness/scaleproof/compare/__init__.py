"""Two sides of launches against each other: which they are, what may be compared, what differs around them, and by how
much."""
