"""SemiCRF beside enumeration: any mask, -inf, lengths, derivatives; types, empty batches, bad input. TreeCRF's bad input, too."""

import copy
import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.oracles.semimarkov import SemiMarkovOracle, as_segments, from_segments

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from structpred.torch import SemiCRF, TreeCRF  # noqa: E402

M, LONGEST, T = 2, 3, 5


def made(dtype: Any = torch.float64) -> Any:
    """A module with random transitions and scores of lengths."""
    torch.manual_seed(0)
    crf = SemiCRF(M, LONGEST).to(dtype)
    with torch.no_grad():
        for own in crf.parameters():
            own.normal_()
    return crf


def batch() -> tuple[Any, Any]:
    """Scores of four sentences: masks with holes, one without a position; what is masked may be anything."""
    torch.manual_seed(1)
    emissions = torch.randn(4, T, M, dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 1, 1, 0, 1], [0, 0, 0, 0, 0], [1, 1, 1, 0, 0]], dtype=torch.bool)
    emissions[0, 1, 1] = -torch.inf
    emissions[1, 0] = torch.nan
    return emissions, mask


def listed(crf: Any, emissions: Any, kept: Any) -> list[tuple[float, Any]]:
    """(score, segments) of every segmentation of the kept positions."""
    found, x = [], emissions[kept].tolist()
    follow, lengths = crf.transitions.tolist(), crf.length_scores.tolist()
    for y in SemiMarkovOracle().enumerate((len(x), M, LONGEST)) if x else [np.zeros(0, np.int64)]:
        segments = as_segments(y).tolist() if len(y) else []
        score = sum(x[t][label] for start, size, label in segments for t in range(start, start + size))
        score += sum(lengths[size - 1][label] for _, size, label in segments)
        score += sum(follow[a[2]][b[2]] for a, b in pairwise(segments))
        found.append((score, segments))
    return found


def truth(mask: Any) -> Any:
    """Tags of some segmentation of each sentence; 99 where masked."""
    tags = torch.full(mask.shape, 99)
    tags[0], tags[1, mask[1]] = torch.tensor([3, 1, 0, 3, 2]), torch.tensor([3, 2, 2])
    tags[3, mask[3]] = torch.tensor([1, 3, 3])
    return tags


def test_equal_to_enumeration() -> None:
    """Likelihoods, marginals and the best segmentations are those of a list of all, with holes and -inf."""
    crf, (emissions, mask) = made(), batch()
    tags = truth(mask)
    found, mu, best = crf(emissions, tags, mask, reduction="none"), crf.marginals(emissions, mask), crf.decode(emissions, mask)
    expected = torch.zeros_like(mu)
    for i in range(4):
        kept = mask[i].nonzero()[:, 0]
        all_of = listed(crf, emissions[i], kept)
        log_z = np.logaddexp.reduce([score for score, _ in all_of])
        for score, segments in all_of:
            for start, size, label in segments:
                expected[i, kept[start], size - 1, label] += np.exp(score - log_z)
        true = as_segments(tags[i, kept].numpy()).tolist() if len(kept) else []
        assert found[i].item() == pytest.approx(dict((str(y), s) for s, y in all_of)[str(true)] - log_z, abs=1e-9)
        top = max(all_of)[1]
        assert best[i] == (from_segments(top).tolist() if top else [])
    torch.testing.assert_close(mu, expected, rtol=0.0, atol=1e-9)
    assert crf(emissions, tags, mask, "token_mean").item() == pytest.approx(found.sum().item() / mask.sum().item())
    tags[0] = torch.tensor([3, 3, 1, 3, 2])  # token 1 must not have label 1
    assert crf(emissions, tags, mask, "none")[0] == -torch.inf


def test_derivatives() -> None:
    """gradcheck and gradgradcheck by emissions, transitions and scores of lengths; what is masked has the gradient 0."""
    crf, (emissions, mask) = made(), batch()
    tags, names = truth(mask), [name for name, _ in crf.named_parameters()]
    x = torch.nan_to_num(emissions, neginf=0.0).requires_grad_()

    def value(x: Any, *own: Any) -> Any:
        return torch.func.functional_call(crf, dict(zip(names, own, strict=True)), (x, tags, mask))

    assert torch.autograd.gradcheck(value, (x, *crf.parameters()))
    assert torch.autograd.gradgradcheck(value, (x, *crf.parameters()), fast_mode=True)
    assert torch.autograd.gradcheck(lambda x: crf.marginals(x, mask), x, fast_mode=True)
    (gradient,) = torch.autograd.grad(crf(x, tags, mask), x)
    assert (gradient[~mask] == 0.0).all()
    assert (gradient[mask] != 0.0).any()


def test_with_segments_of_one_position_it_is_a_chain() -> None:
    """With max_length 1 and no scores of lengths the likelihood is that of a ChainCRF without first and last scores."""
    from structpred.torch import ChainCRF

    (emissions, mask), semi, chain = batch(), SemiCRF(M, 1).double(), ChainCRF(M).double()
    with torch.no_grad():
        for own in (semi.length_scores, chain.start_transitions, chain.end_transitions):
            own.zero_()
        chain.transitions.copy_(semi.transitions)
    labels = torch.zeros(4, T, dtype=torch.long)
    torch.testing.assert_close(
        semi(emissions, 2 * labels + 1, mask, reduction="none"), chain(emissions, labels, mask, reduction="none")
    )


def test_types_copies_and_empty_batches() -> None:
    """float32 under autocast, float64 parameters win; copies give the same; sums of nothing."""
    crf, (emissions, mask) = made(torch.float32), batch()
    tags = truth(mask)
    with torch.autocast("cpu", torch.bfloat16):
        assert crf(emissions.bfloat16(), tags, mask).dtype == torch.float32
    assert made()(emissions.float(), tags, mask).dtype == torch.float64
    for other in (copy.deepcopy(crf), pickle.loads(pickle.dumps(crf))):
        assert torch.equal(other(emissions, tags, mask), crf(emissions, tags, mask))
    assert crf(torch.zeros(0, T, M), torch.zeros(0, T, dtype=torch.long)).item() == 0.0
    assert crf.decode(torch.zeros(2, 0, M)) == [[], []]
    for own, width in ((crf, M), (TreeCRF(), 1), (TreeCRF(projective=True), 1)):
        x = torch.zeros(2, 0, width, requires_grad=True)
        assert own(x, torch.zeros(2, 0, dtype=torch.long)).item() == 0.0
        own.marginals(x).sum().backward()


def refused(error: type[Exception], match: str, call: Callable[[], Any]) -> None:
    """The call raises it, in one line."""
    with pytest.raises(error, match=match) as found:
        call()
    assert "\n" not in str(found.value)


def test_bad_segments_are_one_line() -> None:
    """Wrong shapes and devices, tags of no segments, segments that are too long, NaN, nothing allowed: sentence and position."""
    crf, (emissions, mask) = made(), batch()
    tags = truth(mask)
    refused(DataError, "mask: .*on meta", lambda: crf(emissions, tags, mask.to("meta")))
    refused(DataError, "tags: .*on meta", lambda: crf(emissions, tags.to("meta"), mask))
    refused(DataError, r"floats \(batch, time, 2\)", lambda: crf(emissions[..., :1], tags, mask))
    refused(ParameterError, "max_length", lambda: SemiCRF(2, 0))
    refused(ParameterError, "num_tags", lambda: SemiCRF(0, 2))
    for place, given, match in (
        ((1, 4), 4, r"sentence 1, position 4: 4 is none of those there, 0\.\.3"),
        ((0, 0), 2, "sentence 0: position 0: a segmentation starts with"),
        ((0, 2), 2, "sentence 0: position 2: a segment continues with its own label"),
    ):
        other = tags.clone()
        other[place] = given
        refused(DataError, match, lambda other=other: crf(emissions, other, mask))
    tags[0, 1:] = torch.tensor([1, 0, 0, 0])
    refused(DataError, "sentence 0: segments have at most 3 positions, got one of 4 at 1", lambda: crf(emissions, tags, mask))
    tags = truth(mask)
    for bad in (torch.nan, torch.inf):
        emissions[1, 2, 0] = bad
        refused(DataError, "sentence 1, position 2: .*NaN", lambda: crf(emissions, tags, mask))
        refused(DataError, "sentence 1, position 2: .*NaN", lambda: crf.decode(emissions, mask))
    emissions[1, 2] = -torch.inf
    refused(InfeasibleError, "sentence 1: every segmentation", lambda: crf.marginals(emissions, mask))
    refused(InfeasibleError, "sentence 1: every output", lambda: crf.decode(emissions, mask))
    with torch.no_grad():
        crf.transitions[0, 1] = torch.nan
    refused(DataError, "sentence 0: ", lambda: crf.marginals(emissions, mask))


@pytest.mark.parametrize("projective", [False, True])
def test_bad_arcs_are_one_line(projective: bool) -> None:
    """The same of TreeCRF."""
    crf, arcs = TreeCRF(projective=projective), torch.zeros(2, 3, 4)
    heads, mask = torch.tensor([[0, 1, 2], [2, 0, 2]]), torch.ones(2, 3, dtype=torch.bool)
    refused(DataError, "mask: .*on meta", lambda: crf(arcs, heads, mask.to("meta")))
    refused(DataError, "heads: .*on meta", lambda: crf(arcs, heads.to("meta"), mask))
    refused(DataError, "sentence 0: expected one token with head 0, got 3", lambda: crf(arcs, 0 * heads))
    for bad in (torch.nan, torch.inf):
        arcs[1, 2, 0] = bad
        refused(DataError, "sentence 1, position 2: .*NaN", lambda: crf(arcs, heads))
        refused(DataError, "sentence 1, position 2: .*NaN", lambda: crf.decode(arcs))
    mask[1, 2] = False
    assert torch.isfinite(crf(arcs, heads, mask))
    arcs[1, 0, 0] = arcs[1, 1, 0] = -torch.inf
    refused(InfeasibleError, "sentence 1: every .*tree", lambda: crf(arcs, heads, mask))
    refused(InfeasibleError, "sentence 1: every tree", lambda: crf.decode(arcs, mask))
