"""What every front end calls, in Python, on the command line or in a web service.

    learning.py      learn from a table: everything is checked before the learning starts
    service.py       Service, around a fitted method and its policy: plans, explain, audit, recheck
    request.py       PlanRequest: what one request for plans may ask
    rule_files.py    the rules of a request, from a .json or .toml
    own_model.py     a user's own classifier, from MODULE:NAME
    policy_check.py  what a policy means for a table, and what looks wrong about it
    summary.py       what a model folder holds, and how each feature may change
    catalogue.py     which methods and data sets there are
    plan_table.py    plans as a table with one line for each plan
    outputs.py       whether a file or a folder can be written, found out before any work
    output.py        plans and audits as files
    recheck.py       which plans still hold under another model
    record/          every answer in a hash-chained file, on disk before the answer is sent

Nothing in here prints. A user's mistake is a `UserError` with one sentence.
"""
