"""Feature templates of a fitted chain model: the model without some of them."""

from collections.abc import Collection
from typing import Any

import numpy as np

from structpred.core.weights import padded
from structpred.io.templates.featurizer import TemplateFeaturizer
from structpred.models.chain.inputs import RowInput
from structpred.models.groups import keep_groups


def drop_templates(labeler: Any, names: Collection[str]) -> None:
    """Take the templates of these groups, whose weights are zero, out of a labeller; features that are hashed stay."""
    input_ = labeler.input_
    if not isinstance(input_, RowInput) or not isinstance(input_.featurizer, TemplateFeaturizer):
        return
    dropped = [name for name in input_.featurizer.group_names if name in names]
    featurizer, left = input_.featurizer.without(dropped)
    table = labeler.coef_.reshape(-1, padded(len(labeler.classes_)))
    labeler.coef_ = np.concatenate((table[left], table[input_.n_features :])).ravel()
    labeler.input_, labeler.n_features_in_ = RowInput(featurizer), featurizer.n_features
    labeler.template = list(featurizer.templates)
    keep_groups(labeler, np.array([name not in dropped for name in labeler.group_names_]))
