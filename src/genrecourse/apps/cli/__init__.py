"""The command line: arguments in, printing out. Everything else is in `genrecourse.advice`.

    application.py  the app, its errors, and how warnings and notes are printed
    options.py      options that several commands share, and how their text is read
    start.py        demo, datasets, methods
    learn.py        schema, policy, fit, info
    people.py       plans, explain, letter, recheck, audit
    compare.py      evaluate, compare
from genrecourse.apps.cli import serve  # isort: skip
from genrecourse.apps.cli import record  # isort: skip
from genrecourse.apps.cli.application import app, main

__all__ = ["app", "compare", "learn", "main", "people", "record", "serve", "start"]
