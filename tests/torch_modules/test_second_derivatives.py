"""Second derivatives through PyTorch: those of CRF and SoftMarginCRF are right, all others raise; none is a constant."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from structpred import layers
from structpred.errors import MissingCapabilityError
from structpred.oracles.chain import ChainOracle
from structpred.runtime.discovery import public_subclasses

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import structpred.torch  # noqa: E402

SHAPE, GOLD = (4, 3), [0, 2, 1, 1]
TWICE = ("CRF", "SoftMarginCRF")
KINDS = [
    *public_subclasses("structpred.layers", layers.Loss),
    *public_subclasses("structpred.layers", layers.Layer),
]
MORE = {"ExpectedCost": (lambda labels, i: float(labels.sum() + i),)}  # what some losses take besides the oracle
Scalar = Callable[[Any], Any]


def outputs_as_parts() -> Any:
    """A row of part counts for each of the 81 outputs of a chain of four items, the true one first."""
    oracle, outputs = ChainOracle(), [GOLD, *(list(y) for y in product(range(3), repeat=4) if list(y) != GOLD)]
    rows = np.zeros((len(outputs), oracle.n_parts(SHAPE)))
    for row, labels in zip(rows, outputs, strict=True):
        np.add.at(row, oracle.parts(np.array(labels, dtype=np.int64), SHAPE), 1.0)
    return torch.tensor(rows)


def ours(kind: str) -> Scalar:
    """The sum of what a module gives for one chain, as a function of its scores."""
    oracle, rng = ChainOracle(), np.random.default_rng(1)
    module = getattr(structpred.torch, kind)(oracle, *MORE.get(kind, ()))
    n = oracle.n_parts(SHAPE)
    given = {"gold": [GOLD], "costs": np.abs(rng.normal(size=n)), "true_scores": rng.normal(size=n)}
    if isinstance(module, structpred.torch.LayerModule):
        along = torch.tensor(rng.normal(size=n))
        return lambda theta: (module(theta, shapes=[SHAPE], step=1) * along).sum()
    return lambda theta: module(theta, shapes=[SHAPE], step=1, **given).sum()


def plain(kind: str) -> Scalar:
    """The same of CRF or SoftMarginCRF in torch alone, by listing all outputs."""
    rows, rng = outputs_as_parts(), np.random.default_rng(1)
    costs = torch.tensor(np.abs(rng.normal(size=rows.shape[1]))) if kind == "SoftMarginCRF" else 0.0
    return lambda theta: torch.logsumexp(rows @ (theta + costs), 0) - rows[0] @ (theta + costs)


def hessian(value: Scalar) -> Any:
    """The first program: all second derivatives at fixed scores."""
    theta = torch.tensor(np.random.default_rng(0).normal(size=ChainOracle().n_parts(SHAPE)))
    return torch.autograd.functional.hessian(value, theta)


def penalised(value: Scalar) -> Any:
    """The second program: weights of a linear layer under loss + |d loss / dx|^2."""
    torch.manual_seed(0)
    net = torch.nn.Linear(5, ChainOracle().n_parts(SHAPE), dtype=torch.float64)
    x = torch.linspace(-1.0, 1.0, 5, dtype=torch.float64, requires_grad=True)
    loss = value(net(x))
    (by_x,) = torch.autograd.grad(loss, x, create_graph=True)
    (loss + by_x.square().sum()).backward()
    return net.weight.grad


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", TWICE)
@pytest.mark.parametrize("program", [hessian, penalised])
def test_second_derivatives_are_those_of_plain_torch(kind: str, program: Callable[[Scalar], Any]) -> None:
    """A Hessian and the gradient of a gradient penalty equal those of the same loss written in torch alone."""
    expected = program(plain(kind))
    assert expected.norm() > 0.1
    torch.testing.assert_close(program(ours(kind)), expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kind", [kind.__name__ for kind in KINDS if kind.__name__ not in TWICE])
@pytest.mark.parametrize("program", [hessian, penalised])
def test_a_second_derivative_that_is_not_known_raises(kind: str, program: Callable[[Scalar], Any]) -> None:
    """Every other loss and layer refuses both programs by name, from its own backward pass."""
    with pytest.raises(MissingCapabilityError, match=f"{kind} has no second derivative"):
        program(ours(kind))


@pytest.mark.parametrize("kind", TWICE)
def test_gradgradcheck(kind: str) -> None:
    """torch's own check of second derivatives passes over ragged shapes with fixed scores, a temperature and weights of costs."""
    oracle, rng, shapes = ChainOracle(), np.random.default_rng(2), [(3, 2), (1, 3), (2, 2)]
    batch = layers.Scores.of(oracle, shapes)
    module = getattr(structpred.torch, kind)(oracle, temperature=1.5, **({} if kind == "CRF" else {"cost_weight": 0.5}))
    theta = torch.tensor(rng.normal(size=batch.size), requires_grad=True)
    fixed = np.zeros(batch.size, dtype=bool), rng.normal(size=batch.size)
    fixed[0][[1, 4, 12]] = True
    given = {"gold": list(batch.decide(rng.normal(size=batch.size))), "costs": np.abs(rng.normal(size=batch.size))}
    assert torch.autograd.gradgradcheck(lambda x: module(x, shapes=shapes, fixed=fixed, **given), (theta,))


def test_a_loss_with_a_scale_has_its_square_in_the_second_derivative() -> None:
    """The Hessian of a Fenchel-Young loss of the entropy at s theta is s^2 times the covariance there."""
    from structpred.layers.fenchel_young import Entropy, FenchelYoung

    module = structpred.torch.LossModule(FenchelYoung(ChainOracle(), Entropy(2.0), scale=3.0))
    rows = outputs_as_parts()
    found = hessian(lambda theta: module(theta, shapes=[SHAPE], gold=[GOLD]).sum())
    expected = hessian(lambda theta: 2.0 * torch.logsumexp(rows @ (1.5 * theta), 0) - 3.0 * rows[0] @ theta)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


def test_a_third_derivative_raises() -> None:
    """The Hessian product of a CRF is no constant either: what would differentiate it is told so."""
    theta = torch.zeros(ChainOracle().n_parts(SHAPE), dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(ours("CRF")(theta), theta, create_graph=True)
    (second,) = torch.autograd.grad(first[0], theta, create_graph=True)
    with pytest.raises(MissingCapabilityError, match="CRF has no third derivative"):
        second.sum().backward()


@pytest.mark.parametrize("kind", ["CRF", "SparseMAPLoss"])
def test_a_loss_is_in_float32_under_autocast(kind: str) -> None:
    """As torch's own losses are: scores in bfloat16 give a loss in float32 under autocast, and gradients in bfloat16."""
    module, n = getattr(structpred.torch, kind)(ChainOracle()), ChainOracle().n_parts(SHAPE)
    scores = torch.linspace(-1.0, 1.0, n).bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        value = module(scores, shapes=[SHAPE], gold=[GOLD])
        assert module(scores.double(), shapes=[SHAPE], gold=[GOLD]).dtype == torch.float64
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, module(scores.float(), shapes=[SHAPE], gold=[GOLD]), rtol=0.0, atol=0.0)
    value.sum().backward()
    assert scores.grad.dtype == torch.bfloat16
    assert module(scores, shapes=[SHAPE], gold=[GOLD]).dtype == torch.bfloat16
