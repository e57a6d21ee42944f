"""Bad input of every class, each as a call that must end in a UserError of one sentence.

`python -m tests.hold.cases` counts the cases by class and writes counts.json.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from genrecourse import GenRe, NearestNeighbour, Policy, Schema, load
from genrecourse.advice.recheck import read_plans
from genrecourse.advice.rule_files import read_rules_file
from genrecourse.advice.service import Service
from genrecourse.errors import shown
from genrecourse.evaluation.checks import ODD_VALUES
from genrecourse.genre.model import NetConfig
from genrecourse.methods import METHODS
from genrecourse.methods.genre import Training
from genrecourse.model.artifact import JSON_NAME
from genrecourse.model.settings import allowed_in
from genrecourse.planning.plans import Plans
from genrecourse.planning.wording import Wording
from genrecourse.reports.plan_report import write_report
from genrecourse.table.formulas import parse_formula
from genrecourse.table.table_files import read_table
from genrecourse.table.text_files import write_text
from tests.hold.case import Case
from tests.hold.faults import faults

HUGE, LONG = 10**400, 10**5000  # too large for a float, and to be written out
NUL, HALF = "in\0come", "in\ud800come"
TABLE = pd.DataFrame({"income": np.arange(80.0), "debt": np.arange(80.0, 0, -1)})
OUTCOMES = TABLE["income"] >= 40
SCHEMA = Schema.infer(TABLE)


def score(X: pd.DataFrame) -> np.ndarray:
    """h of the small table."""
    return X["income"].to_numpy(dtype=float) / 80


def never(X: pd.DataFrame) -> np.ndarray:
    """An h that must not be asked: settings are looked at first."""
    raise AssertionError("h was asked before the settings were looked at")


class World:
    """Fitted methods, and a folder with good files to spoil."""

    def __init__(self, folder: Path):
        self.folder = folder
        plain = {"select": "paper", "refine": False, "clean": False, "temperature": 1.0}
        quick = {"training": Training(steps=2, batch_size=16), "net": NetConfig(8, 2, 8, 1, 1)}
        self.genre = GenRe(score, gamma=0.6, margin=0.5, **plain, **quick).fit(TABLE, OUTCOMES)
        self.nearest = NearestNeighbour(score).fit(TABLE, OUTCOMES)
        self.plan = self.nearest.plans(TABLE.head(1))[0]
        self.nearest.save(folder / "model")
        (folder / "file").write_text("text")


def every_case(folder: Path, n_broken: int = 400, seed: int = 0) -> list[Case]:
    """Return all cases. folder: empty, and may be written to.

    n_broken: how many files are broken at random; seed: of these.
    """
    world = World(folder)
    of_settings = (settings(), records(), stated(), unknown(world), options(world), sizes(world))
    of_files = (paths(world), texts(world), names(), rules())
    of_faults = faults(folder, n_broken, seed)
    return [case for part in (*of_settings, *of_files, of_faults) for case in part]


# ---- settings --------------------------------------------------------------------------------


def fit(maker: Callable[..., Any], params: dict[str, Any]) -> None:
    """Fit a method with an h that must not be asked."""
    maker(never).set_params(**params).fit(TABLE, OUTCOMES)


def settings() -> Iterator[Case]:
    """Every parameter of every method, with every odd value that it does not take."""
    for name, maker in ((name, METHODS[name]) for name in METHODS):
        allowed = allowed_in(getattr(maker, "func", maker))
        for each in maker().get_params(deep=False):
            for value in (value for value in ODD_VALUES if not allowed[each].has(value)):
                label = f"{name}({each}={shown(value)})"
                yield Case(
                    "settings", label, partial(fit, maker, {each: value}), (each, shown(value))
                )


def records() -> Iterator[Case]:
    """Every setting of every record of every method."""
    for name in ("genre", "revise", "tabsyn_q", "cchvae", "cruds", "tabsyn_svdd"):
        maker = METHODS[name]
        for param, kind in maker._records.items():
            for field, allowed in allowed_in(kind).items():
                for value in (value for value in ODD_VALUES if not allowed.has(value)):
                    made = replace(kind(), **{field: value})
                    said = (f"{param}.{field}", shown(value))
                    act = partial(fit, maker, {param: made})
                    yield Case("records", f"{name}({said[0]}={said[1]})", act, said)


def stated() -> Iterator[Case]:
    """What was accepted in silence, crashed inside or hung, written out: no constraint is asked."""
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("genre", {"temperature": 0}, "temperature is 0"),
        ("genre", {"temperature": float("nan")}, "temperature is nan"),
        ("genre", {"select": "zzz"}, "select is 'zzz'"),
        ("genre", {"select": "verifed"}, "did you mean 'verified'?"),
        ("genre", {"bins": None}, "bins is None"),
        ("genre", {"sigma": -1}, "sigma is -1"),
        ("genre", {"sources": "zzz"}, "sources is 'zzz'"),
        ("genre", {"training": Training(lr=0)}, "training.lr is 0"),
        ("genre", {"margin": 2}, "margin is 2"),
        ("genre", {"n_draws": 0}, "n_draws is 0"),
        ("genre", {"top_k": "x"}, "top_k is 'x'"),
        ("genre", {"random_state": -1}, "random_state is -1"),
        ("genre", {"net": 5}, "net is 5; it must be NetConfig(...) or None"),
        ("genre", {"net": {"width": 16}}, "net is {'width': 16}"),
        ("genre", {"net": NetConfig}, "net is <class"),
        ("genre", {"training": Training(batch_size=0)}, "training.batch_size is 0"),
        ("genre", {"training": Training(batch_size=-1)}, "training.batch_size is -1"),
        ("genre", {"training": Training(bounds=(5, 1))}, "training.bounds is (5, 1)"),
        ("genre", {"net": NetConfig(width=15, heads=2)}, "net.width is 15; it must be a multiple"),
        ("genre", {"net": NetConfig(width=10**9)}, "net.width is 1000000000"),
        ("genre", {"distill": True, "refine": False}, "distill=True needs"),
        ("genre", {"lam": "all"}, "lam is 'all'"),
        ("genre", {"lam": HUGE}, "lam is a whole number of 401 digits"),
        ("genre", {"n_bins": LONG}, "n_bins is a whole number of 5,001 digits"),
        ("genre", {"schema": "schema.json"}, "schema is 'schema.json'; it must be a Schema"),
        ("nnr", {"gamma": "automatic"}, "gamma is 'automatic'"),
        ("nnr", {"refine": "yes"}, "refine is 'yes'; it must be True or False"),
        ("nnr", {"classifier": 5}, "a int cannot score people"),
        ("revise-search", {"base": "revize"}, "base is 'revize' (did you mean 'revise'?)"),
        ("revise-search", {"base_params": {"lamm": 1}}, "did you mean 'lam'?"),
        ("revise-search", {"base_params": {"lam": -1}}, "base_params.lam is -1"),
        ("revise-search", {"base_params": {"vae": {"n_layers": 1}}}, "VAEConfig has no parameter"),
    ]
    for name, params, says in wrong:
        yield Case("stated", f"{name}({says})", partial(fit, METHODS[name], params), (says,))


def unknown(world: World) -> Iterator[Case]:
    """A letter is missing in the name of a parameter or an option: the close one is suggested."""
    for name in ("genre", "nnr", "dice", "tap", "tabsyn_q", "revise-search"):
        for known in METHODS[name]().get_params(deep=False):
            typo = known[:1] + known[2:]
            if len(typo) > 3:
                says = (typo, f"did you mean '{known}'?")
                yield Case("unknown", f"{name}({typo})", partial(METHODS[name], **{typo: 1}), says)
    for verb in ("recourse", "plans", "promise"):
        first = (0.5,) if verb == "promise" else (TABLE.head(2),)
        for known in ("temperature", "n_draws", "effort", "safety", "sigma"):
            typo = known[:1] + known[2:]
            says = (f"GenRe.{verb}", typo, f"did you mean '{known}'?")
            act = partial(getattr(world.genre, verb), *first, **{typo: 1})
            yield Case("unknown", f"{verb}({typo})", act, says)


# ---- requests --------------------------------------------------------------------------------


def options(world: World) -> Iterator[Case]:
    """Every option of every verb, with odd values that nobody can mean."""
    X, genre, nearest = TABLE.head(2), world.genre, world.nearest
    odd = [value for value in ODD_VALUES if not (value is None or value == 1)]
    asked = {
        "temperature": [value for value in odd if value not in (2, 0.5)],
        "sigma": [value for value in odd if value not in (0, 2, 0.5)],
        "n_draws": [value for value in odd if value != 2],
        "safety": [value for value in odd if value not in (0, 0.5)],
        "lam": odd,
        "effort": odd,
    }
    some = {name: asked[name] for name in ("temperature", "sigma", "lam")}
    calls: list[tuple[str, Callable[..., Any], dict[str, list[Any]]]] = [
        ("recourse", partial(genre.recourse, X), asked),
        ("plans", partial(genre.plans, X), asked),
        ("promise", partial(genre.promise, 0.5), asked),
        (
            "sample",
            partial(genre.sample, X),
            {k: asked[k] for k in ("temperature", "sigma", "lam")},
        ),
        ("sample", partial(genre.sample, X), {"n": [None, *asked["n_draws"]]}),
        ("draws", partial(genre.draws, X), some),
        ("draws", partial(genre.draws, X), {"n": asked["n_draws"]}),
        ("log_prob", partial(genre.log_prob, X, X), {"lam": odd}),
        ("plans", partial(nearest.plans, X), {"n": [None, *asked["n_draws"]]}),
        ("plans", partial(nearest.plans, X), {"most_changes": asked["n_draws"]}),
        ("plans", partial(nearest.plans, X), {"min_robust": [None, *asked["safety"]]}),
        ("plans", partial(nearest.plans, X), {"fewest_changes": [None, 0, *odd]}),
        ("plans", partial(nearest.plans, X), {"promise": [v for v in odd if v != 0.5]}),
        ("plans", partial(nearest.plans, X), {"delta": [None, *(v for v in odd if v != 0.5)]}),
        ("promise", partial(nearest.promise, 0.5), {"n": [None, *asked["n_draws"]]}),
        ("promise", nearest.promise, {"share": [None, *(v for v in odd if v != 0.5)]}),
    ]
    for verb, call, values in calls:
        for name, wrong in values.items():
            said = "promise" if name == "share" else name
            for value in wrong:
                says = (f".{verb}: {said} is {shown(value)}",)
                label = f"{verb}({name}={shown(value)})"
                yield Case("options", label, partial(call, **{name: value}), says)


def sizes(world: World) -> Iterator[Case]:
    """More than a machine can hold."""
    X, many = TABLE.head(2), pd.concat([TABLE] * 300)
    genre, nearest = world.genre, world.nearest
    asked: list[tuple[str, Callable[[], Any], str]] = [
        ("plans", partial(nearest.plans, X, n=10**9), "n is 1000000000"),
        ("plans", partial(nearest.plans, X, n=HUGE), "n is a whole number of 401 digits"),
        ("plans", partial(nearest.plans, many, n=100), "24,000 rows with 100 plans each"),
        ("plans", partial(genre.plans, X, n=101), "n is 101"),
        ("recourse", partial(genre.recourse, X, n_draws=10**9), "n_draws is 1000000000"),
        ("recourse", partial(genre.recourse, many, n_draws=10**5), "draws each are"),
        ("sample", partial(genre.sample, X, 10**9), "n is 1000000000"),
        ("sample", partial(genre.sample, many, 10**5), "24,000 rows with 100,000 draws each"),
        ("draws", partial(genre.draws, many, 10**5), "24,000 rows with 100,000 draws each"),
    ]
    for verb, act, says in asked:
        yield Case("sizes", f"{verb}: {says}", act, (says,))


# ---- files -----------------------------------------------------------------------------------


def paths(world: World) -> Iterator[Case]:
    """Every function that takes a path, with what is no path, and with paths that lead nowhere."""
    X, folder = TABLE.head(1), world.folder
    letter = world.plan.to_letter
    readers: dict[str, Callable[[Any], Any]] = {
        "Schema.load": Schema.load,
        "Policy.read": Policy.read,
        "load": partial(load, classifier=score),
        "load(policy)": lambda path: load(folder / "model", score, path),
        "read_rules_file": read_rules_file,
        "read_plans": read_plans,
        "read_table": read_table,
        "read_people": Service(world.nearest).read_people,
        "Wording.of": Wording.of,
        "language": lambda path: world.nearest.plans(X, language=path),
        "to_letter": lambda path: letter(path or "no such file"),  # "" means the language
    }
    plans = Plans((world.plan,))
    writers: dict[str, Callable[[Any], Any]] = {
        "save": world.nearest.save,
        "Schema.save": SCHEMA.save,
        "write_report": lambda path: write_report(path, world.nearest, X, plans=plans),
        "write_text": lambda path: write_text("text", path),
    }
    odd = (7, 0.5, True, [], ["a"], {}, b"a", object(), NUL, HALF, "x" * 5000, "a/" * 5000)
    nowhere = ("no such file", str(folder), str(folder / "file" / "below"))
    for name, act in (readers | writers).items():
        empty: tuple[Any, ...] = (None, "")
        if name == "load(policy)":
            empty = ("",)  # None means the policy in the file
        wrong = (*odd, *empty, *(nowhere if name in readers else nowhere[1:]))
        for value in wrong:
            yield Case("paths", f"{name}({shown(value)})", partial(act, value))


def texts(world: World) -> Iterator[Case]:
    """Files that are nested too deeply, hold too long numbers or are no text."""
    deep, digits = 100_000, "9" * 5000
    bad_json = {
        "deep list": "[" * deep + "]" * deep,
        "deep table": '{"a":' * deep + "1" + "}" * deep,
        "60 deep": "[" * 60 + "]" * 60,
        "open": "[" * deep,
        "digits": f'{{"features": {digits}}}',
        "nothing": "",
        "nul": '{"features": "\0"}',
        "number": "7",
        "list": "[7]",
    }
    bad_toml = {
        "deep list": "a = " + "[" * deep + "]" * deep,
        "deep table": "a = " + "{a = " * 2000 + "1" + "}" * 2000,
        "dotted": "a" + ".a" * 5000 + " = 1",
        "60 deep": "a = " + "[" * 60 + "]" * 60,
        "digits": f"a = {digits}",
        "nul": 'a = "\0"',
        "unknown": "no_such_key = 1",
    }
    json_readers: dict[str, Callable[[Path], Any]] = {
        "Schema.load": Schema.load,
        "read_rules_file": read_rules_file,
        "read_plans": read_plans,
    }
    toml_readers: dict[str, Callable[[Path], Any]] = {
        "Policy.read": Policy.read,
        "read_rules_file": read_rules_file,
        "Wording.of": Wording.of,
        "to_letter": world.plan.to_letter,
    }
    for ending, bad, readers in (
        (".json", bad_json, json_readers),
        (".toml", bad_toml, toml_readers),
    ):
        files = {label: text.encode() for label, text in bad.items()} | {"bytes": b"\xff\xfe\x00"}
        for label, content in files.items():
            path = world.folder / f"bad {label}{ending}"
            path.write_bytes(content)
            for name, read in readers.items():
                yield Case("texts", f"{name}: {label}", partial(read, path), (path.name,))
    for label, text in bad_json.items():
        model = world.folder / f"model {label}"
        model.mkdir(exist_ok=True)
        (model / JSON_NAME).write_text(text)
        yield Case("texts", f"load: {label}", partial(load, model, score))
    for text in (*bad_json.values(), '{"features": [{"name": "\\ud800", "kind": "number"}]}'):
        yield Case("texts", f"from_json({shown(text)})", partial(Schema.from_json, text))
        yield Case("texts", f"Plans.from_json({shown(text)})", partial(Plans.from_json, text))


# ---- names and rules -------------------------------------------------------------------------


def names() -> Iterator[Case]:
    """NUL and half characters, wherever a schema has a text."""
    for odd in (NUL, HALF, "\0", "\udfff"):
        says = (shown(odd),)
        for values in ([1.0, 2.0], ["a", "b"], [True, False]):
            table = pd.DataFrame({"a": values}).set_axis(pd.Index([odd], dtype=object), axis=1)
            yield Case("names", f"infer({shown(odd)})", partial(Schema.infer, table), says)
        labelled = pd.DataFrame({"a": pd.Series([odd, "b"], dtype=object)})
        yield Case("names", f"level {shown(odd)}", partial(Schema.infer, labelled), says)
        for field in ("name", "unit", "wording", "categories", "one_hot"):
            text = [odd, "b"] if field in ("categories", "one_hot") else odd
            act = partial(
                Schema.from_json,
                json.dumps({"features": [{"name": "a", "kind": "number", field: text}]}),
            )
            yield Case("names", f"{field}={shown(odd)}", act, says)
        for wrong in (
            {"lock": [odd]},
            {"ranges": {odd: [0, 1]}},
            {"relations": [f"{odd} <= 5"]},
            {odd: 1},
        ):
            method = NearestNeighbour(score).fit(TABLE, OUTCOMES)
            act = partial(method.plans, TABLE.head(1), rules=wrong)
            yield Case("names", f"rules={shown(wrong)}", act)


def rules() -> Iterator[Case]:
    """Numbers that are too large, and relations and formulas that are nested or too long."""
    method = NearestNeighbour(score).fit(TABLE, OUTCOMES)
    plans = partial(method.plans, TABLE.head(1))
    for value in (HUGE, LONG, -HUGE, float("nan"), float("inf"), "x", None, [], {}):
        fields = ("decimals", "max_step", "min_step", "cost_weight", "horizon", "range")
        for field in fields:
            if (value is None and field != "cost_weight") or (field, value) == ("max_step", np.inf):
                continue  # no limit
            act = partial(SCHEMA.with_feature, "income", **{field: value})
            yield Case("rules", f"{field}={shown(value)}", act, (field,))
        if value is not None:
            for rule in ("max_changes", "max_cost", "ranges", "max_step", "allowed", "lock"):
                yield from _rule(plans, rule, value)
            for key in ("cutoff", "promise", "score_range"):
                act = partial(Policy.of, decision={key: value})
                yield Case("rules", f"decision.{key}={shown(value)}", act, (key,))
    deep = 100_000
    written = {
        "brackets": "(" * deep + "income < 5" + ")" * deep,
        "25 brackets": "(" * 25 + "income < 5" + ")" * 25,
        "nots": "not " * deep + "income < 5",
        "25 nots": "not " * 25 + "income < 5",
        "long": " or ".join(["income < 5"] * 2000),
        "digits": "income < 1" + "0" * 5000,
        "open": "(" * 2000,
        "quote": "'" + "x" * 9000,
        "nul": "income\0 < 5",
    }
    for label, text in written.items():
        yield Case("rules", f"relation: {label}", partial(plans, rules={"relations": [text]}))
        yield Case("rules", f"kept relation: {label}", partial(fit_keeping, text))
    for label, text in {**written, "fraction": "debt / " + "(" * 250}.items():
        yield Case("rules", f"formula: {label}", partial(parse_formula, text))
    for odd in (5, None, [], {"a": 1}, "x" * 20_000):
        act = partial(plans, rules={"relations": [odd]})
        yield Case("rules", f"relation {shown(odd)}", act)


def fit_keeping(relation: str) -> None:
    """Fit a method on a schema with a relation."""
    NearestNeighbour(score, SCHEMA.with_relations([relation])).fit(TABLE, OUTCOMES)


def _rule(plans: Callable[..., Any], rule: str, value: Any) -> Iterator[Case]:
    if isinstance(value, list | dict) and not value and rule not in ("max_changes", "max_cost"):
        return  # empty: no rule
    if value == np.inf and rule in ("max_cost", "max_step", "ranges"):
        return  # no limit, or nothing that is allowed
    stated = {
        "ranges": {"income": [value, value]},
        "max_step": {"income": value},
        "allowed": {"income": [value]},
    }.get(rule, value)
    yield Case("rules", f"rules.{rule}={shown(value)}", partial(plans, rules={rule: stated}))


# ---- counts ----------------------------------------------------------------------------------

COUNTS = Path(__file__).with_name("counts.json")


def counted(cases: list[Case]) -> dict[str, int]:
    """Return how many cases each class has."""
    return dict(sorted(Counter(case.kind for case in cases).items()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        text = json.dumps(counted(every_case(Path(place))), indent=2)
    COUNTS.write_text(text + "\n")
    sys.stdout.write(text + "\n")
