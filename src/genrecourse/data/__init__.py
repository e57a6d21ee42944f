"""Data sets by name, the embedded ones, and loans made from a known mechanism."""
