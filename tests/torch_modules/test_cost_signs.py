"""Costs in place of scores: the signs of PyEPO, what is refused, and where shapes may be left out."""

import numpy as np
import pytest

from structpred import layers
from structpred.errors import ParameterError
from structpred.layers import Scores
from structpred.oracles import MilpOracle, MulticlassOracle, SolverOracle
from structpred.runtime.discovery import public_subclasses

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import structpred.torch  # noqa: E402

ORACLE, SHAPES = MulticlassOracle(), [(3,)] * 4
TRUE = [kind for kind in public_subclasses("structpred.layers", layers.Loss) if "true_scores" in kind.takes]


@pytest.mark.parametrize("kind", TRUE, ids=lambda kind: kind.__name__)
def test_costs_are_minus_scores(kind) -> None:
    """Of every loss of true scores: for predicted and true costs the values are the same, the gradient is minus that."""
    costs, true = np.random.default_rng(0).normal(size=(2, 4, 3))
    scored = kind(ORACLE)(Scores.of(ORACLE, SHAPES), -costs, true_scores=-true)
    module = getattr(structpred.torch, kind.__name__)(ORACLE)
    predicted = torch.tensor(costs, requires_grad=True)
    values = module(predicted, true_costs=torch.tensor(true), shapes=SHAPES)
    values.sum().backward()
    np.testing.assert_array_equal(values.detach().numpy(), scored.values)
    np.testing.assert_array_equal(predicted.grad.numpy().ravel(), -scored.gradient)
    with pytest.raises(ParameterError, match="not both"):
        module(predicted, true_costs=true, true_scores=true, shapes=SHAPES)


def test_two_unnamed_arguments_are_refused() -> None:
    """PyEPO's loss(pred, true) says nothing of the sign: the error says what to write; so does a missing truth."""
    loss, theta = structpred.torch.SPOPlus(ORACLE), torch.zeros(4, 3)
    with pytest.raises(ParameterError, match=r"loss\(costs, true_costs=...\).*as in PyEPO.*loss\(scores, true_scores"):
        loss(theta, theta)
    for given in ({}, {"costs": theta}):
        with pytest.raises(ParameterError, match=r"SPOPlus needs true_scores=.*maximised.*or true_costs=, minimised"):
            loss(theta, shapes=SHAPES, **given)


def test_shapes_may_be_left_out_where_there_is_one() -> None:
    """Of a programme or a function; other oracles ask for them."""
    programme = MilpOracle(None, None, A_eq=[[1, 1, 1]], b_eq=[1])
    function = SolverOracle(lambda c: c == c.min(), 3, minimises=True, exact=True)
    costs, true = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[3.0, 1.0, 2.0]])
    wanted = structpred.torch.SPOPlus(ORACLE)(costs, true_costs=true, shapes=SHAPES[:1])
    for oracle in (programme, function):
        assert structpred.torch.SPOPlus(oracle)(costs, true_costs=true).tolist() == wanted.tolist()
    with pytest.raises(ParameterError, match="shapes= is missing"):
        structpred.torch.SPOPlus(ORACLE)(costs, true_costs=true)
    with pytest.raises(ParameterError, match="shapes= is missing"):
        structpred.torch.SPOPlus(programme)(costs[0], true_costs=true[0])


def test_a_net_trained_on_costs_learns_the_cheapest() -> None:
    """SPO+ on predicted and true costs leads to decisions that cost least; nothing is turned round on the way."""
    torch.manual_seed(0)
    x = torch.randn(40, 2, dtype=torch.float64)
    true = x @ torch.randn(2, 3, dtype=torch.float64)
    net = torch.nn.Linear(2, 3, dtype=torch.float64)
    loss, adam = structpred.torch.SPOPlus(ORACLE), torch.optim.Adam(net.parameters(), 0.1)
    for _ in range(60):
        adam.zero_grad()
        loss(net(x), true_costs=true, shapes=[(3,)] * 40).mean().backward()
        adam.step()
    assert (net(x).argmin(1) == true.argmin(1)).double().mean() > 0.9
