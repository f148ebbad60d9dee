"""ChainCRF beside enumeration, pytorch-crf and its own second backend: any mask, constraints, unknown tags, losses, bad input."""

import copy
import pickle
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from structpred.errors import DataError, InfeasibleError, ParameterError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from structpred.torch import ChainCRF, Scan  # noqa: E402

M = 3
BACKENDS = pytest.mark.parametrize("backend", [None, Scan()], ids=["kernels", "scan"])
NEVER = -torch.inf
ALLOWED = ([[1, 0, 1], [1, 1, 1], [1, 1, 0]], [1, 1, 0], [0, 1, 1])


def made(dtype: Any = torch.float64, **settings: Any) -> Any:
    """A module with random transitions."""
    torch.manual_seed(0)
    crf = ChainCRF(M, **settings).to(dtype)
    with torch.no_grad():
        for own in crf.parameters():
            own.normal_()
    return crf


def batch(n: int = 6, longest: int = 5, seed: int = 1) -> tuple[Any, Any, Any]:
    """Scores, tags of which some are -100, masks with holes; the first sentence is empty, the second's first token masked."""
    torch.manual_seed(seed)
    emissions, tags = 2.0 * torch.randn(n, longest, M, dtype=torch.float64), torch.randint(M, (n, longest))
    mask = torch.rand(n, longest) > 0.3
    mask[0], mask[1] = False, torch.tensor([False, True, True, False, True])
    tags[torch.rand(n, longest) > 0.8] = -100
    return emissions, tags, mask


def listed(crf: Any, emissions: Any, kept: list[int]) -> list[tuple[float, tuple[int, ...]]]:
    """(score, tags) of every tagging of the kept positions that is allowed, best first."""
    first, last, follow = (own.detach().tolist() for own in (crf.start_transitions, crf.end_transitions, crf.transitions))
    barred, found = dict(crf.named_buffers())["_barred"].tolist(), []
    for y in product(range(M), repeat=len(kept)):
        steps = [(M, *y[:1]), *pairwise(y), (*y[-1:], M)] if y else []
        if any(barred[a][b] for a, b in steps):
            continue
        score = sum(emissions[t, tag].item() for t, tag in zip(kept, y, strict=True))
        score += sum((first[b] if a == M else last[a] if b == M else follow[a][b]) for a, b in steps)
        if score > -np.inf:
            found.append((score, y))
    return sorted(found, reverse=True)


def log_sum(scores: list[float]) -> float:
    """log sum exp."""
    return float(np.logaddexp.reduce(scores)) if scores else -np.inf


@BACKENDS
@pytest.mark.parametrize("allowed", [None, ALLOWED], ids=["free", "constrained"])
def test_sums_and_decoding_equal_enumeration(backend: Any, allowed: Any) -> None:
    """log Z, marginals, the best tags and the k best are those of a list of all taggings, with holes, constraints and -inf."""
    crf, (emissions, _, mask) = made(allowed=allowed, backend=backend), batch()
    emissions[2, :, 1] = NEVER
    emissions[3, ~mask[3]] = torch.nan  # what is masked may be anything
    with torch.no_grad():
        log_z, mu = crf.log_partition(emissions, mask), crf.marginals(emissions, mask)
    best, kbest, tensor = crf.decode(emissions, mask), crf.kbest(emissions, 4, mask), crf.best_tags(emissions, mask)
    for i in range(len(emissions)):
        kept = mask[i].nonzero()[:, 0].tolist()
        all_of = listed(crf, emissions[i], kept)
        assert log_z[i].item() == pytest.approx(log_sum([score for score, _ in all_of]), abs=1e-9)
        assert best[i] == list(all_of[0][1])
        assert tensor[i, mask[i]].tolist() == best[i]
        assert (tensor[i, ~mask[i]] == -100).all()
        assert kbest[i] == [list(y) for _, y in all_of[:4]]
        expected = torch.zeros(5, M, dtype=torch.float64)
        for score, y in all_of:
            expected[kept, list(y)] += np.exp(score - log_z[i].item())
        torch.testing.assert_close(mu[i], expected, rtol=0.0, atol=1e-9)


@BACKENDS
@pytest.mark.parametrize("partial", [False, True], ids=["left_out", "unknown"])
def test_both_meanings_of_minus_100(backend: Any, partial: bool) -> None:
    """Tokens tagged -100 are left out of the chain, or their tag is summed over; gradients are those of the listed likelihood."""
    crf, (emissions, tags, mask) = made(partial=partial, backend=backend), batch()
    found = crf(emissions, tags, mask, reduction="none")
    for i in range(len(emissions)):
        kept = [t for t in mask[i].nonzero()[:, 0].tolist() if partial or tags[i, t] != -100]
        all_of = listed(crf, emissions[i], kept)
        true = [s for s, y in all_of if all(tags[i, t] in (-100, tag) for t, tag in zip(kept, y, strict=True))]
        expected = log_sum(true) - log_sum([score for score, _ in all_of])
        assert found[i].item() == pytest.approx(expected, abs=1e-9)
    total, tokens = found.sum().item(), int((mask & (tags != -100)).sum()) if not partial else int(mask.sum())
    assert crf(emissions, tags, mask).item() == pytest.approx(total)
    assert crf(emissions, tags, mask, reduction="mean").item() == pytest.approx(total / 6)
    assert crf(emissions, tags, mask, reduction="token_mean").item() == pytest.approx(total / tokens)


@pytest.mark.parametrize("partial", [False, True])
def test_backends_agree(partial: bool) -> None:
    """Kernels and Scan give the same values, first and second derivatives by scores and transitions, and decisions."""
    found = []
    for backend in (None, Scan()):
        crf, (emissions, tags, mask) = made(allowed=ALLOWED, partial=True, backend=backend), batch(seed=3)
        tags[:] = -100 if not partial else torch.where(tags == 1, tags, -100)
        mask[2] = True
        x, own = emissions.requires_grad_(), list(crf.parameters())
        value = crf.log_partition(x, mask).sum() + (crf(x, tags, mask) if partial else 0.0)
        first = torch.autograd.grad(value, (x, *own), create_graph=True)
        second = torch.autograd.grad(sum(each.square().sum() for each in first), (x, *own))
        found.append((value, *first, *second, crf.best_tags(x, mask)))
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-9)


def test_scores_of_any_range() -> None:
    """Where transitions lie far apart, and labels are reached through next to nothing, log Z is still that of an enumeration."""
    crf, (emissions, _, mask) = made(), batch()
    with torch.no_grad():
        crf.transitions.copy_(torch.tensor([[0.0, -900.0, -700.0], [-800.0, 0.0, -600.0], [-500.0, -900.0, 0.0]]))
    emissions[:, :, 0] += 400.0 * torch.arange(5)
    emissions[:, :, 1] -= 300.0 * torch.arange(5)
    log_z = crf.log_partition(emissions, mask)
    for i in range(len(emissions)):
        all_of = listed(crf, emissions[i], mask[i].nonzero()[:, 0].tolist())
        assert log_z[i].item() == pytest.approx(log_sum([score for score, _ in all_of]), rel=1e-12)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("n_batches", [20, 200])
def test_equal_to_pytorch_crf(n_batches: int) -> None:
    """With its state_dict and default layout: values and gradients on random batches, decisions; float32."""
    torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed")
    rng = np.random.default_rng(0)
    for k in range(n_batches):
        torch.manual_seed(k)
        n, longest, m = (int(x) for x in rng.integers((1, 2, 1), (9, 20, 12)))
        theirs, ours = torchcrf.CRF(m), ChainCRF(m, batch_first=False)
        ours.load_state_dict(theirs.state_dict())
        emissions, tags = torch.randn(longest, n, m), torch.randint(m, (longest, n))
        mask = torch.arange(longest)[:, None] < torch.randint(1, longest + 1, (n,))
        how = ("sum", "mean", "token_mean")[k % 3]
        found = []
        for crf in (theirs, ours):
            x = emissions.clone().requires_grad_()
            value = crf(x, tags, mask.byte(), reduction=how)
            found.append((value, *torch.autograd.grad(value, (x, *crf.parameters()))))
        torch.testing.assert_close(found[1], found[0], rtol=1e-5, atol=2e-5)
        assert ours.decode(emissions, mask) == theirs.decode(emissions, mask)


def test_padded_packed_and_nested_input() -> None:
    """They give the same values; time may come first."""
    crf, lengths = made(), [4, 5, 2]
    emissions, tags, _ = batch(3)
    tags = tags.clamp(min=0)
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    expected = crf(emissions, tags, mask, reduction="none")
    rows = [own[:n] for own, n in zip(emissions, lengths, strict=True)]
    of_rows = [own[:n] for own, n in zip(tags, lengths, strict=True)]
    nested = [torch.nested.nested_tensor(own, layout=torch.jagged) for own in (rows, of_rows)]
    packed = [torch.nn.utils.rnn.pack_sequence(own, enforce_sorted=False) for own in (rows, of_rows)]
    assert torch.equal(crf(*nested, reduction="none"), expected)
    assert torch.equal(crf(*packed, reduction="none"), expected)
    assert crf.decode(packed[0]) == crf.decode(emissions, mask) == crf.decode(nested[0])
    turned = made(batch_first=False)
    assert torch.equal(turned(emissions.transpose(0, 1), tags.T, mask.T, reduction="none"), expected)
    assert torch.equal(turned.marginals(emissions.transpose(0, 1), mask.T).transpose(0, 1), crf.marginals(emissions, mask))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bits_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    """One, two and three threads give the same sums, gradients and decisions, and name the same fault."""
    from structpred.torch import chain_operators

    monkeypatch.setattr(chain_operators, "WORTH", 1)
    crf, (emissions, tags, mask) = made(dtype), batch(20)
    wrong, never = emissions.clone(), emissions.clone()
    wrong[2, mask[2]], wrong[17, mask[17]], wrong[5, mask[5].nonzero()[0]] = NEVER, torch.nan, torch.nan
    never[4, mask[4]], never[18, mask[18]] = NEVER, NEVER
    position, found, before = mask[5].nonzero()[0].item(), [], torch.get_num_threads()
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            x = emissions.to(dtype).requires_grad_()
            value = crf(x, tags, mask, reduction="none")
            found.append((value, *torch.autograd.grad(value.sum(), (x, *crf.parameters())), crf.best_tags(x, mask)))
            for call in (crf.log_partition, crf.decode):
                refused(DataError, f"sentence 5, position {position}: .*NaN", lambda call=call: call(wrong.to(dtype), mask))
                refused(InfeasibleError, "sentence 4: every", lambda call=call: call(never.to(dtype), mask))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, other) for run in found[1:] for one, other in zip(found[0], run, strict=True))


@BACKENDS
def test_loss_is_float32_under_autocast(backend: Any) -> None:
    """bfloat16 comes in, float32 goes out, with gradients in bfloat16; float64 stays."""
    crf = made(torch.float32, backend=backend)
    emissions, tags, mask = batch()
    scores = emissions.bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        value = crf(scores, tags, mask)
        assert crf(emissions, tags, mask).dtype == torch.float64
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, crf(scores.float(), tags, mask))
    value.backward()
    assert scores.grad.dtype == torch.bfloat16


@pytest.mark.parametrize("kind", ["CRF", "SoftMarginCRF", "SparseMAPLoss", "PerturbedLoss"])
def test_other_losses_on_the_same_module(kind: str) -> None:
    """The scores of the module give any loss; that of CRF is its negative log-likelihood; all have gradients, 0 where masked."""
    import structpred.torch
    from structpred.oracles.chain import ChainOracle

    crf, (emissions, tags, mask) = made(), batch()
    x = emissions.requires_grad_()
    values = crf.loss(getattr(structpred.torch, kind)(ChainOracle()), x, tags, mask)
    values.sum().backward()
    assert values.shape == (6,)
    assert values[0] == 0.0
    assert (x.grad[~mask] == 0.0).all()
    assert crf.transitions.grad.abs().sum() > 0.0
    if kind == "CRF":
        torch.testing.assert_close(values, -crf(x, tags, mask, reduction="none"))


def refused(error: type[Exception], match: str, call: Callable[[], Any]) -> None:
    """The call raises it, in one line."""
    with pytest.raises(error, match=match) as found:
        call()
    assert "\n" not in str(found.value)


@BACKENDS
def test_bad_input_is_one_line(backend: Any) -> None:
    """Wrong shapes and devices, tags out of range, inverted masks, NaN, nothing allowed: sentence and position are named."""
    crf, (emissions, tags, mask) = made(backend=backend), batch()
    refused(DataError, r"mask: .*\(6, 5\).*\(6, 4\)", lambda: crf(emissions, tags, mask[:, :4]))
    refused(DataError, r"tags: .*float32", lambda: crf(emissions, tags.float(), mask))
    refused(DataError, r"floats \(batch, time, 3\)", lambda: crf(emissions[..., :2], tags, mask))
    refused(DataError, r"floats", lambda: crf(tags, tags, mask))
    refused(DataError, "on meta", lambda: crf(emissions, tags, mask.to("meta")))
    refused(DataError, "all 30 positions .* mask inverted", lambda: crf(emissions, tags, torch.zeros_like(mask)))
    tags[1, 2] = 3
    refused(DataError, r"sentence 1, position 2: expected 0\.\.2, got 3", lambda: crf(emissions, tags, mask))
    tags[1, 2], emissions[1, 4, 0] = 0, torch.nan
    refused(DataError, "sentence 1, position 4: .*NaN", lambda: crf(emissions, tags, mask))
    refused(DataError, "sentence 1, position 4: .*NaN", lambda: crf.decode(emissions, mask))
    emissions[1, 4] = -torch.inf
    refused(InfeasibleError, "sentence 1: every label sequence", lambda: crf.log_partition(emissions, mask))
    refused(InfeasibleError, "sentence 1: every label sequence", lambda: crf.decode(emissions, mask))
    refused(
        ParameterError, "reduction: expected one of none, sum", lambda: crf(emissions[2:], tags[2:], mask[2:], reduction="max")
    )
    refused(ParameterError, "allowed: expected", lambda: ChainCRF(2, allowed=ALLOWED))
    refused(ParameterError, "num_tags", lambda: ChainCRF(0))


@BACKENDS
def test_empty_batches(backend: Any) -> None:
    """No sentences, or sentences without a position: sums of nothing, and a likelihood of 1."""
    crf = made(backend=backend)
    assert crf(torch.zeros(0, 5, M), torch.zeros(0, 5, dtype=torch.long)).item() == 0.0
    assert crf.decode(torch.zeros(2, 0, M)) == [[], []]
    assert crf(torch.zeros(2, 0, M), torch.zeros(2, 0, dtype=torch.long)).item() == 0.0
    assert crf.kbest(torch.zeros(2, 0, M), 3) == [[[]], [[]]]


def test_constraints_of_a_tagging_scheme() -> None:
    """The tables of ChainConstraints are taken: no decision breaks the scheme."""
    from structpred.models.chain.constraints import ChainConstraints

    names = ["B-X", "I-X", "O"]
    crf = made(allowed=ChainConstraints(scheme="iob2").tables(names))
    emissions = torch.zeros(1, 4, 3, dtype=torch.float64)
    emissions[..., 1] = 9.0
    assert crf.decode(emissions) == [[0, 1, 1, 1]]
    assert "_barred" not in crf.state_dict()


@BACKENDS
def test_what_is_masked_or_in_another_form_changes_nothing(backend: Any) -> None:
    """Any number as a masked tag, whole numbers as a mask, strided input; inputs stay as they are; copies give the same."""
    crf, (emissions, tags, mask) = made(backend=backend), batch()
    tags = tags.clamp(min=0)
    expected, other = crf(emissions, tags, mask), torch.where(mask, tags, 77)
    before = [own.clone() for own in (emissions, other, mask)]
    turned = [own.transpose(0, 1).contiguous().transpose(0, 1) for own in (emissions, other, 2 * mask.long())]
    for module in (crf, copy.deepcopy(crf), pickle.loads(pickle.dumps(crf))):
        assert torch.equal(module(emissions, other, mask), expected)
        assert torch.equal(module(*turned), expected)
    assert all(torch.equal(one, two) for one, two in zip((emissions, other, mask), before, strict=True))
    crf.requires_grad_(False)
    assert not crf(emissions, tags, mask).requires_grad
    with torch.inference_mode():
        torch.testing.assert_close(crf.marginals(emissions.clone(), mask), crf.marginals(emissions, mask))


@BACKENDS
def test_types_single_tags_and_single_positions(backend: Any) -> None:
    """The wider type of scores and parameters comes out; one tag has the likelihood 1; starts belong to the first kept token."""
    crf, (emissions, tags, mask) = made(backend=backend), batch()
    tags = tags.clamp(min=0)
    assert crf(emissions.float(), tags, mask).dtype == torch.float64
    assert crf.half()(emissions.half(), tags, mask).dtype == torch.float32
    assert ChainCRF(1, backend=backend)(torch.randn(2, 1, 1), torch.zeros(2, 1, dtype=torch.long)).item() == pytest.approx(
        0.0, abs=1e-6
    )
    crf = made(backend=backend)
    first = torch.tensor([[False, True, False, False, False]])
    (found,) = torch.autograd.grad(crf(emissions[:1], tags[:1], first), crf.start_transitions)
    chosen = torch.nn.functional.one_hot(tags[0, 1], M)
    torch.testing.assert_close(
        found, chosen - (emissions[0, 1] + crf.start_transitions + crf.end_transitions).softmax(0).detach()
    )


@BACKENDS
def test_an_ignored_tag_may_be_a_decision(backend: Any) -> None:
    """With ignore_index 0 decoding still gives tag 0; parameters that are NaN, and lists, are refused."""
    crf = made(torch.float32, backend=backend, ignore_index=0)
    scores = torch.tensor([[[99.0, 0.0, 0.0], [0.0, 99.0, 0.0]]])
    assert crf.decode(scores) == [[0, 1]]
    refused(DataError, "a tensor or a PackedSequence, got list", lambda: crf(scores, [[1, 1]]))
    with torch.no_grad():
        crf.transitions[0, 1] = torch.nan
    refused(DataError, "transitions", lambda: crf(scores, torch.ones(1, 2, dtype=torch.long)))
    refused(DataError, "transitions", lambda: crf.decode(scores))
