"""Make plans from the candidates of a method: check, choose, word and test them.

In reading order:

    plans.py        Plan and Plans, the result that people see
    letter.py       what a letter to a person says
    letter_form.py  Letter: text and page, filled from a template
    letters/        the templates, one file per language
    placeholders.py  the placeholders of a sentence
    guarantee.py    check every candidate and choose the plans to show
    enumeration.py  try all changes of one and of two features
    diversity.py    choose plans that change different features
    promise.py      test whether enough plans lead to a favourable outcome
    juries.py       the statistical test behind a promise
    binomial.py     exact confidence limits of a share
    robustness.py   test plans against retrained models and imprecise execution
    round_numbers.py  what a plan is in round numbers
    rounding.py     round the numbers of plans, and check the rounded plans
    planner.py      connect a fitted method with all of the above
    wording/        the sentences, one file per language
"""
