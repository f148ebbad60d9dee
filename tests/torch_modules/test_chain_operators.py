"""The operator of chains: derivatives of any order, torch.library's own checks, compilation, export, torch.func, ONNX."""

from importlib.util import find_spec
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from structpred.torch import ChainCRF, Scan  # noqa: E402
from structpred.torch.chain_operators import chain, chain_best, chain_sums, known_labels  # noqa: E402

BACKENDS = pytest.mark.parametrize("backend", [None, Scan(checked=False)], ids=["kernels", "scan"])


def given(n: int = 3, longest: int = 4, m: int = 3) -> tuple[Any, Any, Any]:
    """Scores, a table, and masks with holes, one of them empty."""
    torch.manual_seed(0)
    mask = torch.tensor([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]], dtype=torch.bool)
    emissions, table = torch.randn(n, longest, m, dtype=torch.float64), torch.randn(m + 1, m + 1, dtype=torch.float64)
    return emissions.requires_grad_(), table.requires_grad_(), mask


def of_chain(backend: Any, partial: bool = False) -> tuple[Any, Any, Any, Any]:
    """A module in float32, and a batch for it."""
    torch.manual_seed(0)
    crf = ChainCRF(4, backend=backend, partial=partial)
    tags = torch.randint(4, (3, 5))
    tags[0, 1] = -100
    return crf, torch.randn(3, 5, 4), tags, torch.rand(3, 5) > 0.3


def test_gradcheck_and_gradgradcheck() -> None:
    """log Z twice, marginals and expected transitions once more, by scores and transitions, over holes and an empty sentence."""
    emissions, table, mask = given()
    assert torch.autograd.gradcheck(lambda x, w: chain(x, w, mask), (emissions, table))
    assert torch.autograd.gradgradcheck(lambda x, w: chain(x, w, mask), (emissions, table))


def test_the_gold_labels_are_subtracted() -> None:
    """With labels the operator gives log Z less their score, and its gradients; forbidden ones leave an infinite loss."""
    emissions, table, mask = given()
    labels = torch.tensor([[0, 2, 1, 1], [7, 1, -5, 0], [9, 9, 9, 9]])  # what is masked may be anything
    (log_z, tokens, pairs), (loss, by_tokens, by_pairs) = chain(emissions, table, mask), chain(emissions, table, mask, labels)
    for i, kept in ((0, [0, 1, 2, 3]), (1, [1, 3])):
        y = labels[i, kept].tolist()
        for t, label in zip(kept, y, strict=True):
            tokens[i, t, label] -= 1.0
        for before, label in pairwise((3, *y, 3)):
            pairs[i, before, label] -= 1.0
        score = sum(emissions[i, t, label] for t, label in zip(kept, y, strict=True))
        log_z[i] -= score + sum(table[before, label] for before, label in pairwise((3, *y, 3)))
    torch.testing.assert_close((loss, by_tokens, by_pairs), (log_z, tokens, pairs))
    barred = emissions.detach().clone()
    barred[0, 1, 2] = -torch.inf
    assert chain(barred, table, mask, labels)[0].tolist()[0] == np.inf


@BACKENDS
def test_gradgradcheck_of_the_module(backend: Any) -> None:
    """The likelihood of a ChainCRF passes it by scores, transitions, first and last tags."""
    crf, emissions, tags, mask = of_chain(backend)
    crf = crf.double()
    names = [name for name, _ in crf.named_parameters()]

    def value(x: Any, *own: Any) -> Any:
        return torch.func.functional_call(crf, dict(zip(names, own, strict=True)), (x, tags, mask))

    assert torch.autograd.gradgradcheck(value, (emissions.double().requires_grad_(), *crf.parameters()))


def test_opcheck() -> None:
    """All four tests of torch.library, for each operator."""
    emissions, table, mask = given()
    for labels in (torch.zeros(3, 0, dtype=torch.long), torch.ones(3, 4, dtype=torch.long)):
        torch.library.opcheck(chain_sums, (emissions, table, mask, labels))
    torch.library.opcheck(chain_best, (emissions.detach(), table.detach(), mask, -100))
    torch.library.opcheck(known_labels, (torch.zeros(3, 4, dtype=torch.long), mask, 3))


def plain(theta: Any) -> Any:
    """The loss of one chain of 4 positions and 3 labels in torch alone, by listing: the scores, then transitions."""
    x, follow, gold = theta[:12].view(4, 3), theta[12:].view(3, 3), (0, 2, 1, 1)
    scores = [
        sum(x[t, tag] for t, tag in enumerate(y)) + sum(follow[a, b] for a, b in pairwise(y))
        for y in (gold, *product(range(3), repeat=4))
    ]
    return torch.logsumexp(torch.stack(scores[1:]), 0) - scores[0]


def ours(backend: Any) -> Any:
    """The same by a ChainCRF."""
    crf, none = ChainCRF(3, backend=backend), torch.zeros(3, dtype=torch.float64)
    edges = {"start_transitions": none, "end_transitions": none}

    def loss(theta: Any) -> Any:
        own = {**edges, "transitions": theta[12:].view(3, 3)}
        return -torch.func.functional_call(crf, own, (theta[:12].view(1, 4, 3), torch.tensor([[0, 2, 1, 1]])))

    return loss


@BACKENDS
def test_hessian_and_gradient_penalty_are_those_of_plain_torch(backend: Any) -> None:
    """The Hessian of a chain of 4 x 3, to 1e-9, and the gradient of loss + |d loss / dx|^2 by a linear layer's weights."""
    theta = torch.tensor(np.random.default_rng(0).normal(size=21))
    found, expected = (torch.autograd.functional.hessian(loss, theta) for loss in (ours(backend), plain))
    assert expected.norm() > 1.0
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-9)
    penalties = []
    for loss in (ours(backend), plain):
        torch.manual_seed(0)
        net, x = (
            torch.nn.Linear(5, 21, dtype=torch.float64),
            torch.linspace(-1.0, 1.0, 5, dtype=torch.float64, requires_grad=True),
        )
        value = loss(net(x))
        (by_x,) = torch.autograd.grad(value, x, create_graph=True)
        (value + by_x.square().sum()).backward()
        penalties.append(net.weight.grad)
    torch.testing.assert_close(*penalties, rtol=0.0, atol=1e-9)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("compiler", ["eager", "aot_eager"])
@BACKENDS
@pytest.mark.parametrize("partial", [False, True])
def test_compiles_in_one_graph(partial: bool, backend: Any, compiler: str) -> None:
    """compile(fullgraph=True) gives the same likelihood and gradients."""
    crf, emissions, tags, mask = of_chain(backend, partial)
    torch.compiler.reset()
    found = []
    for each in (crf, torch.compile(crf, fullgraph=True, backend=compiler)):
        x = emissions.clone().requires_grad_()
        value = each(x, tags, mask)
        found.append((value, *torch.autograd.grad(value, (x, *crf.parameters()))))
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


class Tagger(torch.nn.Module):  # type: ignore[misc]
    """A network whose output is decoded."""

    def __init__(self, backend: Any, m: int = 4, width: int = 4) -> None:
        super().__init__()
        self.net, self.crf = torch.nn.Linear(width, m), ChainCRF(m, backend=backend)

    def forward(self, x: Any, mask: Any) -> Any:
        """The best tags."""
        return self.crf.best_tags(self.net(x), mask)


@BACKENDS
def test_exports(backend: Any) -> None:
    """torch.export keeps decisions, for batches of any size, and the likelihood."""
    crf, emissions, tags, mask = of_chain(backend)
    tagger, size = Tagger(backend), torch.export.Dim("size", min=2, max=64)
    program = torch.export.export(tagger, (emissions, mask), dynamic_shapes=({0: size}, {0: size})).module()
    assert torch.equal(program(emissions[:2], mask[:2]), tagger(emissions[:2], mask[:2]))
    assert torch.equal(
        torch.export.export(crf, (emissions, tags, mask)).module()(emissions, tags, mask), crf(emissions, tags, mask)
    )


@BACKENDS
def test_transforms_of_torch_func(backend: Any) -> None:
    """grad, the Hessian by jacrev twice, and vmap over sentences give what autograd gives one by one."""
    crf, emissions, tags, mask = of_chain(backend)
    crf, x = crf.double(), emissions.double().requires_grad_()
    (expected,) = torch.autograd.grad(crf(x, tags, mask), x)
    each = torch.func.vmap(torch.func.grad(lambda x, y, kept: crf(x[None], y[None], kept[None])))
    torch.testing.assert_close(torch.func.grad(lambda x: crf(x, tags, mask))(x.detach()), expected)
    torch.testing.assert_close(each(x.detach(), tags, mask), expected)
    hessian = torch.autograd.functional.hessian(lambda x: crf.log_partition(x, mask).sum(), x)
    twice = torch.func.jacrev(torch.func.jacrev(lambda x: crf.log_partition(x, mask).sum()))(x.detach())
    torch.testing.assert_close(twice, hessian)


def onnx_missing() -> str:
    """What of the packages is not installed."""
    return ", ".join(name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None)


@pytest.mark.slow
@pytest.mark.skipif(bool(onnx_missing()), reason=f"not installed: {onnx_missing()}")
def test_decoding_in_onnx(tmp_path: Path) -> None:
    """A network with Scan as one file of ONNX: onnxruntime finds the same tags, with holes, for batches of another size."""
    import onnxruntime

    torch.manual_seed(0)
    tagger, size = Tagger(Scan(), 9, 16).eval(), torch.export.Dim("size", min=2, max=512)
    x, mask = torch.randn(4, 20, 16), torch.ones(4, 20, dtype=torch.bool)
    torch.onnx.export(
        tagger, (x, mask), tmp_path / "tagger.onnx", dynamo=True, verbose=False, dynamic_shapes=({0: size}, {0: size}),
        input_names=["x", "mask"],
    )  # fmt: skip
    session = onnxruntime.InferenceSession(tmp_path / "tagger.onnx")
    x, mask = torch.randn(30, 20, 16), torch.rand(30, 20) > 0.2
    (found,) = session.run(None, {"x": x.numpy(), "mask": mask.numpy()})
    assert np.array_equal(found, tagger(x, mask).numpy())
    tagger.crf.backend = ChainCRF(9).backend
    assert np.array_equal(found, tagger(x, mask).numpy())
