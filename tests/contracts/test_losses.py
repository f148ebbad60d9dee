"""check_loss finds each broken loss, names the rule with a cause that fits, and passes losses that are right."""

import re

import numpy as np
import pytest
from broken_losses import BROKEN, Distance, Missed, OldAndNew, OldProtocol, SharedTable
from structures import STRUCTURES, AtMost
from test_oracles import discovered

import structpred
from structpred.core.costs import PartCosts
from structpred.core.oracle import Oracle
from structpred.errors import LossError, OracleError
from structpred.objectives.part_losses import Hamming, LabelCosts
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.portfolio import PortfolioOracle
from structpred.oracles.semimarkov import SemiMarkovOracle


@pytest.mark.parametrize(("loss", "oracle", "rule", "cause"), BROKEN, ids=[loss.__name__ for loss, *_ in BROKEN])
def test_each_broken_loss_is_found_with_a_fitting_cause(loss, oracle, rule, cause) -> None:
    """The error names the loss, the rule, the shape and the truth, what was expected, what came, and the cause of the fault."""
    with pytest.raises(LossError) as caught:
        structpred.check_loss(loss(), oracle())
    message = str(caught.value)
    line = next(line for line in message.splitlines() if line.startswith(f"- {rule}, at shape "))
    assert message.startswith(f"{loss.__name__} breaks ")
    assert re.search(cause, line.split("Likely cause: ")[1]), line


def test_a_table_that_is_filled_again_is_found() -> None:
    """Also where the costs are those of labels."""
    with pytest.raises(LossError, match="shared buffer"):
        structpred.check_loss(SharedTable(), ChainOracle(), shapes=[(3, 4)])


@pytest.mark.parametrize("loss", [OldProtocol(), OldAndNew(), Missed, object()])
def test_what_is_no_loss_is_refused_at_once(loss) -> None:
    """An older protocol, a class in place of an object, anything without costs."""
    with pytest.raises(LossError, match=r"check_loss: .*costs\(labels, shape, oracle\)"):
        structpred.check_loss(loss, ChainOracle())


# segmentations have a transition as often as it comes: the count of missed parts is then no loss, see below; portfolios have no
# parts that could be missed
WITHOUT_HAMMING = (SemiMarkovOracle, PortfolioOracle)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", [k for k in discovered() if k not in WITHOUT_HAMMING], ids=lambda kind: kind.__name__)
def test_hamming_keeps_its_contract_with_every_oracle(kind: type[Oracle]) -> None:
    """No false alarm, whether costs are those of labels or of parts."""
    assert structpred.check_loss(Hamming(), kind()).checked["the truth costs 0"] > 5


@pytest.mark.parametrize("kind", STRUCTURES, ids=[kind.__name__ for kind in STRUCTURES])
def test_losses_of_parts_keep_the_contract(kind: type[Oracle]) -> None:
    """No false alarm for outputs of varying length, and one that is empty."""
    assert structpred.check_loss(Missed(), kind()).checked["no output costs less than 0"] > 5


def test_parts_that_come_twice_are_told() -> None:
    """Counting the true parts that are missed goes below 0 where an output has such a part more often than the truth."""
    with pytest.raises(
        LossError, match=r"no output costs less than 0, at shape \(4, 1, 3\).*a true part that is counted each time"
    ):
        structpred.check_loss(Missed(), SemiMarkovOracle())


def test_losses_that_are_right_pass() -> None:
    """A matrix of label costs, and distances; the report tells what was checked."""
    report = structpred.check_loss(LabelCosts([[0, 2], [1, 0]]), ChainOracle(), shapes=[(1, 2), (3, 2)])
    assert report.shapes == ((1, 2), (3, 2))
    assert "LabelCosts satisfies its contract on 2 shapes" in str(report)
    report = structpred.check_loss(Distance(), AssignmentOracle())
    assert {"nondeterminism", "shared buffer", "mutated input", "the truth costs 0"} <= set(report.checked)
    assert not report.skipped


def test_what_cannot_be_checked_is_said() -> None:
    """Without enumerate only outputs that argmax gives are compared; a loss that is zero everywhere is told of."""

    class Blind(AtMost):
        enumerate = None

        def parts(self, labels, shape):
            return labels

    class Nothing:
        def costs(self, labels, shape, oracle):
            return PartCosts(0.0, np.zeros(oracle.n_parts(shape)))

    report = structpred.check_loss(Nothing(), Blind())
    assert "no usable enumerate(shape)" in report.skipped["some outputs"]
    assert "training with a margin would change nothing" in report.skipped["a wrong output costs more than 0"]


def test_a_broken_oracle_is_not_blamed_on_the_loss() -> None:
    """What is wrong with the oracle is an OracleError of its own."""

    class Bad(AssignmentOracle):
        def n_parts(self, shape):
            raise KeyError("n")

    with pytest.raises(OracleError, match="Bad breaks 1 of the rules"):
        structpred.check_loss(Hamming(), Bad())
