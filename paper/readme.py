"""paper/README.md: every number between its marks is written from the results files.

python paper/write_readme.py           # rewrites the marked parts
python paper/write_readme.py --check   # fails if they do not agree with the results
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from functools import partial

from paper import honesty, pinned, tables, targets
from paper.records import Results, read_lines
from paper.runs import COMPARED, HERE, Scale, economies, read, scale

README = HERE / "README.md"
BLOCK = re.compile(r"<!-- (\w+): written by a command -->\n.*?<!-- /\1 -->", re.S)
TABLE_WORDS = {
    "main_std": "Table 1",
    "nnr_lambda_std": "nearest neighbours and lambda",
    "tabsyn_std": "diffusion",
    "temperature_sigma_std": "temperature and sigma",
    "data_fraction_std": "share of the data",
}
OTHERS = {"German credit": "german", "made loans, validity exact": "loan"}
# the block under which a picture stands
PICTURES = {
    "h": "classifiers.png",
    "table1": "table1.png",
    "nnr_lambda": "nnr.png",
    "temperature": "temperature.png",
    "fraction": "fraction.png",
    "lambda": "lambda.png",
    "arrows": "arrows.png",
    "contours": "contours.png",
    "theory": "theory.png",
    "robustness": "robustness.png",
    "ablation": "ablation.png",
    "safety": "safety.png",
}


class Report:
    """Every generated part of the page, from the results of one scale."""

    def __init__(self, size: Scale):
        self.size = size
        self.main, self.settings = self.results("baselines", "main"), self.results("settings")
        self.others, self.preset = self.results("others"), self.results("preset")
        self.cases = [line for path in size.all_compared("cases") for line in read_lines(path)]
        self.theory = read_lines(size.file("theory"))
        self.pinned = read_lines(size.file("pinned"))
        self.arrows = read_lines(size.file("arrows"))
        self.contours = read_lines(size.file("contours"))

    def results(self, *configs: str) -> Results:
        return Results.read(
            *(path for config in configs for path in self.size.all_compared(config))
        )

    def blocks(self) -> dict[str, Callable[[], str]]:
        """Name -> what stands between its marks: a table, and its picture where there is one."""
        return {
            name: partial(self._with_picture, name, make) for name, make in self._made().items()
        }

    def _with_picture(self, name: str, make: Callable[[], str]) -> str:
        file = PICTURES.get(name)
        if file is None or not (self.size.images / file).is_file():
            return make()
        return f"{make()}\n\n![{name}](images/{file})"

    def _made(self) -> dict[str, Callable[[], str]]:
        return {
            "scale": self.scale,
            "data": lambda: tables.data(self.cases),
            "gold": lambda: tables.gold(self.cases),
            "h": lambda: tables.classifier_h(self.cases),
            "table1": lambda: self._beside("main_std"),
            "nnr": lambda: self._beside("nnr", show_sd=False),
            "nnr_lambda": lambda: self._beside("nnr_lambda_std"),
            "tabsyn": lambda: self._beside("tabsyn_std"),
            "pinned": lambda: pinned.in_words(self.pinned),
            "temperature": lambda: self._beside("temperature_sigma_std"),
            "fraction": lambda: self._beside("data_fraction_std"),
            "lambda": lambda: tables.lambdas(self.settings),
            "arrows": self.plane,
            "contours": self.densities,
            "theory": lambda: tables.theorems(self.theory),
            "targets": lambda: targets.table(self.main),
            "robustness": lambda: tables.robustness(self.main),
            "paired": lambda: tables.paired(self.main),
            "witnesses": lambda: tables.witnesses(self.main),
            "others": self.on_others,
            "ablation": lambda: tables.ablation(self.main),
            "safety": lambda: tables.safety(self.main, read("main")["safety"]["curves"]),
            "preset": lambda: tables.preset(self.preset),
            "differences": self.differences,
            "claims": self.claims,
        }

    def _beside(self, table: str, show_sd: bool = True) -> str:
        return tables.beside_published(table, self._answers(table), show_sd)

    def _answers(self, table: str) -> Results:
        return self.results(*tables.BESIDE[table][1])

    def scale(self) -> str:
        if not self.main and not self.settings:
            return "Nothing has been run yet: `make paper`."
        files = {name: self.results(name) for name in COMPARED}
        said = [f"- `results/{name}/`: {x.facts()}." for name, x in files.items() if x]
        for line in (line for found in files.values() for line in found.failed):
            where = f"`{line['label']}` on {line['dataset']}, seed {line['seed']}"
            said.append(f"- {where} **failed**: {line['failed']}")
        said += [f"- Economy of a quick run: {what}." for what in economies(self.size)]
        return "\n".join(said)

    def differences(self) -> str:
        return "\n\n".join(
            f"**{words}.** {honesty.listed(table, self._answers(table))}"
            for table, words in TABLE_WORDS.items()
        )

    def claims(self) -> str:
        return honesty.claims(
            honesty.Evidence(self.main, self.settings, self.theory, self.contours)
        )

    def on_others(self) -> str:
        found = {
            words: targets.better_than_the_best_other(self.others, name).words
            for words, name in OTHERS.items()
        }
        said = [f"{words}: {difference}" for words, difference in found.items() if difference]
        paired = (
            f"\n\nScore of `genre` less that of the best other method, paired: {'; '.join(said)}."
        )
        return tables.robustness(self.others, OTHERS) + (paired if said else "")

    def plane(self) -> str:
        rows = [
            [
                f"`{line['method']}`",
                line["dataset"],
                *(f"{line['metrics'][m]:.3f}" for m in ("cost", "val", "lof", "score")),
                str(line["n"]),
            ]
            for line in self.arrows
        ]
        if not rows:
            return "The 2-D sets: not run."
        return tables.markdown(["", "", "cost", "val", "lof", "score", "people"], rows, left=2)

    def densities(self) -> str:
        rows = [
            [
                line["dataset"],
                line["density"],
                *(f"{line[m]:.3f}" for m in ("val", "lof", "cost")),
                str(line["n"]),
            ]
            for line in self.contours
        ]
        if not rows:
            return "The densities: not run."
        head = ["", "density", "mass that is valid", "mass that is plausible", "expected cost"]
        return tables.markdown([*head, "people"], rows, left=2)


def filled(text: str, blocks: dict[str, Callable[[], str]]) -> str:
    """The page with what stands between each pair of marks replaced."""
    present = re.findall(r"<!-- (\w+): written by a command -->", text)
    if sorted(present) != sorted(blocks):
        odd = sorted(set(present) ^ set(blocks)) or "one of them twice"
        sys.exit(f"README.md and the generated parts do not match: {odd}")

    def content(match: re.Match[str]) -> str:
        name = match[1]
        start, end = f"<!-- {name}: written by a command -->", f"<!-- /{name} -->"
        return f"{start}\n\n{blocks[name]()}\n\n{end}"

    return BLOCK.sub(content, text)


def write(size: Scale) -> None:
    """The page itself, or a copy of it beside the results of a quick run."""
    page = filled(README.read_text(encoding="utf-8"), Report(size).blocks())
    target = size.results / "README.md" if size.is_quick else README
    target.write_text(page, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write paper/README.md from paper/results/.")
    parser.add_argument("--check", action="store_true", help="only see whether it agrees")
    options = parser.parse_args()
    if not options.check:
        write(scale("full"))
        return
    now = README.read_text(encoding="utf-8")
    if filled(now, Report(scale("full")).blocks()) != now:
        sys.exit("paper/README.md does not agree with the results: run paper/write_readme.py")
