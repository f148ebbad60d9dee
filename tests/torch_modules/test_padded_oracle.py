"""The operators of trees and segmentations: derivatives, torch.library's own checks, compilation, export, torch.func."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.projective import ProjectiveOracle

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from structpred.torch import ChainCRF, SemiCRF, TreeCRF  # noqa: E402
from structpred.torch.semi_crf import SEGMENTS  # noqa: E402
from structpred.torch.tree_crf import TREES  # noqa: E402

N, LABELS, LONGEST = 3, 2, 2
TREE_SIZES = [list(own) for own in product((1, 0), repeat=2)]
KINDS = pytest.mark.parametrize("kind", [*(("tree", own) for own in TREE_SIZES), ("segments", [LABELS, LONGEST])], ids=str)
MASK = torch.tensor([[1, 1, 1], [1, 0, 1], [0, 0, 0]], dtype=torch.bool)
HEADS = torch.tensor([[2, 0, 2], [0, 77, 1], [0, 0, 0]])
TAGS = torch.tensor([[1, 3, 2], [3, 77, 2], [0, 0, 0]])


def of(kind: tuple[str, list[int]]) -> tuple[Any, Any, Any, list[int]]:
    """Operator, scores in float64, truth and sizes."""
    torch.manual_seed(0)
    name, sizes = kind
    p = N * (N + 1) if name == "tree" else N * LABELS * LONGEST + LABELS**2
    scores = torch.randn(3, p, dtype=torch.float64, requires_grad=True)
    return *((TREES, scores, HEADS) if name == "tree" else (SEGMENTS, scores, TAGS)), sizes


def module(kind: tuple[str, list[int]]) -> tuple[Any, Any, Any]:
    """A module in float32, and scores and truth for it."""
    torch.manual_seed(0)
    name, sizes = kind
    if name == "tree":
        return TreeCRF(*map(bool, sizes)), torch.randn(3, N, N + 1), HEADS
    return SemiCRF(*sizes), torch.randn(3, N, LABELS), TAGS


@pytest.mark.mostly_slow
@KINDS
def test_gradcheck_and_gradgradcheck(kind: Any) -> None:
    """The likelihood twice, and marginals twice, over holes and an empty sentence."""
    call, scores, truth, sizes = of(kind)
    none = truth[:, :0]
    assert torch.autograd.gradcheck(lambda x: call(x, truth, MASK, sizes)[0], scores)
    assert torch.autograd.gradgradcheck(lambda x: call(x, truth, MASK, sizes)[0], scores)
    assert torch.autograd.gradcheck(lambda x: call(x, none, MASK, sizes)[:2], scores)
    assert torch.autograd.gradgradcheck(lambda x: call(x, none, MASK, sizes)[:2], scores, fast_mode=True)


@pytest.mark.mostly_slow
@KINDS
def test_opcheck(kind: Any) -> None:
    """All four tests of torch.library."""
    call, scores, truth, sizes = of(kind)
    torch.library.opcheck(call.operator, (scores, truth, MASK, sizes))


def by_listing(arcs: Any, sizes: list[int]) -> Any:
    """log Z of one sentence's trees, in torch alone."""
    oracle = (ProjectiveOracle if sizes[1] else ArborescenceOracle)(bool(sizes[0]))
    heads = torch.tensor(np.array(list(oracle.enumerate((N,)))))
    return torch.logsumexp(arcs.view(N, N + 1)[torch.arange(N), heads].sum(1), 0)


@pytest.mark.parametrize("sizes", TREE_SIZES, ids=str)
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_hessians_of_trees_are_those_of_a_list_of_all(size: float, sizes: list[int]) -> None:
    """Those of crossing trees to 1e-11, also where two tokens hold each other far more than the root does; others to 1e-7."""
    torch.manual_seed(1)
    arcs = torch.randn(1, N * (N + 1), dtype=torch.float64)
    arcs[0, [2, 5]] += size  # 2 -> 1 and 1 -> 2
    arcs[0, 7] = -torch.inf
    kept = torch.ones(1, N, dtype=torch.bool)
    found = torch.autograd.functional.hessian(lambda x: -TREES(x, HEADS[:1, :0], kept, sizes)[0].sum(), arcs)[0, :, 0]
    expected = torch.autograd.functional.hessian(lambda x: by_listing(x.clamp(min=-1e30), sizes), arcs[0])
    assert expected.norm() > 0.1
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-7 if sizes[1] else 1e-11)
    third = torch.func.grad(lambda x: torch.func.hessian(lambda y: by_listing(y.clamp(min=-1e30), sizes))(x).square().sum())
    if not sizes[1]:
        ours = torch.func.jacrev(torch.func.grad(lambda x: -TREES(x, HEADS[:1, :0], kept, sizes)[0].sum()))
        found = torch.func.grad(lambda x: ours(x).square().sum())(arcs)[0]
        torch.testing.assert_close(found, third(arcs[0]), rtol=0.0, atol=1e-9)


@KINDS
def test_float32_has_the_derivatives_of_float64(kind: Any) -> None:
    """To the precision of float32, and it comes out in float32."""
    call, scores, truth, sizes = of(kind)
    found = []
    for x in (scores.detach().float().requires_grad_(), scores.detach().float().double().requires_grad_()):
        value, mu, _ = call(x, truth, MASK, sizes)
        (first,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x)
        assert all(own.dtype == x.dtype for own in (value, mu, first, second))
        found.append([own.double() for own in (value, mu, first, second)])
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("compiler", ["eager", "aot_eager"])
@KINDS
def test_compiles_in_one_graph(kind: Any, compiler: str) -> None:
    """compile(fullgraph=True) gives the same likelihood, marginals and gradients of both."""
    crf, given, truth = module(kind)

    def both(x: Any) -> Any:
        return crf(x, truth, MASK), crf.marginals(x, MASK)

    torch.compiler.reset()
    found = []
    for each in (both, torch.compile(both, fullgraph=True, backend=compiler)):
        x = given.clone().requires_grad_()
        value, mu = each(x)
        found.append((value, mu, *torch.autograd.grad(value + mu.square().sum(), (x, *crf.parameters()))))
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


@KINDS
def test_exports(kind: Any) -> None:
    """torch.export keeps the likelihood, for batches of any size."""
    crf, given, truth = module(kind)
    size = torch.export.Dim("size", min=2, max=64)
    program = torch.export.export(crf, (given, truth, MASK), dynamic_shapes=({0: size},) * 3).module()
    assert torch.equal(program(given[:2], truth[:2], MASK[:2]), crf(given[:2], truth[:2], MASK[:2]))


@KINDS
def test_transforms_of_torch_func(kind: Any) -> None:
    """grad, the Hessian by jacrev twice, and vmap over sentences give what autograd gives."""
    crf, given, truth = module(kind)
    crf, x = crf.double(), given.double().requires_grad_()
    (expected,) = torch.autograd.grad(crf(x, truth, MASK), x)
    each = torch.func.vmap(torch.func.grad(lambda x, y, kept: crf(x[None], y[None], kept[None])))
    torch.testing.assert_close(torch.func.grad(lambda x: crf(x, truth, MASK))(x.detach()), expected)
    torch.testing.assert_close(each(x.detach(), truth, MASK), expected)
    hessian = torch.autograd.functional.hessian(lambda x: crf(x, truth, MASK), x)
    twice = torch.func.jacrev(torch.func.jacrev(lambda x: crf(x, truth, MASK)))(x.detach())
    torch.testing.assert_close(twice, hessian, rtol=1e-6, atol=1e-8)
    assert hessian.norm() > 0.1


def test_a_batch_without_positions_is_refused_as_by_chains() -> None:
    """An inverted mask is the same error for chains, trees and segments; one sentence of many may be empty."""
    scores, truth, none = torch.zeros(2, 2, 3), torch.tensor([[1, 0], [3, 1]]), torch.zeros(2, 2, dtype=torch.bool)
    heads = torch.tensor([[0, 1], [0, 1]])
    for crf, right in ((ChainCRF(3), truth.clamp(max=2)), (SemiCRF(3, 2), truth), (TreeCRF(), heads)):
        with pytest.raises(DataError, match=r"^all 4 positions of the batch are masked, or have no label: "):
            crf(scores, right, none)
    one = torch.tensor([[True, True], [False, False]])
    assert TreeCRF()(scores, heads, one, "none")[1].item() == 0.0
    assert TreeCRF()(torch.zeros(0, 2, 3), heads[:0]).item() == 0.0
