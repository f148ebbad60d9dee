"""Successive halving: all settings get few passes, the best third continues to three times as many, and so on.

K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Integers
from structpred.errors import ParameterError

Setting = dict[str, Any]


class Rung(NamedTuple):
    """All that are left are trained to `passes` passes in all; the best `keep` go on."""

    passes: int
    keep: int


def rungs(n: int, max_passes: int, min_passes: int = 1, eta: int = 3) -> tuple[Rung, ...]:
    """The rungs for n settings: the last is at max_passes, each one before it at 1/eta of that, none below min_passes.

    There are as many as it takes to get from n to one. Raises ParameterError for numbers that make no rung.

    >>> rungs(12, 27)
    (Rung(passes=1, keep=4), Rung(passes=3, keep=2), Rung(passes=9, keep=1), Rung(passes=27, keep=1))
    """
    for name, value, least in (("max_passes", max_passes, 1), ("min_passes", min_passes, 1), ("eta", eta, 2)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ParameterError(f"{name} must be a whole number >= {least}, got {value!r}")
    if min_passes > max_passes:
        raise ParameterError(f"min_passes must be at most max_passes, which is {max_passes}, got {min_passes}")
    found, left, k = [], n, 0
    while eta**k < n and max_passes >= min_passes * eta ** (k + 1):
        k += 1
    for power in range(k, -1, -1):
        left = -(-left // eta) if power else 1
        found.append(Rung(round(max_passes / eta**power), left))
    return tuple(found)


def grid_of(values: Mapping[str, Sequence[Any]]) -> list[Setting]:
    """Every combination of the values, the last name varying fastest.

    Raises ParameterError for a grid without values, and for a value that is given twice.

    >>> grid_of({"C": [0.1, 1], "trainer": ["sgd"]})
    [{'C': 0.1, 'trainer': 'sgd'}, {'C': 1, 'trainer': 'sgd'}]
    """
    if not values:
        raise ParameterError("the grid is empty: expected at least one setting with its values, such as C: 0.1, 0.3, 1")
    for name, several in values.items():
        if isinstance(several, str) or not isinstance(several, Sequence | np.ndarray) or not len(several):
            raise ParameterError(f"{name}: expected a list of values to choose from, got {several!r}")
        if twice := [value for i, value in enumerate(several) if any(value == other for other in several[:i])]:
            raise ParameterError(f"{name}: {twice[0]!r} is given twice")
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


def fold_members(n: int, n_folds: int, seed: int) -> list[Integers]:
    """The numbers of the samples that each fold holds out, drawn by the seed; sizes differ by one at most."""
    if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer) or not 2 <= n_folds <= n:
        raise ParameterError(f"expected 2 folds or more, and at most as many as samples ({n}), got {n_folds!r}")
    drawn = np.random.default_rng(seed).permutation(n)
    return [np.sort(drawn[fold::n_folds]) for fold in range(n_folds)]


def mean_curve(curves: Sequence[Sequence[float]], passes: int) -> list[float]:
    """The mean over the folds after each of the first passes; a run that ended early keeps its last score."""
    n = min(passes, max(map(len, curves)))
    return [math.fsum(curve[min(p, len(curve) - 1)] for curve in curves) / len(curves) for p in range(n)]
