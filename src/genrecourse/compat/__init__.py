"""compat: the interfaces of other packages, on our methods.

`compat.dice` answers the calls of DiCE (dice-ml) users. `compat.recourse_bench` is a method of the
benchmark RecourseBench. Neither package has to be installed, and neither is copied.
"""
