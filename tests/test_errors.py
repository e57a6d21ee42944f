"""What every front end shows of the library: its own warnings, and no other package's."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import genrecourse
from genrecourse.errors import own_warnings

PACKAGE = Path(genrecourse.__file__).parent


@pytest.mark.parametrize("place", ["methods/genre.py", "evaluation/comparison/run.py", "errors.py"])
def test_warnings_of_any_sub_package_are_collected_once(place: str) -> None:
    with own_warnings() as notes:
        for line in (1, 2):
            warnings.warn_explicit("too few rows", UserWarning, str(PACKAGE / place), line)
        warnings.warn_explicit("not ours", UserWarning, "/elsewhere/torch.py", 1)
    assert notes == ["too few rows"]
