"""The table: what its columns are, as numbers and back, what a change costs."""
