"""check_prox finds what is no proximal operator, names the rule with a cause that fits, and passes those that are right."""

import re

import numpy as np
import pytest

import structpred
from structpred.errors import ProjectionError
from structpred.projections.prox.entries import prox_l1


def l1(x):
    """The function of them all."""
    return float(np.abs(x).sum())


def step_forgotten(x, step):
    """Right for the step 1 alone."""
    return prox_l1(x, 1.0 if step else 0.0)


def too_far(x, step):
    """The threshold of 2 |x|_1."""
    return prox_l1(x, 2.0 * step)


def hard(x, step):
    """A jump at the threshold."""
    prox_l1(x, step)
    return np.where(np.abs(x) > step, x, 0.0)


def moved(x, step):
    """Not the identity for the step 0."""
    return prox_l1(x, step) * (1.0 - 1e-9)


def single(x, step):
    """In single precision."""
    return prox_l1(x, step).astype(np.float32)


def in_place(x, step):
    """Right, but into its argument."""
    x[:] = prox_l1(x, step)
    return x.copy()


def careless(x, step):
    """Right, but NaN is let through."""
    return np.sign(x) * np.maximum(np.abs(x) - step, 0.0)


BROKEN = [
    (step_forgotten, "prox", "without `step`"),
    (too_far, "prox", "another r than `value`"),
    (hard, "non-expansive", "two points apart"),
    (moved, "step 0", "next to x"),
    (single, "answer", "another type"),
    (in_place, "mutated input", "work on a copy"),
    (careless, "bad points", "DataError"),
]


@pytest.mark.parametrize(("prox", "rule", "cause"), BROKEN, ids=[prox.__name__ for prox, *_ in BROKEN])
def test_each_broken_operator_is_found_with_a_fitting_cause(prox, rule, cause) -> None:
    """The error names the operator, the rule, the case, and the cause of the fault."""
    with pytest.raises(ProjectionError) as caught:
        structpred.check_prox(prox, l1, sizes=(3,))
    found = [line for line in str(caught.value).splitlines() if re.match(f"- {rule}, at points of 3 entries", line)]
    assert str(caught.value).startswith(f"{prox.__name__} breaks ")
    assert found, caught.value
    assert re.search(cause, found[0].split("Likely cause: ")[1]), found[0]


def test_a_wrong_conjugate_is_found() -> None:
    """Its value and its prox are compared with the operator; without them the report says what was not checked."""
    report = structpred.check_prox(prox_l1, l1)
    assert {"Moreau", "conjugacy"} == set(report.skipped)
    with pytest.raises(ProjectionError, match="conjugacy, at points of 1 entries"):
        structpred.check_prox(prox_l1, l1, conjugate=lambda u: float(u @ u))
    with pytest.raises(ProjectionError, match=r"- Moreau.*a wrong factor in one of the two"):
        structpred.check_prox(prox_l1, l1, conjugate_prox=lambda v, s: np.clip(v, -2.0, 2.0))
