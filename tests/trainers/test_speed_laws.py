"""What makes two solvers fast and changes no optimum: which rows leave a sweep, when it widens, and which plane gains weight."""

from typing import Any

import numpy as np
import pytest

from structpred.trainers.planes._master_qp_kernels import solve_master
from structpred.trainers.rows._sdca_kernels import (
    GAP,
    LOW,
    LOW_BEFORE,
    N_ACTIVE,
    OVER,
    PHASE,
    PLACE,
    SETTLED,
    SHRUNK,
    TOP,
    TOP_BEFORE,
    WHOLE,
    ascend,
    end_sweep,
)

N = 6


def after_a_sweep(phase: int, spread: float, settled: float) -> tuple[int, int, float]:
    """(phase, active rows, settled) after a sweep over 4 of N rows whose violations are `spread` apart."""
    counts, limits = np.array([4, 4, phase]), np.zeros(8)
    limits[TOP], limits[LOW], limits[SETTLED] = spread, 0.0, settled
    end_sweep(counts, limits, N)
    return int(counts[PHASE]), int(counts[N_ACTIVE]), float(limits[SETTLED])


def test_active_rows_have_settled_at_a_tenth_of_what_all_rows_violated() -> None:
    """After a sweep over all rows the next ones stay with the active rows until these violate a tenth of it, and no longer."""
    assert after_a_sweep(WHOLE, 2.0, np.inf) == (OVER, 4, 0.1 * 2.0)
    assert after_a_sweep(WHOLE, 2.0, 0.5) == (OVER, 4, 0.1 * 0.5)
    assert after_a_sweep(SHRUNK, 0.21, 0.2) == (SHRUNK, 4, 0.2)
    assert after_a_sweep(SHRUNK, 0.2, 0.2) == (WHOLE, N, 0.2)


@pytest.mark.parametrize(
    ("alpha", "target", "stays"), [(0.0, -0.5, True), (0.0, -1.5, False), (1.0, 0.5, True), (1.0, 1.5, False)]
)
def test_rows_leave_where_their_slope_passes_all_of_the_last_sweep(alpha: float, target: float, stays: bool) -> None:
    """Hsieh et al. 2008, section 3.2: at a bound, with a slope that points outwards by more than any of the sweep before."""
    duals = np.tile([target, 0.0, 0.0, 1.0, 0.0, 1.0], (2, 1))
    counts, limits = np.array([2, 0, SHRUNK]), np.zeros(8)
    limits[TOP_BEFORE], limits[LOW_BEFORE], limits[TOP], limits[LOW], limits[GAP] = 1.0, -1.0, -np.inf, np.inf, 0.0
    rows: tuple[Any, ...] = (np.array([0, 1, 2]), np.array([0, 1], np.int32), np.ones(2))
    changed = ascend(*rows, duals, None, np.zeros(2), np.full(2, alpha), np.arange(2), counts, limits, 1, 3)
    assert changed == 0
    assert counts[N_ACTIVE] + counts[PLACE] == (4 if stays else 0)


@pytest.mark.parametrize(("curvatures", "slopes", "moved"), [((400.0, 2.0), (2.0, 1.0), 0.5), ((20.0, 2.0), (4.0, 1.0), 0.0)])
def test_weight_moves_to_the_plane_that_gains_most(curvatures: Any, slopes: Any, moved: float) -> None:
    """A step of the master problem gains slope^2 / curvature: the second plane's 1/2 against 1/100, and then against 4/5.

    What is left after the first plane's step is below the tolerance. So the second plane has weight only where it was first: a
    choice by the slope alone, or by slope / curvature, would end elsewhere in one of the cases.
    """
    gradient, alpha, planes = np.array(slopes), np.zeros(2), (np.array([0, 2]), np.array([0, 1]))
    worst = solve_master(np.diag(curvatures), gradient.copy(), 1.0, *planes, alpha, np.ones(1), gradient, 1.9, 1)
    assert worst == slopes[0]
    assert alpha[1] == moved
