"""The paper's evaluation, table by table: `python -m paper --help`. Not part of the library."""
