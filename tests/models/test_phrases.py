"""Probabilities of phrases: equal to listing all label sequences, and consistent with marginals and with each other."""

from itertools import pairwise, product

import numpy as np
import pytest
from chain_listing import LABELS, Listing, iob2_valid, random_corpus

from structpred.core.fixed_scores import FORBIDDEN
from structpred.data.phrases import PhraseLabels
from structpred.errors import InfeasibleError, ParameterError
from structpred.evaluation.chunks import chunk_counts
from structpred.models import ChainLabeler

SCHEMES = {
    "IOB1": ["B-X", "I-X", "I-Y", "O"],
    "IOB2": LABELS,
    "IOBES": ["B-X", "I-X", "E-X", "S-X", "O"],
    "BILOU": ["B-X", "I-X", "L-X", "U-X", "O"],
    "untyped": ["B", "I", "O"],
}


def anything(tags: tuple[str, ...]) -> bool:
    """Any sequence may occur."""
    return len(tags) > 0


def trained(labels: list[str], trainer: str = "lbfgs", constraints: str | None = None) -> tuple[ChainLabeler, list[np.ndarray]]:
    """A model of random sentences, and others."""
    rule = iob2_valid if constraints else anything
    model = ChainLabeler(trainer, max_iter=8, C=2.0, constraints=constraints).fit(*random_corpus(0, 40, labels, rule, longest=4))
    return model, random_corpus(1, 12, labels, rule, longest=4)[0]


def listed(sequences: list[tuple[str, ...]], shares: np.ndarray) -> dict[tuple[int, int, str], float]:
    """The probability of each phrase (start, end, type): the sum over the sequences that have it."""
    iobes = [[{"L-": "E-", "U-": "S-"}.get(tag[:2], tag[:2]) + tag[2:] for tag in tags] for tags in sequences]
    names = sorted({tag for tags in iobes for tag in tags})
    read, found = PhraseLabels.of(names), {}
    for tags, share in zip(iobes, shares.tolist(), strict=True):
        spans = read.spans(np.array([names.index(tag) for tag in tags]), np.array([0, len(tags)]), "conlleval")
        for key in zip(spans.starts.tolist(), spans.ends.tolist(), (read.names[k] for k in spans.types), strict=True):
            found[key] = found.get(key, 0.0) + share
    return found


@pytest.mark.parametrize("scale", [1.0, 30.0, 5000.0])
@pytest.mark.parametrize("labels", SCHEMES.values(), ids=SCHEMES)
def test_sums_equal_listing(labels: list[str], scale: float) -> None:
    """To 1e-10, for scores of any size, and with forbidden labels and transitions; what is impossible has probability zero."""
    from structpred.oracles.chains._phrase_kernels import phrases_of_chain

    rng, n = np.random.default_rng(0), len(labels)
    tags = PhraseLabels.of({"L-": "E-", "U-": "S-"}.get(tag[:2], tag[:2]) + tag[2:] for tag in labels)
    starts, breaks, pairs = tags.steps()
    for length, forbidden in product((1, 2, 4), (0.0, 0.3)):
        scores = np.where(rng.random((length + n) * n) < forbidden, FORBIDDEN, scale * rng.normal(size=(length + n) * n))
        sequences = list(product(range(n), repeat=length))
        nodes, edges = scores[: length * n].reshape(length, n), scores[length * n :].reshape(n, n)
        sums = np.array([sum(nodes[t, y] for t, y in enumerate(s)) + edges[s[:-1], s[1:]].sum() for s in sequences])
        out = np.zeros((length, len(tags.names), length))
        possible = phrases_of_chain(scores, length, starts, breaks, tags.types, pairs, out)
        assert possible == (sums.max() > 0.5 * FORBIDDEN)
        if possible:
            shares = np.exp(sums - sums.max())
            wanted = listed([tuple(labels[y] for y in s) for s in sequences], shares / shares.sum())
            for t, k, d in np.ndindex(out.shape):
                assert out[t, k, d] == pytest.approx(wanted.get((t, t + d + 1, tags.names[k]), 0.0), abs=1e-10)


@pytest.mark.parametrize("labels", SCHEMES.values(), ids=SCHEMES)
def test_a_model_equals_listing(labels: list[str]) -> None:
    """All phrases of trained models, under fixed labels, too; as exact as the scores, which are made of single precision."""
    model, new = trained(labels)
    fixed = [["O", *[None] * (len(x) - 1)] for x in new]
    for rules in (None, fixed):
        for x, found in zip(new, model.predict_phrases(new, min_probability=0.0, fixed=rules), strict=True):
            listing = Listing(model, x)
            listing = listing if rules is None else listing.keep(lambda tags: tags[0] == "O")
            shares = np.exp(listing.scores - listing.scores.max())
            wanted = listed(listing.sequences, shares / shares.sum())
            assert {p[:3] for p in found} == wanted.keys()
            assert [p.probability for p in found] == pytest.approx([wanted[p[:3]] for p in found], abs=1e-6)


@pytest.mark.parametrize("constraints", [None, "iob2"])
def test_phrases_that_cover_a_token_add_up_to_its_marginal(constraints: str | None) -> None:
    """A token is in one phrase, or O: so the phrases over it have the probability of not being O, in a long sentence as well."""
    model, _ = trained(LABELS, constraints=constraints)
    x = np.random.default_rng(3).normal(size=(400, 5))
    found = model.predict_phrases([x], min_probability=0.0, max_length=400)[0]
    covered = np.zeros(400)
    for p in found:
        covered[p.start : p.end] += p.probability
    outside = model.predict_marginals([x])[0][:, model.classes_.tolist().index("O")]
    np.testing.assert_allclose(covered, 1.0 - outside, atol=1e-9)
    short = [p for p in found if p.end - p.start <= 3]
    assert model.predict_phrases([x], min_probability=0.0, max_length=3)[0] == short
    assert model.predict_phrases([x], k=7, max_length=400)[0] == sorted(found, key=lambda p: -p.probability)[:7]


def test_probable_phrases_do_not_overlap_and_are_good() -> None:
    """Those above 0.5 are in order and apart; they are as often right as labels; and stay where more are asked for."""
    model, _ = trained(LABELS)
    X, y = random_corpus(5, 60, LABELS, anything, longest=4)
    found = model.predict_phrases(X)
    right = n = 0
    for i, own in enumerate(found):
        assert all(a.end <= b.start for a, b in pairwise(own))
        assert all(p.probability >= 0.5 for p in own)
        truth = listed([tuple(y[i])], np.ones(1))
        right, n = right + sum(p[:3] in truth for p in own), n + len(own)
    counts = chunk_counts(y, model.predict(X))[0]
    assert right / n > counts.precision - 0.02
    assert [[p for p in own if p.probability >= 0.5] for own in model.predict_phrases(X, min_probability=0.2)] == found


@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "perceptron"])
def test_margins_are_refused_with_the_remedy(trainer: str) -> None:
    """A model without the log loss has no probabilities: the error names the settings that give them."""
    model, new = trained(LABELS, trainer)
    with pytest.raises(ParameterError, match=r"not log-probabilities; use predict, or train with trainer='oeg'"):
        model.predict_phrases(new)


def test_what_does_not_fit_is_refused() -> None:
    """Labels that mark no phrases, wrong numbers, rules that leave nothing; a sequence without tokens has no phrases."""
    model, new = trained(LABELS)
    for settings, error, words in (
        ({"min_probability": 1.5}, ParameterError, "min_probability: expected a number from 0 to 1, got 1.5"),
        ({"max_length": 0}, ParameterError, "max_length must be a whole number >= 1, got 0"),
        ({"k": 0}, ParameterError, "k must be a whole number >= 1, got 0"),
    ):
        with pytest.raises(error, match=words):
            model.predict_phrases(new, **settings)
    assert model.predict_phrases([[], new[0], []], k=1) == [[], *model.predict_phrases(new[:1], k=1), []]
    model.constraints = "iob2"
    with pytest.raises(InfeasibleError, match="sample 0"):
        model.predict_phrases(new[:1], fixed=[["I-X", *[None] * (len(new[0]) - 1)]])
    tagger = ChainLabeler("lbfgs", max_iter=3).fit([np.eye(2)], [["DT", "NN"]])
    with pytest.raises(ParameterError, match="expected labels such as B-X, I-X and O, got"):
        tagger.predict_phrases([np.eye(2)])
