"""recheck: which plans that were given still hold under another model?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError
from genrecourse.model.classifier import Classifier
from genrecourse.planning.plans import Plans


def recheck(plans: Plans, new_classifier: Any) -> pd.DataFrame:
    """One row a plan: person, plan (its number), holds, score and cutoff, by the new model.

    new_classifier: fitted; anything that a method takes. People without a plan have no row. Rules
    are not looked at: they do not change with the model.
    """
    h = Classifier.wrap(new_classifier)
    if not h.is_fitted:
        raise UserError("recheck: the new classifier is not fitted; fit it first")
    shown = [(plan.person, i) for plan in plans for i in range(1, len(plan.every) + 1)]
    score = h.score(plans.x_plus()) if shown else np.zeros(0)
    return pd.DataFrame(
        {
            "person": pd.Series([person for person, _ in shown], dtype=object),
            "plan": np.array([number for _, number in shown], dtype=int),
            "holds": score > h.cutoff,
            "score": score,
            "cutoff": np.full(len(shown), float(h.cutoff)),
        }
    )
