"""Reads counterfactuals with dice-ml's own reader: python dice_reader.py FILE, in its environment.

Prints, as JSON, what a user of dice-ml sees of them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dice_ml.counterfactual_explanations import CounterfactualExplanations


def cells(table: Any) -> Any:
    return None if table is None else [list(table.columns), table.to_numpy().tolist()]


def main(text: str) -> None:
    read = CounterfactualExplanations.from_json(text)
    again = CounterfactualExplanations.from_json(read.to_json())
    seen = {
        "people": [cells(each.test_instance_df) for each in read.cf_examples_list],
        "found": [cells(each.final_cfs_df) for each in read.cf_examples_list],
        "test_pred": [int(each.test_pred) for each in read.cf_examples_list],
        "new_outcome": [each.new_outcome for each in read.cf_examples_list],
        "local": read.local_importance,
        "summary": read.summary_importance,
        "version": read.metadata["version"],
        "same_again": again == read,
    }
    sys.stdout.write(json.dumps(seen, default=lambda value: value.item()))


if __name__ == "__main__":
    main(Path(sys.argv[1]).read_text(encoding="utf-8"))
