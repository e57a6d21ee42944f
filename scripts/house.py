"""The floor plan in numbers: `python scripts/house.py`; `--check` fails if a limit is broken.

Prints the modules in the root, the sub-packages and their layers, the longest import chain, the
functions that take a foreign method, private accesses across files, the methods of `Method`, and
what one traced call of `recourse` and `plans` walks through, before the restructuring and now.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "genrecourse"
BEFORE = json.loads((ROOT / "scripts" / "house_before.json").read_text())
LIMITS = {
    "modules in the root": 8,
    "longest import chain": 15,
    "functions that take a foreign method": 0,
    "private accesses across files": 0,
    "methods of Method": 22,  # four of them are Python's: new, copy and pickle
}
# public verbs of the library, whose first argument is a method by design
VERBS = {"audit", "evaluate", "reasons", "report_html", "write_report", "check_method"}
# the contract that a method must pass: its subject is a method, by design
CONTRACT = PACKAGE / "evaluation" / "checks.py"


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def layers() -> list[str]:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    return list(tools["importlinter"]["contracts"][0]["layers"])


# ---- imports ------------------------------------------------------------------------------------


def longest_chain() -> list[str]:
    """Return the longest path of imports between modules of the package."""
    import grimp

    graph = grimp.build_graph("genrecourse", exclude_type_checking_imports=True)
    found: dict[str, list[str]] = {}

    def longest(module: str, above: tuple[str, ...]) -> list[str]:
        if module in above:
            raise SystemExit(f"imports go in a circle: {' > '.join((*above, module))}")
        if module not in found:
            below = graph.find_modules_directly_imported_by(module)
            chains = [longest(each, (*above, module)) for each in sorted(below)]
            found[module] = [module, *max(chains, key=len, default=[])]
        return found[module]

    return max((longest(module, ()) for module in sorted(graph.modules)), key=len)


# ---- who reaches into whom ----------------------------------------------------------------------


def method_classes() -> set[str]:
    """Return the names of `Method` and of all classes that derive from it."""
    known, grown = {"Method"}, True
    classes = [
        n for tree in trees().values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)
    ]
    while grown:
        more = {c.name for c in classes if {ast.unparse(b) for b in c.bases} & known}
        grown = not more <= known
        known |= more
    return known


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def foreign_methods() -> list[str]:
    """Return functions with a parameter that is a method, outside the file of the class."""
    kinds, found = method_classes(), []
    for path, tree in trees().items():
        if path == CONTRACT:
            continue
        own = {n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
        for function in functions(tree):
            for arg in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]:
                said = "" if arg.annotation is None else ast.unparse(arg.annotation)
                names = set(said.replace("|", " ").replace("[", " ").split())
                is_method = bool(names & (kinds - own)) or (arg.arg == "method" and said == "Any")
                if is_method and function.name not in VERBS and arg.arg not in ("self", "cls"):
                    found.append(f"{path.relative_to(PACKAGE)}:{function.lineno} {function.name}")
    return found


def private_accesses() -> list[str]:
    """Return attribute accesses x._name where the file itself defines no `_name`."""
    found = []
    for path, tree in trees().items():
        own = _own_privates(tree)
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Attribute) and node.attr.startswith("_")):
                continue
            if node.attr.startswith("__") or node.attr in own:
                continue
            holder = ast.unparse(node.value)
            if holder in ("self", "cls", "super()") or holder.startswith(("sys", "os", "torch")):
                continue
            found.append(f"{path.relative_to(PACKAGE)}:{node.lineno} {holder}.{node.attr}")
    return found


def _own_privates(tree: ast.Module) -> set[str]:
    """Return the private names that a file defines: functions, classes, and attributes of self."""
    names = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Attribute):
                    names.add(each.attr)
                elif isinstance(each, ast.Name):
                    names.add(each.id)
    return names


def methods_of_method() -> list[str]:
    """Return what `Method` defines, and what it inherits from the library's own classes."""
    from genrecourse.methods.base import Method

    kinds = [k for k in Method.__mro__ if k.__module__.startswith("genrecourse")]
    names = {
        name
        for kind in kinds
        for name, value in vars(kind).items()
        if callable(value) or isinstance(value, property | classmethod | staticmethod)
    }
    return sorted(names - {"__init_subclass__", "__subclasshook__"})


# ---- one call -----------------------------------------------------------------------------------


def traced_calls() -> dict[str, dict[str, int]]:
    """Trace `recourse` and `plans(n=3)` for twelve German applicants."""
    from genrecourse import Classifier, GenRe, load_dataset
    from genrecourse.genre.fit import Training

    data = load_dataset("german")
    training = Training(steps=40, batch_size=64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = GenRe(Classifier(favourable=1), data.schema, training=training)
        method.fit(data.X_train, data.y_train)
    people = data.X_test[~method.classifier_.accepts(data.X_test)].head(12)
    return {
        "recourse": trace(lambda: method.recourse(people)),
        "plans": trace(lambda: method.plans(people, n=3)),
    }


def trace(call: Callable[[], Any]) -> dict[str, int]:
    """Return the modules that a call walks through, its crossings, and what it converts."""
    modules: set[str] = set()
    count: Counter[str] = Counter()

    def watch(frame: Any, event: str, _: Any) -> None:
        here = frame.f_globals.get("__name__", "")
        if event != "call" or not here.startswith("genrecourse"):
            return
        modules.add(here)
        back = frame.f_back.f_globals.get("__name__", "") if frame.f_back else ""
        count["crossings"] += back.startswith("genrecourse") and back != here
        count[frame.f_code.co_qualname] += 1

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {
        "modules": len(modules),
        "crossings": count["crossings"],
        "to_features": count["TableEncoder.to_features"],
        "from_features": count["TableEncoder.from_features"],
        "features": count["TableEncoder.features"],
        "table_checks": count["TableEncoder.check"],
        "cost_built": count["Cost.__init__"],
    }


# ---- the page -----------------------------------------------------------------------------------


def measured() -> dict[str, list[str]]:
    return {
        "modules in the root": sorted(path.name for path in PACKAGE.glob("*.py")),
        "longest import chain": longest_chain(),
        "functions that take a foreign method": foreign_methods(),
        "private accesses across files": private_accesses(),
        "methods of Method": methods_of_method(),
    }


def broken(found: dict[str, list[str]]) -> list[str]:
    """Return a sentence for each limit that is broken."""
    return [
        f"{name}: {len(found[name])}, at most {limit}: {', '.join(found[name][:20])}"
        for name, limit in LIMITS.items()
        if len(found[name]) > limit
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check the limits")
    options = parser.parse_args()
    found = measured()
    if not options.check:
        print("layers, from top to bottom:")
        for name in layers():
            path = PACKAGE / name
            n = len(list(path.rglob("*.py"))) if path.is_dir() else 1
            print(f"  {name:<12} {n:>3} modules")
        for name, items in found.items():
            was = BEFORE["counts"].get(name, "not counted")
            print(f"{name}: {len(items)} (at most {LIMITS[name]}; before: {was})")
        chain = [each.removeprefix("genrecourse.") for each in found["longest import chain"]]
        print(f"  chain: {' > '.join(chain)}")
        calls = traced_calls()
        for verb, numbers in calls.items():
            print(f"{verb} of 12 people, now (before):")
            for name, number in numbers.items():
                print(f"  {name}: {number} ({BEFORE['traced'][verb][name]})")
    wrong = broken(found)
    for sentence in wrong:
        print(f"broken: {sentence}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
