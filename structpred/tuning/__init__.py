"""Choosing settings: successive halving over a grid, on held-out data or on folds."""

from structpred.tuning.estimators import tune
from structpred.tuning.search import Search, Work
from structpred.tuning.tuned import Trial, Tuned

__all__ = ["Search", "Trial", "Tuned", "Work", "tune"]
