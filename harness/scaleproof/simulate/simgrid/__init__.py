"""SimGrid, a simulator that others wrote, as an instrument beside ours."""
