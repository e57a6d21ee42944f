"""The generated parts of the pages: one function per block, from the results of one scale."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from paper import agreement, claims, pinned, status, tables, targets, training
from paper.records import Results, read_lines
from paper.runs import COMPARED, Scale, economies, people_and_seeds, read

Block = Callable[[], str]  # returns the Markdown of one generated part
# table of published.csv -> (the block that shows it, its name in words)
DIFFERENCES = {
    "main_std": ("table1", "Table 1"),
    "nnr_lambda_std": ("nnr_lambda", "nearest neighbours and lambda"),
    "tabsyn_std": ("tabsyn", "diffusion"),
    "temperature_sigma_std": ("temperature", "temperature and sigma"),
    "data_fraction_std": ("fraction", "share of the data"),
}
OTHERS = {"German credit": "german", "made loans, validity exact": "loan"}
# block -> the picture that follows it
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
# block -> the table or figure of the configs whose people and seeds it states
PLANNED = {
    "table1": "table1",
    "nnr": "nnr",
    "nnr_lambda": "nnr",
    "tabsyn": "tabsyn",
    "temperature": "temperature",
    "fraction": "fraction",
    "lambda": "lambda",
    "robustness": "robustness",
    "others": "others",
    "ablation": "ablation",
    "safety": "safety",
    "preset": "preset",
}


class Report:
    """Every generated part of the pages, from the results of one scale."""

    def __init__(self, size: Scale):
        self.size = size
        self.main, self.settings = self.results("baselines", "main"), self.results("settings")
        self.others, self.preset = self.results("others"), self.results("preset")
        self.cases = [line for path in size.all_compared("cases") for line in read_lines(path)]
        self.theory = read_lines(size.file("theory"))
        self.pinned = [line for path in size.all_compared("pinned") for line in read_lines(path)]
        self.arrows = read_lines(size.file("arrows"))
        self.contours = read_lines(size.file("contours"))

    def results(self, *configs: str) -> Results:
        """Return the result lines of these configs, on every data set."""
        return Results.read(
            *(path for config in configs for path in self.size.all_compared(config))
        )

    def blocks(self) -> dict[str, Block]:
        """Return the block of each name: a table, who was asked, and its picture if it exists."""
        made = {**self._summary(), **self._tables(), **self._differences()}
        return {name: partial(self._whole, name, make) for name, make in made.items()}

    def _whole(self, name: str, make: Block) -> str:
        parts = [make()]
        if name in PLANNED:
            parts.append(f"People:\n\n{people_and_seeds(self.size, PLANNED[name])}")
        file = PICTURES.get(name)
        if file is not None and (self.size.images / file).is_file():
            parts.append(f"![{name}](../images/{file})")
        return "\n\n".join(parts)

    # ---- README.md ------------------------------------------------------------------------------

    def _summary(self) -> dict[str, Block]:
        return {
            "headline": lambda: tables.headline(self.main, with_reproduction=True),
            "holds": partial(self._verdicts, "holds", True),
            "fails": partial(self._verdicts, "does not hold", False),
            "unclear": partial(self._verdicts, "cannot tell", None),
            "unknown": partial(self._verdicts, "no results", None),
            "differences": self._counts,
            "scale": self.scale,
        }

    def _verdicts(self, outcome: claims.Outcome, met: bool | None) -> str:
        """Return the paper's claims with this outcome, then the targets of `genre`."""
        seen = claims.Evidence(self.main, self.settings, self.theory, self.contours, self.pinned)
        items = claims.listed(seen, outcome)
        if met is not None:
            items += targets.listed(self.main, met=met)
        return "\n".join(items) or "- Nothing."

    def _counts(self) -> str:
        """Return one line per table: how many published values are equal to ours, or differ."""
        return "\n".join(
            f"- [{words[0].upper()}{words[1:]}](pages/{page}.md): "
            + agreement.counted(agreement.comparisons(table, self._answers(table)))
            for table, (page, words) in DIFFERENCES.items()
        )

    def scale(self) -> str:
        """Return how many runs exist, with which seeds and people, and which runs failed."""
        items = [f"- {status.summary(self.size)}"]
        files = {name: self.results(name) for name in COMPARED}
        items += [f"- `results/{name}/`: {it.facts()}." for name, it in files.items() if it]
        for line in (line for found in files.values() for line in found.failed):
            where = f"`{line['label']}` on {line['dataset']}, seed {line['seed']}"
            items.append(f"- {where} **failed**: {line['failed']}")
        items += [f"- Economy of a quick run: {what}." for what in economies(self.size)]
        return "\n".join(items)

    # ---- pages/ ---------------------------------------------------------------------------------

    def _tables(self) -> dict[str, Block]:
        return {
            "data": lambda: tables.data(self.cases),
            "gold": lambda: tables.gold(self.cases),
            "h": lambda: tables.classifier_h(self.cases),
            "table1": self._table_1,
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
            "status": lambda: tables.markdown(status.HEAD, status.table(self.size)),
        }

    def _differences(self) -> dict[str, Block]:
        return {
            f"{page}_differences": partial(self._listed, table)
            for table, (page, _) in DIFFERENCES.items()
        }

    def _listed(self, table: str) -> str:
        return agreement.listed(agreement.comparisons(table, self._answers(table)))

    def _beside(self, table: str, show_sd: bool = True) -> str:
        return tables.beside_published(table, self._answers(table), show_sd)

    def _table_1(self) -> str:
        """Return Table 1, and which of its baselines train for less than published."""
        less = training.shorter(self.size)
        note = f"\n\nTrained for less than published (`paper/configs/baselines.toml`):\n\n{less}"
        return self._beside("main_std") + (note if less else "")

    def _answers(self, table: str) -> Results:
        return self.results(*tables.BESIDE[table][1])

    def on_others(self) -> str:
        """Return the robustness table of German credit and of the made loans."""
        found = {
            words: targets.better_than_the_best_other(self.others, name).words
            for words, name in OTHERS.items()
        }
        known = [f"{words}: {difference}" for words, difference in found.items() if difference]
        paired = (
            "\n\nScore of `genre` minus the Score of the best other method, on the same people: "
            f"{'; '.join(known)}."
        )
        return tables.robustness(self.others, OTHERS) + (paired if known else "")

    def plane(self) -> str:
        """Return the metrics of each method on each 2-D set."""
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
        """Return how much mass of each density is valid and plausible, and what a draw costs."""
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
