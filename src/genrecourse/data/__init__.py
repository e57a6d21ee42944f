"""Data sets by name: embedded, downloaded, or made from a known mechanism."""
