"""What one launch leaves behind, and where it is kept."""
