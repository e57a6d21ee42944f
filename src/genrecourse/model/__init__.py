"""The classifier h, the training loop, and model files."""
