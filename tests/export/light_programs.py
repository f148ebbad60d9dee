"""What the tests of exported programs share: a program as a module, and weights that are full of ties."""

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from structpred.export import export_predictor


def program_of(model: Any, folder: Path) -> Any:
    """The exported program of a model, run as a module."""
    return SimpleNamespace(**runpy.run_path(str(export_predictor(model, folder / "light.py").program)))


def full_of_ties(model: Any, rng: np.random.Generator) -> Any:
    """The model with small whole numbers as weights, so that most decisions are ties."""
    model.coef_ = rng.integers(-1, 2, size=model.coef_.shape).astype(model.coef_.dtype)
    return model
