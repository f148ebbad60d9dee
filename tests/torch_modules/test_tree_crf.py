"""TreeCRF beside enumeration: any mask, one root or more, crossing arcs or none; derivatives; bad heads."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.projective import ProjectiveOracle

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from structpred.torch import TreeCRF  # noqa: E402

KINDS = pytest.mark.parametrize(("single_root", "projective"), list(product([True, False], repeat=2)))


def batch() -> tuple[Any, Any]:
    """Scores of four sentences of up to four tokens: masks with holes, one without a token; what is masked may be anything."""
    torch.manual_seed(0)
    arcs = torch.randn(4, 4, 5, dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 1, 1]], dtype=torch.bool)
    arcs[0, 1, 3] = -torch.inf
    arcs[1, 0] = torch.nan
    return arcs, mask


@KINDS
def test_equal_to_enumeration(single_root: bool, projective: bool) -> None:
    """Likelihoods, marginals and the best trees are those of a list of all trees, heads being numbered as in the batch."""
    crf, (arcs, mask) = TreeCRF(single_root, projective), batch()
    oracle = (ProjectiveOracle if projective else ArborescenceOracle)(single_root)
    heads, expected, mu = torch.zeros(4, 4, dtype=torch.long), [], torch.zeros(4, 4, 5, dtype=torch.float64)
    for i in range(4):
        at = mask[i].nonzero()[:, 0].numpy()
        known = np.append(0, at + 1)
        trees = [known[y] for y in oracle.enumerate((len(at),))] if len(at) else [known[:0]]
        scores = np.array([arcs[i, at, y].sum().item() for y in trees])
        log_z, true = np.logaddexp.reduce(scores), int(np.flatnonzero(scores > -np.inf)[-1])
        for y, score in zip(trees, scores, strict=True):
            mu[i, at, y] += np.exp(score - log_z)
        heads[i, at] = torch.as_tensor(trees[true])
        expected.append(scores[true] - log_z)
        assert crf.decode(arcs, mask)[i] == trees[int(scores.argmax())].tolist()
    torch.testing.assert_close(crf(arcs, heads, mask, reduction="none"), torch.tensor(expected, dtype=torch.float64))
    torch.testing.assert_close(crf.marginals(arcs, mask), mu)


@KINDS
def test_derivatives(single_root: bool, projective: bool) -> None:
    """gradcheck and gradgradcheck pass; what is masked has the gradient 0."""
    crf, (arcs, mask) = TreeCRF(single_root, projective), batch()
    arcs = torch.nan_to_num(arcs, neginf=0.0).requires_grad_()
    heads = torch.tensor([[0, 1, 2, 3], [0, 0, 2, 0], [0, 0, 0, 0], [0, 0, 1, 3]])
    assert torch.autograd.gradcheck(lambda x: crf(x, heads, mask), arcs)
    assert torch.autograd.gradgradcheck(lambda x: crf(x, heads, mask), arcs)
    assert torch.autograd.gradcheck(lambda x: crf.marginals(x, mask), arcs)
    (gradient,) = torch.autograd.grad(crf(arcs, heads, mask), arcs)
    assert (gradient[~mask] == 0.0).all()
    assert (gradient[3, :, 2] == 0.0).all()
    with torch.autocast("cpu", torch.bfloat16):
        assert crf(arcs.bfloat16(), heads, mask).dtype == torch.float32


def test_bad_heads_are_one_line() -> None:
    """A head that is masked, one out of range and a circle are refused, with the sentence; so are scores of another shape."""
    crf, (arcs, mask) = TreeCRF(), batch()
    heads = torch.tensor([[0, 1, 2, 3], [0, 0, 2, 0], [0, 0, 0, 0], [2, 0, 1, 3]])
    with pytest.raises(DataError, match=r"sentence 3, position 0: 2 is none of those there, 0\.\.4"):
        crf(arcs, heads, mask)
    heads[3, 0], heads[1, 1] = 0, 7
    with pytest.raises(DataError, match="sentence 1, position 1: 7 is none"):
        crf(arcs, heads, mask)
    heads[1, 1] = 3
    with pytest.raises(DataError, match=r"sentence 1: no tree"):
        crf(arcs, heads, mask)
    with pytest.raises(DataError, match=r"floats \(batch, time, time \+ 1\)"):
        crf(arcs[..., :4], heads, mask)
    assert crf.decode(torch.zeros(0, 3, 4)) == []
