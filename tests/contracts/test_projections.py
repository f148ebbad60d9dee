"""check_projection finds what is no projection, names the rule with a cause that fits, and passes those that are right."""

import re

import numpy as np
import pytest

import structpred
from structpred.errors import DataError, ProjectionError
from structpred.projections.balls import project_onto_l2_ball
from structpred.projections.simplex import project_onto_simplex


def ball(x):
    """Right."""
    return project_onto_l2_ball(x, 1.0)


def rescaled(x):
    """On the simplex, but not nearest."""
    positive = np.maximum(project_onto_simplex(x), 1e-3)
    return positive / positive.sum()


def half_way(x):
    """A step towards the ball."""
    return 0.5 * (x + ball(x))


def sphere(x):
    """No convex set: points inside are moved."""
    return x / np.linalg.norm(x) if x.any() else np.ones(len(x)) / np.sqrt(len(x))


def in_place(x):
    """Right, but into its argument."""
    x[:] = ball(x)
    return x


def single(x):
    """In single precision."""
    return ball(x).astype(np.float32)


def careless(x):
    """Right, but NaN is let through."""
    return np.clip(x, 0.0, 1.0)


def drifting(x, calls=[0]):  # noqa: B006 - state between calls is the fault
    """Another answer each time."""
    calls[0] += 1
    return ball(x) * (1.0 - 1e-6 * calls[0])


def raising(x):
    """A bug."""
    raise IndexError("oops")


BROKEN = [
    (rescaled, "nearest", "another point of the set is nearer"),
    (half_way, "idempotent", "a step towards the set"),
    (sphere, "identity inside", "not convex"),
    (in_place, "mutated input", "in place"),
    (single, "answer", "another type"),
    (careless, "bad points", "raise DataError"),
    (drifting, "nondeterminism", "state kept"),
    (raising, "no exceptions", "a bug"),
]


@pytest.mark.parametrize(("project", "rule", "cause"), BROKEN, ids=[project.__name__ for project, *_ in BROKEN])
def test_each_fault_is_found_with_a_fitting_cause(project, rule, cause) -> None:
    """The error names the function, the rule, the shape, and the cause of the fault."""
    with pytest.raises(ProjectionError) as caught:
        structpred.check_projection(project, shapes=[(3,)])
    message = str(caught.value)
    assert message.startswith(f"{project.__name__} breaks ")
    found = [line for line in message.splitlines() if line.startswith(f"- {rule}, at points of shape (3,)")]
    assert found, message
    assert re.search(cause, found[0].split("Likely cause: ")[1]), found[0]


def test_a_set_that_is_too_large_is_found_by_its_constraint() -> None:
    """The ball of radius 2 where 1 is meant: only `outside` can tell, and the report says that it was not asked."""

    def larger(x):
        return project_onto_l2_ball(x, 2.0)

    report = structpred.check_projection(larger)
    assert report.skipped == {"in the set": "no `outside` was given"}
    with pytest.raises(ProjectionError, match="- in the set, at points"):
        structpred.check_projection(larger, outside=lambda x: float(np.linalg.norm(x)) - 1.0)


def test_the_metric_counts() -> None:
    """The nearest point of a half line by one metric is not the nearest by another."""
    normal, metric = np.array([1.0, 2.0]), np.array([3.0, 0.5])

    def plane(x):
        if x.shape != (2,) or not np.isfinite(x).all():
            raise DataError("two numbers")
        step = metric**-2 * normal
        return x - step * (normal @ x) / (normal @ step)

    structpred.check_projection(plane, shapes=[(2,)], metric=metric, outside=lambda x: abs(normal @ x))
    with pytest.raises(ProjectionError, match="- nearest"):
        structpred.check_projection(plane, shapes=[(2,)])
