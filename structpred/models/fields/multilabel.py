"""Multi-label classification with pairwise label potentials."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy.typing as npt

from structpred.core.oracle import Oracle
from structpred.core.types import Floats, Integers
from structpred.models.bundles import restored
from structpred.models.fields.estimator import FieldEstimator, checked_bias
from structpred.models.fields.label_field import LabelField
from structpred.models.fields.label_graphs import checked_oracle, label_oracle
from structpred.models.fields.label_sets import FIELD, LabelSets, pairs_of, with_field
from structpred.models.fields.sharding import LabelSharding
from structpred.storage.bundles import Bundle
from structpred.storage.schema import AnyOf, Record, Text, Whole, maybe


@dataclass(eq=False, repr=False)
class MultiLabelMRF(LabelSets, FieldEstimator[Integers, Floats]):
    """A Markov random field over the labels of an example: weights of each label's states, and a table for each joined pair.

        score(x, y) = sum_l <w[l, y_l], (x, bias)> + sum_{(l, m) joined} t[l, m, y_l, y_m]

    Minimises  1/2 |w|^2 + C sum_i s_i H_i(w), H_i the margin- or slack-rescaled hinge with the number of wrong labels as loss.

    X is an array or sparse matrix (n, d), y rows of 0 and 1, one column per label; or X is MultiLabelData (io.read_mulan) alone.

    Parameters
    ----------
    trainer, C, max_iter, tol, loss, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state, regulariser
        As for every estimator: see `StructuredEstimator`; the log loss needs an oracle that has marginals.
    edges : str, int or pairs
        The joined pairs: "complete", "tree" (a spanning tree of the strongest correlations), a number k (the k strongest
        correlations of the training labels), or pairs of label numbers; [] gives independent labels.
    oracle : Oracle, optional
        The inference: EnumerationMRF(), TreeMRF(), QPBO(), BranchAndBoundMRF(), RelaxedMRF() ...; None: an exact one,
        EnumerationMRF up to 16 labels, else TreeMRF where the graph has no cycle, else BranchAndBoundMRF.
    bias : float
        The value of a constant feature, regularised as all others; 0 for none.
    scale : str, optional
        None: features are used as they are; "standard": mean 0 and variance 1; "maxabs": the largest absolute value 1, zeros
        stay zeros. Measured on the training data, kept in the model and applied by `predict`.

    Attributes
    ----------
    edges_ : ndarray (E, 2)
        The joined pairs.
    oracle_ : Oracle
        The inference that is used.
    n_labels_, n_features_in_ : int
        The numbers of labels and of features.
    label_names_ : list of str
        The names of the labels; their numbers where the data have none.
    coef_, certificate_, history_, n_iter_, stop_reason_, converged_, probabilistic_
        As for every estimator.

    Examples
    --------
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 0], [0, 1], [1, 1], [1, 1]]
    >>> MultiLabelMRF(C=10.0, max_iter=200).fit(X, Y).predict([[0.2], [2.6]]).tolist()
    [[0, 0], [1, 1]]
    """

    _: KW_ONLY
    edges: str | int | npt.ArrayLike = "complete"

    _field: LabelField = field(init=False)
    _sharding = LabelSharding()
    _HEADER = Record({**FIELD, "edges": maybe(AnyOf((Text(), Whole())))})

    def _field_of(self, n_features: int, names: list[str], edges: Integers) -> LabelField:
        oracle = label_oracle(len(names), edges) if self.oracle is None else checked_oracle(self.oracle)
        return LabelField(n_features, names, edges, checked_bias(self.bias), oracle)

    def _own_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"edges": self.edges_}

    def _contents(self) -> Bundle:
        found = super()._contents()
        found.header["edges"] = self.edges if isinstance(self.edges, str | int) else None
        return found

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Oracle | None) -> Self:
        edges, bias = pairs_of(head, bundle, "edges"), float(head["bias"])
        model = restored(cls, head, bias=bias, edges=edges if head["edges"] is None else head["edges"], oracle=oracle)
        return with_field(model, model._field_of(head["n_features"], head["label_names"], edges), head, bundle)
