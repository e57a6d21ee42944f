"""The largest sizes that the library accepts, in one place; docs/limits.md states them.

A size is checked before any work, so that no request asks for memory that no machine has. The
limits lie far above what people use. Where a setting has a limit of its own, `allowed` beside the
setting says so.
"""

# ---- requests --------------------------------------------------------------------------------

PLANS = 100  # plans for each person
PLANS_AT_ONCE = 2_000_000  # people times plans of one request
DRAWS = 100_000  # draws for each person
DRAWS_AT_ONCE = 20_000_000  # people times draws of one request

# ---- settings --------------------------------------------------------------------------------

COUNT = 1_000_000  # of most whole numbers: batches of training, rows, bins, targets
STEPS = 10_000_000  # steps and epochs of a training or a search
WIDTH = 8_192  # units of a layer
LAYERS = 256
WEIGHT = 1e6  # of lam and other weights
RATE = 10.0  # of a learning rate
SEED = 2**32 - 1  # what every generator of random numbers takes

# ---- what people write -----------------------------------------------------------------------

FORMULA_LETTERS = 300
RELATION_LETTERS = 10_000
BRACKETS = 20  # nested brackets of a formula or a relation, whose readers are recursive
DECIMALS = 15  # of a number: a float has no more
NESTED = 50  # nested lists and tables of a JSON or TOML file
