"""Plans and audits as files, by the ending of the file's name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from genrecourse.table.table_files import check_output, write_table, write_text

if TYPE_CHECKING:
    from genrecourse.advice.request import PlanRequest
    from genrecourse.advice.service import Service
    from genrecourse.auditing import Audit
    from genrecourse.planning.plans import Plans

MORE_ENDINGS = (".json", ".html")  # besides those of tables


def check_plan_file(path: Path) -> None:
    """Refuse, before any plan is made, a file that could not be written."""
    check_output(path, MORE_ENDINGS)


def check_audit_file(path: Path) -> None:
    """Refuse, before the audit, a file that could not be written."""
    check_output(path, tuple(reversed(MORE_ENDINGS)))


def write_plans(
    path: Path, service: Service, X: pd.DataFrame, plans: Plans, request: PlanRequest
) -> None:
    """Write plans: a .html to read, a .json with everything, or a table with one line each."""
    kind = path.suffix.lower()
    if kind == ".html":
        write_text(service.report(X, request, plans), path)
    elif kind == ".json":
        write_text(plans.to_json() + "\n", path)
    else:
        write_table(service.plan_table(plans, X), path)


def write_audit(path: Path, audit: Audit) -> None:
    """Write an audit: a .html to read, or its numbers as .json or as a table."""
    kind = path.suffix.lower()
    if kind == ".html":
        write_text(audit.to_html(), path)
    elif kind == ".json":
        write_text(audit.to_json() + "\n", path)
    else:
        write_table(audit.to_frame(), path)
