"""Links between Markdown pages: which of them lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")


def dead_links(page: Path) -> list[str]:
    """Return the links of a page to a file or a heading that does not exist."""
    return [link for link in local_links(page) if not _leads_somewhere(page, link)]


def local_links(page: Path) -> list[str]:
    """Return the links of a page to other files of the repository, or to its own headings."""
    found = LINK.findall(page.read_text(encoding="utf-8"))
    return [link for link in found if not link.startswith(("http://", "https://", "mailto:"))]


def _leads_somewhere(page: Path, link: str) -> bool:
    file, _, anchor = link.partition("#")
    target = page.parent / file if file else page
    if not anchor:
        return target.exists()
    return target.is_file() and anchor in _anchors(target.read_text(encoding="utf-8"))


def _anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
