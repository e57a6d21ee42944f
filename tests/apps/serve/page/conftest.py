"""A real browser before a real server: Chromium, headless, and uvicorn on a free port.

Where there is no Chromium, the tests that need one are skipped, and say so.
"""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import Classifier, NearestNeighbour, Schema
from genrecourse.advice.service import Service
from genrecourse.data.datasets import EMBEDDED
from genrecourse.table.schema import Feature

pytest.importorskip("fastapi", reason="the page needs genrecourse[serve]")

from genrecourse.apps.serve.settings import Settings
from tests.apps.serve.serving import Served

AXE = Path(__file__).resolve().parents[1] / "vendor" / "axe.min.js"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EFFORT = """
[effort]
together = "side by side"
currency = "DM"

[effort.changes]
credit_amount = { months = 0, price = 0 }
duration = { months = 0, price = 0 }
savings = { up = { each = 1, months = 4, price = 400 } }
checking_account = { up = { each = 1, months = 2, price = 150 } }
other_debtors = { months = 1, price = 50 }
instalment_rate = { up = { each = 1, months = 3, price = 0 } }
existing_credits = { down = { each = 1, months = 6, price = 900 } }
other_instalments = { months = 8, price = 600 }
"""


# ---- models -----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def german(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Service:
    """GenRe on German credit, under its policy and with the money that changes take, too."""
    assert service.policy is not None
    file = tmp_path_factory.mktemp("policy") / "german.toml"
    text = (EMBEDDED / "german.toml").read_text("utf-8")
    file.write_text(text.partition("[effort]")[0] + EFFORT, "utf-8")
    return service.under(file)


@pytest.fixture(scope="session")
def strict(german: Service) -> Service:
    """The same model under a policy that leaves most people without a plan."""
    policy = german.policy
    assert policy is not None
    rules = policy.stated.rules
    stated = policy.stated.model_copy(
        update={
            "rules": rules.model_copy(update={"lock": (*rules.lock, "savings"), "max_changes": 1})
        }
    )
    return german.under(replace(policy, stated=stated))


EVIL = "<script>window.stolen = 1</script>"
QUOTE = """"'><img src=x onerror="window.stolen = 2">&amp;"""


@pytest.fixture(scope="session")
def hostile() -> Service:
    """A model whose columns and levels try to be HTML, with every kind of feature."""
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame(
        {
            EVIL: rng.integers(-20, 100, n).astype(float),
            QUOTE: rng.choice(["</option></select>" + EVIL, QUOTE, "plain"], n),
            "javascript:alert(1)": rng.choice([True, False], n),
            "a": (one := rng.integers(0, 2, n)),
            "b": 1 - one,
            "share": np.where(rng.random(n) < 0.2, np.nan, rng.random(n).round(3)),
            "left": rng.choice(["x", "y"], n),
        }
    )
    X.loc[rng.random(n) < 0.2, "left"] = None
    X["twice"] = 2 * X["share"]
    levels = tuple(sorted(X[QUOTE].unique()))
    schema = Schema(
        features=(
            Feature(name=EVIL, kind="number", decimals=0, unit=QUOTE, wording=EVIL),
            Feature(name=QUOTE, kind="category", categories=levels, ordered=True, unit=EVIL),
            Feature(name="javascript:alert(1)", kind="category", categories=(False, True)),
            Feature(
                name="{{ 7 * 7 }}", kind="category", categories=("a", EVIL), one_hot=("a", "b")
            ),
            Feature(name="share", kind="number", decimals=3, missing=True, unit="%"),
            Feature(
                name="left", kind="category", categories=("x", "y"), missing=True, role="immutable"
            ),
            Feature(name="twice", kind="number", role="derived", formula="2 * share", missing=True),
        )
    )

    def h(X: pd.DataFrame) -> np.ndarray:
        total = 0.4 * X[EVIL].to_numpy(dtype=float) / 100 + 0.25 * (X[QUOTE] == "plain")
        total += 0.15 * X["javascript:alert(1)"].astype(float) + 0.15 * X["b"]
        total += 0.05 * (X["left"] == "x")
        return np.asarray(np.clip(total + 0.2 * X["share"].fillna(0), 0, 1))

    method = NearestNeighbour(Classifier(h, cutoff=0.6), schema, gamma="auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Service(method.fit(X, (h(X) > 0.6).astype(int)))


# ---- the server -------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def german_url(german: Service) -> Iterator[str]:
    with Served(german, Settings(port=0)) as running:
        yield f"{running.url}/"


@pytest.fixture(scope="session")
def strict_url(strict: Service) -> Iterator[str]:
    with Served(strict, Settings(port=0)) as running:
        yield f"{running.url}/"


@pytest.fixture(scope="session")
def hostile_url(hostile: Service) -> Iterator[str]:
    with Served(hostile, Settings(port=0)) as running:
        yield f"{running.url}/"


# ---- the browser ------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    sync = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("there is no Chromium on this machine")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Tab:
    """One page of the browser, and all that it asked for and complained about."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)

    def hosts(self) -> set[str]:
        return {address.split("/")[2] for address in self.requests if address.startswith("http")}

    # ---- what people do on the page -------------------------------------------------------------

    def ask_about_example(self, url: str, number: int = 0) -> None:
        """Load an example and ask for its plans."""
        self.page.goto(f"{url}?example={number}")
        self.page.click("#go")
        self.page.wait_for_selector("#plans-title")

    def answered(self, act: Callable[[], Any]) -> None:
        """Do something, and wait for the answer of the server to be shown."""
        with self.page.expect_response("**/answer"):
            act()
        self.page.wait_for_selector("#plans-slot:not([aria-busy])", state="attached")

    def answer_to(self, label: str) -> Any:
        """Return the field of the form with this label."""
        name = re.compile(f"^{re.escape(label)}( in |$)")
        return self.page.locator("#you").get_by_label(name)

    def told(self, text: str) -> None:
        """Wait until a screen reader is told this."""
        self.page.locator("#said").get_by_text(text, exact=True).wait_for(state="attached")

    def cards(self) -> list[dict[str, str]]:
        """Return what each card on the page changes to, by the name of the feature."""
        return self.page.eval_on_selector_all(
            ".plans .card",
            """cards => cards.map(card => Object.fromEntries(
                [...card.querySelectorAll('.changes li')].map(
                    line => [line.querySelector('.what').textContent,
                             line.querySelector('.after').textContent])))""",
        )

    def violations(self) -> list[str]:
        """Return the serious and critical violations that axe finds in the page as it is."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {node['html'][:200]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]

    def is_too_wide(self) -> bool:
        """Whether the page must be scrolled sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


@pytest.fixture
def open_tab(chromium: Any) -> Iterator[Callable[..., Tab]]:
    """Open pages. At the end: nothing went to another host, and nothing was complained about."""
    contexts, tabs = [], []

    def opened(**options: Any) -> Tab:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        context = chromium.new_context(**options)
        context.set_default_timeout(10_000)
        contexts.append(context)
        tab = Tab(context.new_page())

        def watched(page: Any) -> None:
            page.on("pageerror", lambda error: tab.complaints.append(str(error)))
            page.on("console", lambda said: _note(tab, said))

        context.on("request", lambda request: tab.requests.append(request.url))
        context.on("page", watched)
        watched(tab.page)
        tabs.append(tab)
        return tab

    yield opened
    complaints = [each for tab in tabs for each in tab.complaints]
    hosts = set().union(*(tab.hosts() for tab in tabs)) if tabs else set()
    for context in contexts:
        context.close()
    assert not complaints
    assert {host.split(":")[0] for host in hosts} <= {"127.0.0.1"}


def _note(tab: Tab, said: Any) -> None:
    expected = "the server responded with a status of"  # 422 for a form with mistakes
    if said.type in ("error", "warning") and expected not in said.text:
        tab.complaints.append(said.text)


@pytest.fixture
def tab(open_tab: Callable[..., Tab]) -> Tab:
    return open_tab()
