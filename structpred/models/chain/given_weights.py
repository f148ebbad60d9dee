"""A sequence labeller made of weights that another program learnt."""

from collections.abc import Mapping, Sequence

import numpy as np

from structpred.core.result import Certificate, Result
from structpred.data.sequences import PackedSequences
from structpred.data.vocabulary import FeatureDictionary
from structpred.features.sequences import chain_groups, n_chain_weights, weight_table
from structpred.models.chain.inputs import TokenInput
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.chain.targets import LabelEncoder
from structpred.trainers.problem import Trainer

#: of start scores: far below the last digit of weights that are read off text
_TIE = 2.0**-30


def labeler_of_weights(
    features: Sequence[str], labels: Sequence[str], emissions: Mapping[tuple[str, str], float],
    transitions: Mapping[tuple[str, str], float], trainer: str | Trainer,
) -> ChainLabeler:  # fmt: skip
    """A fitted ChainLabeler of feature strings with weights by (feature, label) and by (label before, label after).

    Weights that are not given are zero, and those of stop; all are kept as float32. Start scores of less than 1e-6 let the label
    that comes first in `labels` win where nothing is known of a sequence. trainer: the one that learns such weights here: it says
    whether scores are log-probabilities.

    >>> model = labeler_of_weights(["w=a"], ["A", "B"], {("w=a", "B"): 1.0}, {("B", "A"): 2.0}, "lbfgs")
    >>> [labels.tolist() for labels in model.predict([[["w=a"], ["w=new"]]])]
    [['B', 'A']]
    """
    input_, encoder = TokenInput(FeatureDictionary.from_names(features)), LabelEncoder(labels)
    n, n_labels = len(features), len(labels)
    row, column = ({name: k for k, name in enumerate(names)} for names in (features, encoder.classes.tolist()))
    weights = np.zeros(n_chain_weights(n, n_labels), np.float32)
    table = weight_table(weights, n_labels)
    for (feature, label), weight in emissions.items():
        table[row[feature], column[label]] = weight
    for (before, after), weight in transitions.items():
        table[n + 2 + column[before], column[after]] = weight
    table[n, [column[label] for label in labels]] = _TIE * -np.arange(n_labels)
    none = np.zeros(1, np.int64)
    groups, names = chain_groups(PackedSequences(none, np.empty(0, np.int32), np.empty(0, np.float32), none, n), n_labels)
    model = ChainLabeler(trainer)
    model._keep_plan(input_, encoder, Result(weights, Certificate(), stop_reason="imported", groups=groups, group_names=names))
    return model
