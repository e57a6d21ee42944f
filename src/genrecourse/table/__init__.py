"""The table: what its columns are, how rows become numbers and back, and what a change costs."""
