"""How good predicted sets of labels are: per example, per label, over all, along a hierarchy; which labels occur together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.types import Integers
from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError
from structpred.evaluation.ranking import average_precision
from structpred.io.multilabel.data import MultiLabelData
from structpred.models.fields.label_field import as_indicator, example_accuracy
from structpred.text.markup import Shown


class LabelScore(NamedTuple):
    """One label. support: how many examples have it; predicted: how many are predicted to; correct: how many of both."""

    name: str
    support: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        """correct / predicted; 0 where nothing is predicted."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """correct / support; 0 where no example has the label."""
        return self.correct / self.support if self.support else 0.0

    @property
    def f1(self) -> float:
        """2 correct / (support + predicted); 0 where both are 0."""
        return 2 * self.correct / (self.support + self.predicted) if self.support + self.predicted else 0.0


@dataclass(frozen=True)
class MultiLabelScores(Shown):
    """Scores of n examples.

    accuracy: the mean over examples of |both| / |either| (Jaccard), 1 where both are empty. label_loss: the share of wrong
    entries (Hamming). subset_accuracy: the share of examples with all labels right. micro_precision, micro_recall, micro_f1:
    over all entries. macro_f1: the mean of the labels' F1, 0 for labels that neither side has. example_f1: the mean of the
    examples' F1, 1 where both are empty. labels: each by itself. au_prc: AU(PRC), `average_precision` of all entries, or None.
    """

    n: int
    accuracy: float
    label_loss: float
    subset_accuracy: float
    micro_precision: float
    micro_recall: float
    micro_f1: float
    macro_f1: float
    example_f1: float
    labels: tuple[LabelScore, ...]
    au_prc: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """All numbers, for JSON."""
        plain = {name: value for name, value in vars(self).items() if name != "labels"}
        rows = [{**one._asdict(), "precision": one.precision, "recall": one.recall, "f1": one.f1} for one in self.labels]
        return plain | {"labels": rows}

    def table(self) -> str:
        """The scores, then a row per label."""
        width = max(len("label"), *(len(one.name) for one in self.labels))
        lines = [
            f"{self.n} examples, {len(self.labels)} labels",
            f"accuracy {self.accuracy:.4f}  label loss {self.label_loss:.4f}  subset accuracy {self.subset_accuracy:.4f}",
            f"micro F1 {self.micro_f1:.4f} (precision {self.micro_precision:.4f}, recall {self.micro_recall:.4f})  "
            f"macro F1 {self.macro_f1:.4f}  example F1 {self.example_f1:.4f}",
            f"{'label':<{width}}  precision  recall      F1  support  predicted",
        ]
        lines += [
            f"{one.name:<{width}}  {one.precision:9.4f}  {one.recall:6.4f}  {one.f1:6.4f}  {one.support:7d}  {one.predicted:9d}"
            for one in self.labels
        ]
        return "\n".join(lines)


def evaluate_multilabel(
    gold: Any, predicted: Any, label_names: Sequence[str] | None = None, *, scores: npt.ArrayLike | None = None
) -> MultiLabelScores:
    """Compare rows of 0 and 1 (or MultiLabelData as gold) with predicted ones; with scores, as of `predict_scores`, AU(PRC), too.

    Raises DataError for other values, no examples, and shapes that do not match.

    >>> scores = evaluate_multilabel([[1, 1, 0], [0, 1, 0]], [[1, 0, 0], [0, 1, 0]])
    >>> scores.accuracy, round(scores.label_loss, 3), round(scores.micro_f1, 3)
    (0.75, 0.167, 0.8)
    """
    truth, guess, names = both_sides(gold, predicted, label_names)
    both, support, said = (truth & guess).sum(axis=0), truth.sum(axis=0), guess.sum(axis=0)
    columns = (column.tolist() for column in (support, said, both))
    labels = tuple(LabelScore(*row) for row in zip(names, *columns, strict=True))
    whole = LabelScore("", int(support.sum()), int(said.sum()), int(both.sum()))
    sizes = truth.sum(axis=1) + guess.sum(axis=1)
    if scores is not None and np.shape(scores) != truth.shape:
        raise DataError(f"scores: expected an array of shape {truth.shape}, a score for each entry, got {np.shape(scores)}")
    ranked = scores is not None and 0 < whole.support < truth.size
    example_f1 = np.where(sizes == 0, 1.0, 2 * (truth & guess).sum(axis=1) / np.maximum(sizes, 1))
    return MultiLabelScores(
        n=len(truth),
        accuracy=float(example_accuracy(truth, guess).mean()),
        label_loss=float((truth != guess).mean()),
        subset_accuracy=float((truth == guess).all(axis=1).mean()),
        micro_precision=whole.precision,
        micro_recall=whole.recall,
        micro_f1=whole.f1,
        macro_f1=float(np.mean([one.f1 for one in labels])),
        example_f1=float(example_f1.mean()),
        labels=labels,
        au_prc=average_precision(truth.ravel() == 1, np.ravel(scores)) if ranked else None,  # type: ignore[arg-type]
    )


def both_sides(gold: Any, predicted: Any, label_names: Sequence[str] | None) -> tuple[Integers, Integers, list[str]]:
    """Both sides as rows of 0 and 1, and the names of the labels; raises DataError where they do not fit."""
    if isinstance(gold, MultiLabelData):
        label_names = gold.label_names if label_names is None else label_names
        gold = gold.Y
    shape = getattr(gold, "shape", None) or np.asarray(gold).shape
    truth = as_indicator(gold, shape[0] if shape else 0)
    if not len(truth):
        raise DataError("expected at least one example to compare, got none")
    try:
        guess = as_indicator(predicted, len(truth), truth.shape[1])
    except DataError as error:
        raise DataError(f"predicted: {error}") from None
    names = [str(k) for k in range(truth.shape[1])] if label_names is None else [str(name) for name in label_names]
    if len(names) != truth.shape[1]:
        raise DataError(f"{truth.shape[1]} labels but {len(names)} names")
    return truth, guess, names


@dataclass(frozen=True)
class HierarchyScores(Shown):
    """Scores along a hierarchy; both sides are closed under ancestors first.

    precision, recall, f1: over all (example, label) entries, ancestors included (Kiritchenko et al. 2006). h_loss: the mean over
    examples of the number of wrong labels whose ancestors are all right (Cesa-Bianchi et al. 2006): what goes wrong below a
    mistake is not counted again. weighted_loss: the mean over examples of the sum of the label weights of wrong labels.
    by_depth: the F1 of the labels of each depth, from the roots. open_rows: how many predicted rows were not closed.
    """

    n: int
    precision: float
    recall: float
    f1: float
    h_loss: float
    weighted_loss: float
    by_depth: tuple[float, ...]
    open_rows: int

    def table(self) -> str:
        """The figures on a line."""
        depths = ", ".join(f"{value:.4f}" for value in self.by_depth)
        return (
            f"{self.n} examples: hierarchical F1 {self.f1:.4f} (precision {self.precision:.4f}, recall {self.recall:.4f}), "
            f"H-loss {self.h_loss:.4f}, weighted loss {self.weighted_loss:.4f}; F1 by depth {depths}"
        )


def evaluate_hierarchy(
    gold: Any, predicted: Any, hierarchy: LabelHierarchy | None = None, label_weights: npt.ArrayLike | None = None
) -> HierarchyScores:
    """Compare closed rows along a hierarchy (that of the data, where gold is MultiLabelData and none is given).

    label_weights: what a wrong label costs in weighted_loss; None: 1 each. Raises DataError as evaluate_multilabel, and for a
    hierarchy of another size.

    >>> tree = LabelHierarchy(3, [(0, 1), (0, 2)])
    >>> evaluate_hierarchy([[1, 1, 0]], [[1, 0, 1]], tree).h_loss
    2.0
    """
    if hierarchy is None and isinstance(gold, MultiLabelData):
        hierarchy = gold.hierarchy
    if hierarchy is None:
        raise DataError("expected a hierarchy of the labels, got none")
    truth, guess, _ = both_sides(gold, predicted, None)
    if hierarchy.n != truth.shape[1]:
        raise DataError(f"the hierarchy has {hierarchy.n} labels, but the rows have {truth.shape[1]} columns")
    costs = np.ones(hierarchy.n) if label_weights is None else np.asarray(label_weights, dtype=np.float64)
    if costs.shape != (hierarchy.n,) or not np.isfinite(costs).all():
        raise DataError(f"label_weights: expected {hierarchy.n} finite numbers, got shape {costs.shape}")
    closed = hierarchy.closed(guess).astype(np.int64)
    truth = hierarchy.closed(truth).astype(np.int64)
    wrong = truth != closed
    first = wrong & ~((wrong.astype(np.int64) @ hierarchy.ancestors.T.astype(np.int64)) > 0)
    entries = [_counts(truth, closed, hierarchy.depths == depth) for depth in range(int(hierarchy.depths.max()) + 1)]
    whole = _counts(truth, closed, np.ones(hierarchy.n, dtype=np.bool_))
    return HierarchyScores(
        n=len(truth), precision=whole.precision, recall=whole.recall, f1=whole.f1, h_loss=float(first.sum(axis=1).mean()),
        weighted_loss=float((wrong @ costs).mean()), by_depth=tuple(one.f1 for one in entries),
        open_rows=int((closed != guess).any(axis=1).sum()),
    )  # fmt: skip


def _counts(truth: Integers, guess: Integers, columns: npt.NDArray[np.bool_]) -> LabelScore:
    a, b = truth[:, columns], guess[:, columns]
    return LabelScore("", int(a.sum()), int(b.sum()), int((a & b).sum()))


class LabelPair(NamedTuple):
    """Two labels. gold, predicted: how many examples have both of them."""

    label: str
    other: str
    gold: int
    predicted: int

    @property
    def excess(self) -> int:
        """How many more examples are predicted to have both than have them."""
        return self.predicted - self.gold


@dataclass(frozen=True)
class Cooccurrence:
    """How many of n examples have label i and label j: gold[i, j] in truth, predicted[i, j] as predicted.

    names: the labels shown, in the order of the data. On the diagonal are the counts of single labels.
    """

    n: int
    names: list[str]
    gold: Integers
    predicted: Integers

    def pairs(self) -> list[LabelPair]:
        """All pairs of labels, those predicted too often first, those predicted too seldom last."""
        first, second = np.triu_indices(len(self.names), 1)
        found = [
            LabelPair(self.names[i], self.names[j], int(self.gold[i, j]), int(self.predicted[i, j]))
            for i, j in zip(first.tolist(), second.tolist(), strict=True)
        ]
        return sorted(found, key=lambda pair: -pair.excess)


def cooccurrence(gold: Any, predicted: Any, label_names: Sequence[str] | None = None, *, most: int = 60) -> Cooccurrence:
    """Count the pairs of the `most` most frequent labels, in truth and in what is predicted.

    gold: rows of 0 and 1, shape (n_examples, n_labels), or MultiLabelData. Raises DataError as `evaluate_multilabel` does.

    >>> found = cooccurrence([[1, 1], [1, 1], [0, 1]], [[1, 0], [1, 1], [0, 1]], ["sun", "sea"])
    >>> found.gold.tolist(), found.pairs()[0].excess
    ([[2, 2], [2, 3]], -1)
    """
    truth, guess, names = both_sides(gold, predicted, label_names)
    kept = np.sort(np.argsort(-(truth + guess).sum(axis=0), kind="stable")[:most])
    truth, guess = truth[:, kept], guess[:, kept]
    return Cooccurrence(len(truth), [names[k] for k in kept.tolist()], truth.T @ truth, guess.T @ guess)
