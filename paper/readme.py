"""Writes the generated blocks of paper/README.md and paper/pages/*.md from the results files.

python -m paper readme           # rewrites the blocks
python -m paper readme --check   # fails if a page disagrees with the results

The text of a page is written by hand. Every table and every number stands in a block, between
`<!-- NAME: written by a command -->` and `<!-- /NAME -->`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from paper.blocks import Block, Report
from paper.runs import HERE, Scale

START = re.compile(r"<!-- (\w+): written by a command -->")
BLOCK = re.compile(START.pattern + r"\n.*?<!-- /\1 -->", re.S)


def pages(folder: Path = HERE) -> dict[str, str]:
    """Return the text of README.md and of each page of pages/, by its path in the folder."""
    paths = [folder / "README.md", *sorted((folder / "pages").glob("*.md"))]
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def filled(texts: Mapping[str, str], blocks: Mapping[str, Block]) -> dict[str, str]:
    """Return the pages with every block written again.

    Exits if a block stands on no page or on two, so that no result can get lost.
    """
    found = Counter(name for text in texts.values() for name in START.findall(text))
    if found != Counter(list(blocks)):
        wrong = {name for name in {*found, *blocks} if found[name] != 1 or name not in blocks}
        sys.exit(
            f"blocks that do not stand on exactly one page of paper/, or that no command writes: "
            f"{', '.join(sorted(wrong))}"
        )

    def content(match: re.Match[str]) -> str:
        name = match[1]
        start, end = f"<!-- {name}: written by a command -->", f"<!-- /{name} -->"
        return f"{start}\n\n{blocks[name]()}\n\n{end}"

    return {path: BLOCK.sub(content, text) for path, text in texts.items()}


def write(size: Scale) -> None:
    """Write the pages; those of a quick run go beside its results."""
    folder = size.results if size.is_quick else HERE
    for path, text in filled(pages(), Report(size).blocks()).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def check(size: Scale) -> None:
    """Exits with the names of the pages that disagree with the results, if there are any."""
    now = pages()
    written = filled(now, Report(size).blocks())
    stale = [path for path, text in now.items() if text != written[path]]
    if stale:
        sys.exit(
            f"pages of paper/ that disagree with the results: {', '.join(stale)}; "
            "run python -m paper readme"
        )
