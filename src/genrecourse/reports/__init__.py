"""Pages, pictures and console output."""
