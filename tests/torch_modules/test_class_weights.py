"""Class weights of ChainCRF.loss: the cost of a wrong tag is the weight of the true one, beside enumeration."""

from itertools import pairwise, product

import pytest

from structpred.errors import ParameterError
from structpred.oracles.chain import ChainOracle

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import structpred.torch  # noqa: E402

M, WEIGHT = 3, (0.5, 1.0, 4.0)


@pytest.mark.parametrize("kind", ["Hinge", "SoftMarginCRF"])
def test_costs_are_those_of_the_true_tags(kind: str) -> None:
    """The structured hinge and the softmax margin with the weighted costs of a list of all taggings; without they are 1."""
    torch.manual_seed(0)
    crf, emissions = structpred.torch.ChainCRF(M).double(), torch.randn(3, 4, M, dtype=torch.float64, requires_grad=True)
    tags = torch.tensor([[0, 2, 1, 1], [2, -100, 2, 0], [-100, -100, -100, -100]])
    loss = getattr(structpred.torch, kind)(ChainOracle())
    for weight in (None, torch.tensor(WEIGHT)):
        found = crf.loss(loss, emissions, tags, weight=weight)
        for i in range(3):
            kept = (tags[i] != -100).nonzero()[:, 0].tolist()
            gold, scores = tags[i, kept].tolist(), []
            for y in (gold, *product(range(M), repeat=len(kept))):
                score = sum(emissions[i, t, tag] for t, tag in zip(kept, y, strict=True))
                score = score + sum(crf.transitions[a, b] for a, b in pairwise(y))
                score = score + (crf.start_transitions[y[0]] + crf.end_transitions[y[-1]] if kept else torch.zeros(()))
                cost = sum(float(weight[a]) if weight is not None else 1.0 for a, b in zip(gold, y, strict=True) if a != b)
                scores.append(score + cost)
            rest = torch.stack(scores[1:])
            expected = (rest.max() if kind == "Hinge" else rest.logsumexp(0)) - scores[0]
            torch.testing.assert_close(found[i], expected.to(found.dtype))
    found.sum().backward()
    assert emissions.grad.abs().sum() > 0.0


def test_weights_that_cannot_be_used_are_refused() -> None:
    """Of another size, or for a loss without costs."""
    crf, emissions, tags = structpred.torch.ChainCRF(M), torch.zeros(1, 2, M), torch.zeros(1, 2, dtype=torch.long)
    with pytest.raises(ParameterError, match=r"weight: expected \(3,\).*got \(2,\)"):
        crf.loss(structpred.torch.Hinge(ChainOracle()), emissions, tags, weight=torch.ones(2))
    with pytest.raises(ParameterError, match=r"a loss with costs.*CRF"):
        crf.loss(structpred.torch.CRF(ChainOracle()), emissions, tags, weight=torch.ones(3))
