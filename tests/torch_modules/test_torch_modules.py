"""Losses and layers as PyTorch modules."""

import io
import subprocess
import sys

import numpy as np
import pytest

from structpred import layers
from structpred.core.oracle import Oracle
from structpred.errors import DataError, MissingCapabilityError
from structpred.oracles.chain import ChainOracle
from structpred.runtime.discovery import public_subclasses

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import structpred.torch  # noqa: E402

LOSSES = list(public_subclasses("structpred.layers", layers.Loss))
LAYERS = list(public_subclasses("structpred.layers", layers.Layer))
SHAPES = [(3, 2), (1, 3), (2, 2)]
MORE = {"ExpectedCost": (lambda labels, i: float(labels.sum() + i),)}  # what some losses take besides the oracle


class ThreeMethods(Oracle):
    """One or two neighbouring items out of n, by listing: an oracle as users write it."""

    def n_parts(self, shape):
        return shape[0]

    def outputs(self, shape):
        return [[i] for i in range(shape[0])] + [[i, i + 1] for i in range(shape[0] - 1)]

    def argmax(self, scores, shape):
        return np.array(max(self.outputs(shape), key=lambda y: sum(scores[i] for i in y)), dtype=np.int64)

    def parts(self, labels, shape):
        return labels

    @staticmethod
    def example_shapes():
        return [(2,), (4,)]


def example(oracle, shapes, seed=0):
    """Scores as a leaf in float64, and all that a loss may be given, for a ragged batch."""
    rng = np.random.default_rng(seed)
    batch = layers.Scores.of(oracle, shapes)
    theta = torch.tensor(rng.normal(size=batch.size), requires_grad=True)
    given = {"true_scores": rng.normal(size=batch.size), "costs": np.abs(rng.normal(size=batch.size))}
    given["gold"] = list(batch.decide(given["true_scores"]))
    return theta, given, batch


def needs_only_argmax(kind):
    """Whether an oracle of three methods will do."""
    return kind.requires == ("argmax",)


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.__name__)
def test_the_gradient_of_each_loss_reaches_the_scores(kind):
    """A loss gives its numpy values, and its numpy gradient times what comes from above, for a ragged batch."""
    import structpred.torch

    oracle = ThreeMethods() if needs_only_argmax(kind) else ChainOracle()
    shapes = [(4,), (2,), (5,)] if needs_only_argmax(kind) else SHAPES
    theta, given, batch = example(oracle, shapes)
    more = MORE.get(kind.__name__, ())
    module = getattr(structpred.torch, kind.__name__)(oracle, *more)
    values, record = module.record(theta, shapes=shapes, step=3, **given)
    plain = kind(oracle, *more)(batch, theta.detach().numpy(), step=3, **given)
    np.testing.assert_array_equal(values.detach().numpy(), plain.values)
    np.testing.assert_array_equal(record.labels.labels, plain.labels.labels)
    (values * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    expected = np.repeat([1.0, 2.0, 3.0], np.diff(batch.offsets)) * plain.gradient
    np.testing.assert_array_equal(theta.grad.numpy(), expected)


@pytest.mark.parametrize("kind", LAYERS, ids=lambda kind: kind.__name__)
def test_each_layer_pulls_gradients_back(kind):
    """A layer gives its numpy point, and the gradient is its pull-back, for a ragged batch."""
    import structpred.torch

    oracle = ThreeMethods() if needs_only_argmax(kind) else ChainOracle()
    shapes = [(4,), (2,), (5,)] if needs_only_argmax(kind) else SHAPES
    theta, _, batch = example(oracle, shapes)
    mu = getattr(structpred.torch, kind.__name__)(oracle)(theta, shapes=shapes, step=2)
    plain = kind(oracle)(batch, theta.detach().numpy(), step=2)
    np.testing.assert_array_equal(mu.detach().numpy(), plain.mu)
    above = np.random.default_rng(1).normal(size=batch.size)
    mu.backward(torch.tensor(above))
    np.testing.assert_array_equal(theta.grad.numpy(), plain.pull(above))


@pytest.mark.parametrize("oracle", [ChainOracle(), ThreeMethods()], ids=["chain", "own"])
def test_gradcheck_on_ragged_batches(oracle):
    """torch's own check of derivatives passes for the SparseMAP loss and layer, over chains and over an own oracle."""
    from structpred.torch import SparseMAP, SparseMAPLoss

    shapes = [(2, 2), (1, 3)] if isinstance(oracle, ChainOracle) else [(4,), (2,)]
    theta, given, _ = example(oracle, shapes, seed=3)
    loss, layer = SparseMAPLoss(oracle, warm=False), SparseMAP(oracle, warm=False)
    assert torch.autograd.gradcheck(lambda x: loss(x, shapes=shapes, gold=given["gold"]), (theta,))
    assert torch.autograd.gradcheck(lambda x: layer(x, shapes=shapes), (theta,))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_types_and_forms_come_back_as_they_went_in(dtype):
    """Rows, flat and nested scores of any float type give answers of that form and type, equal to float64's to its precision."""
    from structpred.torch import SparseMAP, SparseMAPLoss

    oracle, kind = ThreeMethods(), getattr(torch, dtype)
    rows = torch.tensor([[1.0, 0.5, -0.25], [0.0, 0.75, 0.5]], dtype=kind)
    layer, shapes = SparseMAP(oracle, warm=False), [(3,), (3,)]
    mu = layer(rows, shapes=shapes)
    assert (mu.shape, mu.dtype) == ((2, 3), kind)
    exact = layer(rows.double(), shapes=shapes)
    assert (mu.double() - exact).abs().max() <= {"float32": 1e-5, "float64": 0.0, "bfloat16": 1e-2}[dtype]
    assert torch.equal(layer(rows.reshape(-1), shapes=shapes), mu.reshape(-1))
    assert SparseMAPLoss(oracle)(rows, shapes=shapes, gold=[[0], [1]]).dtype == kind


@pytest.mark.slow
def test_nested_tensors_carry_ragged_batches():
    """A nested tensor with a component an instance gives a nested tensor, and gradients flow to its components."""
    from structpred.torch import SparseMAP

    oracle, pieces = (
        ThreeMethods(),
        [torch.tensor([1.0, 0.2], requires_grad=True), torch.tensor([0.3, 0.1, 0.9], requires_grad=True)],
    )
    nested = torch.nested.as_nested_tensor(pieces, layout=torch.jagged)
    mu = SparseMAP(oracle, warm=False)(nested, shapes=[(2,), (3,)])
    assert mu.is_nested
    flat = SparseMAP(oracle, warm=False)(torch.cat(pieces), shapes=[(2,), (3,)])
    assert torch.equal(torch.cat(list(mu.unbind())), flat)
    mu.unbind()[1][0].backward()
    assert pieces[1].grad.abs().sum() > 0
    assert pieces[0].grad is None or pieces[0].grad.abs().sum() == 0


def test_errors_are_clear():
    """A second derivative raises; NaN in scores or gradients names sample and part; integers and three dimensions are refused."""
    from structpred.torch import SparseMAP, SparseMAPLoss

    oracle, shapes = ThreeMethods(), [(2,), (3,)]
    theta, given, _ = example(oracle, shapes)
    loss, layer = SparseMAPLoss(oracle), SparseMAP(oracle)
    value = loss(theta, shapes=shapes, gold=given["gold"]).sum()
    (gradient,) = torch.autograd.grad(value, theta, create_graph=True)
    with pytest.raises(MissingCapabilityError, match="SparseMAPLoss has no second derivative"):
        gradient.sum().backward()
    broken = theta.detach().clone()
    broken[3] = float("nan")
    with pytest.raises(DataError, match="sample 1: part 1 has the score nan"):
        loss(broken, shapes=shapes, gold=given["gold"])
    with pytest.raises(DataError, match="sample 0: part 1 has the gradient inf"):
        layer(theta, shapes=shapes).backward(torch.tensor([0.0, float("inf"), 0.0, 0.0, 0.0]))
    with pytest.raises(DataError, match="tensor of floats"):
        layer(torch.tensor([1, 2, 3]), shapes=[(3,)])
    with pytest.raises(DataError, match="reshape"):
        layer(torch.zeros(1, 1, 3), shapes=[(3,)])


def test_a_network_with_a_layer_is_saved_and_goes_on_with_its_noise():
    """torch.save keeps a module whole; the step counts on in training, is part of the state, and stays in evaluation."""
    from structpred.torch import SparseMAP

    module = SparseMAP(ChainOracle(), temperature=2.0)
    theta = torch.zeros(10)
    module(theta, shapes=[(3, 2)])
    module(theta, shapes=[(3, 2)])
    module.eval()
    module(theta, shapes=[(3, 2)])
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    assert int(again.step) == 2
    assert again.layer.temperature == 2.0
    fresh = SparseMAP(ChainOracle())
    fresh.load_state_dict(module.state_dict())
    assert int(fresh.step) == 2


def test_what_a_layer_learns_in_pull_backs_is_saved_with_the_network():
    """A run from a saved state gives the bits of one that went on, also where pull-backs depend on those before."""
    from structpred.torch import AdaptiveSmoothedDifferenceLayer

    def train(module, passes):
        found = []
        for _ in range(passes):
            theta = torch.linspace(-1.0, 1.0, 10, dtype=torch.float64, requires_grad=True)
            module(theta, shapes=[(3, 2)])[0].backward()
            found.append(theta.grad.tolist())
        return found

    def make():
        return AdaptiveSmoothedDifferenceLayer(ChainOracle(), rate=0.2, samples=4)

    whole, first, second = make(), make(), make()
    expected = train(whole, 12)
    train(first, 6)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file))  # plain numbers and tensors alone
    assert train(second, 6) == expected[6:]
    assert train(make(), 6) != expected[6:]


@pytest.mark.parametrize("name", ["SparseMAPLoss", "SparseMAP", "ListwiseRanking"])
def test_a_run_that_was_killed_goes_on_with_the_same_bits(name, tmp_path):
    """Outputs that are kept for ids are part of the saved state: a new network that takes it up ends with the same weights."""
    shapes, rng = [(8,), (9,), (7,), (9,)], np.random.default_rng(0)
    features = [torch.tensor(rng.normal(size=(n, 3))) for (n,) in shapes]
    truth = [torch.tensor(rng.normal(size=n)) for (n,) in shapes]

    def fresh():
        module = getattr(structpred.torch, name)(ThreeMethods())
        net = torch.nn.Linear(3, 1, bias=False, dtype=torch.float64)
        torch.nn.init.zeros_(net.weight)
        return torch.nn.ModuleDict({"net": net, "last": module})

    def train(model, steps):
        for k in steps:
            at = [k % 4, (k + 1) % 4]
            theta, c = torch.cat([model["net"](features[i]).ravel() for i in at]), torch.cat([truth[i] for i in at])
            own = {"shapes": [shapes[i] for i in at], "ids": at}
            more = {} if name == "SparseMAP" else {"true_scores": c}
            found = model["last"](theta, **own, **more)
            value = ((found - 0.3) ** 2).sum() if name == "SparseMAP" else found.sum()
            model.zero_grad()
            value.backward()
            with torch.no_grad():
                model["net"].weight -= 0.1 * model["net"].weight.grad
        return model["net"].weight.detach().numpy().tobytes()

    expected = train(fresh(), range(30))
    killed = fresh()
    train(killed, range(17))
    torch.save(killed.state_dict(), tmp_path / "state.pt")
    again = fresh()
    again.load_state_dict(torch.load(tmp_path / "state.pt"))
    assert train(again, range(17, 30)) == expected
    forgetful = fresh()
    forgetful["net"].load_state_dict(killed["net"].state_dict())
    assert train(forgetful, range(17, 30)) != expected


def test_structpred_needs_no_torch():
    """`import structpred` and its losses load no torch; without it `structpred.torch` says what to install."""
    program = (
        "import sys; import structpred; from structpred.layers import SPOPlus; assert 'torch' not in sys.modules\n"
        "import importlib.util as u; u.find_spec = lambda name: None\n"
        "try:\n    import structpred.torch\nexcept ImportError as error:\n    print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("DependencyError structpred.torch needs PyTorch: pip install torch")
