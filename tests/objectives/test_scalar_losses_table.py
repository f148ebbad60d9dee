"""The scalar losses: the numbers of their definitions, and the closed forms of their dual steps."""

import numpy as np
import pytest

from structpred.errors import ParameterError
from structpred.objectives.scalar.errors import Absolute, Huber, Squared
from structpred.objectives.scalar.margins import Hinge, Logistic, SmoothedHinge
from structpred.rows.scalar_loss import DualTable

RNG = np.random.default_rng(0)
Z, OLD, Q = 2.0 * RNG.normal(size=50), RNG.random(50), RNG.exponential(size=50)
SIGNS, Y = np.where(RNG.random(50) < 0.5, 1.0, -1.0), RNG.normal(size=50)
M = SIGNS * Z  # margins

VALUES = {
    Hinge(): (SIGNS, np.maximum(0.0, 1.0 - M)),
    SmoothedHinge(0.5): (SIGNS, np.where(M <= 0.5, 1.0 - M - 0.25, np.maximum(1.0 - M, 0.0) ** 2)),
    Logistic(): (SIGNS, np.log1p(np.exp(-M))),
    Squared(): (Y, 0.5 * (Z - Y) ** 2),
    Absolute(): (Y, np.abs(Z - Y)),
    Huber(0.5): (Y, np.where(np.abs(Z - Y) <= 0.5, (Z - Y) ** 2, np.abs(Z - Y) - 0.25)),
}
#: b = y a for two classes, a for numbers
STEPS = {
    Hinge(): (SIGNS, np.clip(OLD + (1.0 - M) / Q, 0.0, 1.0)),
    SmoothedHinge(0.5): (SIGNS, np.clip((1.0 - M + Q * OLD) / (Q + 0.5), 0.0, 1.0)),
    Squared(): (Y, OLD + (Y - Z - OLD) / (1.0 + Q)),
    Absolute(): (Y, np.clip(OLD + (Y - Z) / Q, -1.0, 1.0)),
}


@pytest.mark.parametrize("loss", VALUES, ids=lambda loss: loss.name)
def test_values_are_those_of_the_definition(loss) -> None:
    """Table 1 of the sign-constrained paper, from one table of conjugates; r_loss is the mean at zero."""
    y, values = VALUES[loss]
    np.testing.assert_allclose(loss.value(Z, y), values, rtol=1e-12, atol=1e-14)
    assert loss.r_loss(y) == pytest.approx(loss.value(0.0 * y, y).mean())


@pytest.mark.parametrize("loss", STEPS, ids=lambda loss: loss.name)
def test_steps_are_the_closed_forms(loss) -> None:
    """One step along a dual variable, from any variable and any score."""
    y, step = STEPS[loss]
    sign = y if loss.signs else 1.0
    np.testing.assert_allclose(sign * loss.dual_step(sign * OLD, Z, Q, y), step, rtol=1e-12, atol=1e-14)


def test_the_logistic_step_is_the_root_of_its_equation() -> None:
    """-y z - q (b' - b) = log(b' / (1 - b')), also for scores of hundreds and steep rows."""
    for z, q in ((Z, Q), (300.0 * Z, Q), (Z, 1000.0 * Q), (30.0 * Z, 1e-9 * Q)):
        b = SIGNS * Logistic().dual_step(SIGNS * OLD, z, q, SIGNS)
        inside = np.clip(b, 1e-13, 1.0 - 1e-13)
        residual = -SIGNS * z - q * (b - OLD) - np.log(inside / (1.0 - inside))
        assert np.abs(residual * inside * (1.0 - inside)).max() < 1e-12 * (1.0 + np.abs(z).max() + q.max())
        assert ((b >= 0.0) & (b <= 1.0)).all()


def test_a_table_of_wrong_numbers_says_what_is_wrong() -> None:
    """Lengths, signs of the ends, and ends without a curvature."""
    good = DualTable.of(3, 1.0, low=0.0, high=1.0)
    assert good.fault(3) is None
    assert "3 in all" in DualTable.of(2, 1.0, low=0.0, high=1.0).fault(3)
    assert "low <= 0 <= high" in DualTable.of(3, 1.0, low=0.5, high=1.0).fault(3)
    assert "infinite end" in DualTable.of(3, 1.0, low=0.0, high=np.inf).fault(3)
    assert "finite numbers" in DualTable.of(3, np.nan, low=0.0, high=1.0).fault(3)
    assert "numbers >= 0" in DualTable.of(3, 1.0, curvature=-1.0, low=0.0, high=1.0).fault(3)


@pytest.mark.parametrize("kind", [SmoothedHinge, Huber])
@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf])
def test_a_width_must_be_positive(kind, gamma: float) -> None:
    """A corner without a width is another loss."""
    with pytest.raises(ParameterError, match=r"gamma, .*, must be a positive number"):
        kind(gamma)
