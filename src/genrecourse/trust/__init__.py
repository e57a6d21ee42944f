"""Measures how far an x_plus can be trusted, from training rows alone."""
