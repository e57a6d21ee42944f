"""The command line: arguments in, printing out. Everything else is in `genrecourse.advice`.

    application.py  the app, its errors, and how warnings and notes are printed
    options.py      options that several commands share, and how their text is read
    start.py        demo, datasets, policies, methods
    learn.py        schema, split, policy, fit, info
    people.py       plans, explain, letter, recheck, audit
    batch.py        batch
    compare.py      evaluate, compare
    serve.py        serve, serve-key
    record.py       record verify, root, prove, replay, erase

A command imports what it works with when it runs, so that the help starts without torch,
scikit-learn and pandas.

A user's mistake is one sentence on standard error and exit status 2.
"""

# Importing a module registers its commands: the help lists them in this order.
from genrecourse.apps.cli import start  # isort: skip
from genrecourse.apps.cli import learn  # isort: skip
from genrecourse.apps.cli import people  # isort: skip
from genrecourse.apps.cli import batch  # isort: skip
from genrecourse.apps.cli import compare  # isort: skip
from genrecourse.apps.cli import serve  # isort: skip
from genrecourse.apps.cli import record  # isort: skip
from genrecourse.apps.cli.application import app, main

__all__ = ["app", "batch", "compare", "learn", "main", "people", "record", "serve", "start"]
