"""How far to trust an x_plus, judged from training rows alone."""
