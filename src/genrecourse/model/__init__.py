"""The classifier h, the one training loop, and model files."""
