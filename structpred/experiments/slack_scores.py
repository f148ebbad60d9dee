"""What slack rescaling gives on multi-label data compared with margin rescaling (Choi, Meshi & Srebro 2016, section 5.2)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.evaluation.multilabel import evaluate_hierarchy, evaluate_multilabel
from structpred.io.multilabel.data import MultiLabelData


@dataclass(frozen=True)
class ScoreRow:
    """What one surrogate reaches on the test set with the C that cross-validation on the training set chose.

    gap: of training, as a share of the primal. h_loss: with a hierarchy (see evaluate_hierarchy), else None. seconds: CPU time
    of the last fit.
    """

    surrogate: str
    C: float
    accuracy: float
    label_loss: float
    micro_f1: float
    macro_f1: float
    example_f1: float
    h_loss: float | None
    gap: float | None
    seconds: float


def score_surrogate(model: Any, train: MultiLabelData, test: MultiLabelData, grid: Sequence[float], n_folds: int = 3) -> ScoreRow:
    """Choose C on the training set alone, fit with it, and score on the test set."""
    from sklearn.base import clone

    C = choose_C(model, train.X, train.Y, grid, n_folds)
    start = time.process_time()
    fitted = clone(model).set_params(C=C).fit(train.X, train.Y)
    seconds = time.process_time() - start
    predicted = fitted.predict(test.X)
    scores = evaluate_multilabel(test, predicted)
    h_loss = None if test.hierarchy is None else evaluate_hierarchy(test, predicted).h_loss
    return ScoreRow(
        str(model.surrogate), C, scores.accuracy, scores.label_loss, scores.micro_f1, scores.macro_f1, scores.example_f1, h_loss,
        fitted.certificate_.relative_gap, seconds,
    )  # fmt: skip


def choose_C(model: Any, X: Any, Y: npt.NDArray[Any], grid: Sequence[float], n_folds: int = 3, seed: int = 0) -> float:
    """The C of the grid with the best mean accuracy over folds of the training set; the first of equals."""
    from sklearn.model_selection import GridSearchCV, PredefinedSplit

    folds = PredefinedSplit(np.random.default_rng(seed).permutation(len(Y)) % n_folds)
    search = GridSearchCV(model, {"C": list(grid)}, cv=folds, refit=False, error_score="raise").fit(X, Y)
    return grid[int(search.best_index_)]
