"""check_scalar_loss finds each broken loss, names the rule with a cause that fits, and passes those that are right."""

import re

import numpy as np
import pytest
from broken_scalar_losses import BROKEN

import structpred
from structpred.errors import LossError, MissingCapabilityError
from structpred.objectives.names import scalar_losses
from structpred.objectives.scalar.errors import Squared
from structpred.rows.linear_task import RegressionTask
from structpred.rows.scalar_loss import ScalarLoss


class Softplus(ScalarLoss):
    """log(1 + exp(z - y)): no table."""

    gamma = 4.0

    def value(self, z, y):
        return np.logaddexp(0.0, z - y)

    def derivative(self, z, y):
        from scipy.special import expit

        return expit(z - y)


@pytest.mark.parametrize("name", scalar_losses())
def test_every_scalar_loss_keeps_its_contract(name: str) -> None:
    """Each one that is found by its name; the report tells what was checked."""
    report = structpred.check_scalar_loss(scalar_losses()[name]())
    assert {"derivative", "convexity", "smoothness", "conjugate is tight", "Fenchel and Young", "dual step", "r_loss"} <= set(
        report.checked
    )


def test_a_loss_without_a_table_is_checked_as_far_as_it_goes() -> None:
    """The report says that dual steps were not checked, and a dual step is refused."""
    report = structpred.check_scalar_loss(Softplus())
    assert "no dual_table" in report.skipped["dual step"]
    with pytest.raises(MissingCapabilityError, match="Softplus has no dual_table"):
        Softplus().dual_step(np.zeros(1), np.zeros(1), 1.0, np.zeros(1))


@pytest.mark.parametrize(("kind", "rule", "cause"), BROKEN, ids=[kind.__name__ for kind, *_ in BROKEN])
def test_each_broken_scalar_loss_is_found_with_a_fitting_cause(kind, rule, cause) -> None:
    """The error names the loss, the rule, the case, what was expected, what came, and the cause of the fault."""
    with pytest.raises(LossError) as caught:
        structpred.check_scalar_loss(kind())
    message = str(caught.value)
    found = [line for line in message.splitlines() if line.startswith(f"- {rule}, at ")]
    assert message.startswith(f"{kind.__name__} breaks ")
    assert found, message
    assert re.search(cause, found[0].split("Likely cause: ")[1]), found[0]


class Late(ScalarLoss):
    """A derivative that is wrong between two of the numbers that were tried alone."""

    gamma = 1.0

    def value(self, z, y):
        return 0.5 * (z - y) ** 2

    def derivative(self, z, y):
        return np.where((z > 0.35) & (z < 0.95), 2.0, 1.0) * (z - y)


class LateTable(Squared):
    """A table that is wrong from the 201st sample on."""

    def value(self, z, y):
        return 0.5 * (z - y) ** 2

    def derivative(self, z, y):
        return z - y

    def dual_table(self, y):
        far = np.arange(len(y)) >= 200
        return super().dual_table(np.where(far, 2.0 * y, y))


@pytest.mark.parametrize("kind", [Late, LateTable])
def test_training_refuses_what_is_wrong_beyond_the_first_samples_and_scores(kind) -> None:
    """Targets and scores are drawn by lot, and every target is tried."""
    from scipy import sparse

    rng = np.random.default_rng(1)
    task = RegressionTask(sparse.csr_array(rng.normal(size=(400, 3))), rng.normal(size=400))
    with pytest.raises(LossError, match="run check_scalar_loss"):
        kind().check_task(task)
