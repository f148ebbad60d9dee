"""Paths in a forest of labels: every promise of an oracle by listing, at scores full of ties and of what is forbidden."""

from typing import Any

import numpy as np
import pytest

from structpred import check_oracle
from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import InfeasibleError
from structpred.oracles.label_paths import LabelPaths
from structpred.oracles.leaf_sets import LeafSets

ORACLES: dict[str, Any] = {
    "leaf": LabelPaths(),
    "label": LabelPaths("label"),
    "tree": LabelPaths("tree"),
    "leaf sets": LeafSets(),
}


@pytest.mark.parametrize("name", ORACLES)
def test_the_contract(name: str) -> None:
    """Argmax, batches, marginals, products and outputs are those of all that are listed."""
    check_oracle(ORACLES[name])


@pytest.mark.parametrize("name", ORACLES)
def test_forbidden_parts_are_never_used(name: str) -> None:
    """With labels that must be on or off, and whole numbers: a best output of those that are left, or InfeasibleError."""
    oracle, rng = ORACLES[name], np.random.default_rng(0)
    for shape in oracle.example_shapes():
        outputs = list(oracle.enumerate(shape))
        for _ in range(60):
            scores = rng.integers(-2, 3, 2 * len(shape)).astype(float)
            scores[rng.random(len(scores)) < 0.15] = FORBIDDEN
            best = max(float(scores[oracle.parts(y, shape)].sum()) for y in outputs)
            if best < 0.5 * FORBIDDEN:
                with pytest.raises(InfeasibleError):
                    oracle.argmax(scores, shape)
                continue
            assert scores[oracle.parts(oracle.argmax(scores, shape), shape)].sum() == best
            if name != "leaf sets":
                sums = np.array([scores[oracle.parts(y, shape)].sum() for y in outputs])
                log_z, mu = oracle.marginals(scores, shape)
                assert log_z == pytest.approx(best + np.log(np.exp(sums - best).sum()))
                on = np.exp(sums - log_z) @ np.array(outputs)
                np.testing.assert_allclose(mu[1::2], on, atol=1e-12)


def test_numbers_of_outputs() -> None:
    """Two trees of four labels and of one: three leaves, five labels, and (4 + 1) (1 + 1) choices of a path in each tree."""
    shape = (-1, 0, 1, 0, -1)
    counts = {name: len(list(oracle.enumerate(shape))) for name, oracle in ORACLES.items()}
    assert counts == {"leaf": 3, "label": 5, "tree": 10, "leaf sets": 11}
