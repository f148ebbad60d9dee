"""Choosing settings: successive halving over a grid, on held-out data or on folds."""

from structpred.tuning.estimators import tune
from structpred.tuning.halving import Trial, Tuned
from structpred.tuning.search import Search, Work

__all__ = ["Search", "Trial", "Tuned", "Work", "tune"]
