"""Plans and audits as files, by the ending of the file's name (`outputs` checks it before)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from genrecourse.table.table_files import write_table
from genrecourse.table.text_files import write_text

if TYPE_CHECKING:
    from genrecourse.advice.reasons import Reasons
    from genrecourse.advice.request import PlanRequest
    from genrecourse.advice.service import Service
    from genrecourse.auditing import Audit
    from genrecourse.planning.letter_form import Letter
    from genrecourse.planning.plans import Plans


def write_reasons(path: Path, reasons: Reasons) -> None:
    """Write reasons: .json with all numbers, .html as a page of its own, or .txt.

    >>> import tempfile
    >>> from genrecourse.advice.reasons import Reasons
    >>> made = Reasons("Ada", 0.3, 0.5, 0.6, 0.6, (), scale="score", others=80, asked=640)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_reasons(Path(folder, "reasons.txt"), made)
    ...     Path(folder, "reasons.txt").read_text().splitlines()[0]
    'Ada: What mattered for this score'
    """
    kind = path.suffix.lower()
    if kind == ".json":
        write_text(reasons.to_json() + "\n", path)
    elif kind == ".html":
        from genrecourse.reports.html import document  # brings matplotlib: slow to import

        words = reasons.language
        write_text(document(words("why.title"), [reasons.to_html()], words("code")), path)
    else:
        write_text(reasons.to_text() + "\n", path)


def write_letter(path: Path, letter: Letter) -> None:
    """Write a letter: a .html to print or to show, or a .txt.

    >>> import tempfile
    >>> from genrecourse.planning.letter_form import Block, Letter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_letter(Path(folder, "letter.txt"), Letter((Block("text", "Hello"),)))
    ...     Path(folder, "letter.txt").read_text().strip()
    'Hello'
    """
    is_page = path.suffix.lower() == ".html"
    write_text(letter.to_html() if is_page else letter.to_text() + "\n", path)


def write_plans(
    path: Path,
    service: Service,
    X: pd.DataFrame,
    plans: Plans,
    request: PlanRequest,
    *,
    safe_cells: bool = False,
) -> None:
    """Write plans: a .html to read, a .json with everything, or a table with one line each.

    safe_cells: as in `write_table`.

    >>> import tempfile
    >>> from genrecourse import NearestNeighbour, Schema
    >>> from genrecourse.advice.request import PlanRequest
    >>> from genrecourse.advice.service import Service
    >>> X = pd.DataFrame({"income": range(80)})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> service, request = Service(NearestNeighbour(h, Schema.infer(X)).fit(X)), PlanRequest()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "plans.csv")
    ...     write_plans(path, service, X.head(2), service.plans(X.head(2), request), request)
    ...     path.read_text().splitlines()[1].split(",")[:2]
    ['0', 'ok']
    """
    kind = path.suffix.lower()
    if kind == ".html":
        write_text(service.report(X, request, plans), path)
    elif kind == ".json":
        write_text(plans.to_json() + "\n", path)
    else:
        write_table(service.plan_table(plans, X), path, safe_cells=safe_cells)


def write_audit(path: Path, audit: Audit, *, safe_cells: bool = False) -> None:
    """Write an audit: a .html to read, or its numbers as .json or as a table.

    safe_cells: as in `write_table`.

    >>> import tempfile
    >>> from genrecourse import NearestNeighbour, Schema, audit
    >>> X = pd.DataFrame({"income": range(80), "side": ["a", "b"] * 40})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> method = NearestNeighbour(h, Schema.infer(X[["income"]])).fit(X[["income"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_audit(Path(folder, "audit.json"), audit(method, X, groups=["side"], n_boot=100))
    ...     [path.name for path in Path(folder).iterdir()]
    ['audit.json']
    """
    kind = path.suffix.lower()
    if kind == ".html":
        write_text(audit.to_html(), path)
    elif kind == ".json":
        write_text(audit.to_json() + "\n", path)
    else:
        write_table(audit.to_frame(), path, safe_cells=safe_cells)
