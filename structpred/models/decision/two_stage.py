"""The two-stage baseline: a regressor of scikit-learn learns the costs, and the decisions follow."""

from typing import Any

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.models.decision.inputs import Design


def fitted(regressor: Any, design: Design, constant: bool, targets: Floats) -> Any:
    """A copy of the regressor, fitted to the targets; one for each part where it has a single output."""
    from sklearn.base import clone
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.utils import get_tags

    if not hasattr(regressor, "fit") or not hasattr(regressor, "predict"):
        raise ParameterError(f"regressor: expected a regressor of scikit-learn, with fit and predict, got {regressor!r}")
    rows = design.rows[:, :-1] if constant else design.rows
    model = clone(regressor)
    if design.n_outputs > 1 and not get_tags(model).target_tags.multi_output:
        model = MultiOutputRegressor(model)
    return model.fit(rows, targets if design.per_part else targets.reshape(len(rows), -1).squeeze())
