"""Marginals, k best and score gaps of chain models: equal to listing all label sequences, and consistent with each other."""

from pathlib import Path

import numpy as np
import pytest
from chain_listing import LABELS, Listing, iob2_valid, random_corpus
from sklearn.exceptions import NotFittedError

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError, NoUpdateWarning, ParameterError
from structpred.models import ChainLabeler
from structpred.runtime import memory


def trained(trainer: str = "lbfgs", constraints: str | None = None, **settings: object) -> ChainLabeler:
    """A model of random sentences that keep to IOB2."""
    return ChainLabeler(trainer, max_iter=8, C=2.0, constraints=constraints, **settings).fit(
        *random_corpus(0, 40, LABELS, iob2_valid)
    )


NEW = random_corpus(1, 25, LABELS, iob2_valid, longest=4)[0]


@pytest.mark.parametrize("settings", [("oeg", {}), ("lbfgs", {}), ("sgd", {"surrogate": "log"})], ids=lambda s: s[0])
@pytest.mark.parametrize("constraints", [None, "iob2"])
def test_marginals_equal_listing(settings, constraints) -> None:
    """Each position adds up to one to 1e-9; what the rules leave out has probability zero; equal to listing to 1e-6."""
    model = trained(settings[0], constraints, **settings[1])
    assert model.probabilistic_
    for x, found in zip(NEW, model.predict_marginals(NEW), strict=True):
        assert found.shape == (len(x), 5)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
        listing = Listing(model, x)
        wanted = (listing.keep(iob2_valid) if constraints else listing).marginals()
        np.testing.assert_allclose(found, wanted, atol=1e-6)
        if constraints:
            inside = [k for k, name in enumerate(model.classes_) if name[0] == "I"]
            assert not found[0, inside].any()


def test_marginals_under_fixed_labels() -> None:
    """Conditional probabilities: p(label | the fixed ones), with exact ones and zeros where the label is fixed or not allowed."""
    model = trained()
    fixed = [["O", *[None] * (len(x) - 1)] for x in NEW]
    allowed = [[*[None] * (len(x) - 1), ["O", "B-X"]] for x in NEW]
    for x, found in zip(NEW, model.predict_marginals(NEW, fixed=fixed, allowed=allowed), strict=True):
        wanted = Listing(model, x).keep(lambda s: s[0] == "O" and s[-1] in ("O", "B-X")).marginals()
        np.testing.assert_allclose(found, wanted, atol=1e-6)
        assert found[0, model.classes_.tolist().index("O")] == pytest.approx(1.0, abs=1e-12)
        assert not found[-1, [k for k, name in enumerate(model.classes_) if name not in ("O", "B-X")]].any()


@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "mira", "perceptron"])
def test_margins_are_no_probabilities(trainer: str, tmp_path: Path) -> None:
    """predict_marginals of a margin model is refused, with what to do instead; also after loading; score gaps work."""
    model = trained(trainer)
    model.save(tmp_path / "m.spz")
    for one in (model, ChainLabeler.load(tmp_path / "m.spz")):
        assert not one.probabilistic_
        with pytest.raises(ParameterError, match=r"not log-probabilities; use predict_score_gaps, or train with trainer='oeg'"):
            one.predict_marginals(NEW)
        assert len(one.predict_score_gaps(NEW)) == len(NEW)


@pytest.mark.parametrize("trainer", ["oeg", "lbfgs"])
def test_probabilities_survive_saving(trainer: str, tmp_path: Path) -> None:
    """A loaded model gives the same marginals, to the last bit."""
    model = trained(trainer, "iob2")
    model.save(tmp_path / "m.spz")
    loaded = ChainLabeler.load(tmp_path / "m.spz")
    for a, b in zip(model.predict_marginals(NEW), loaded.predict_marginals(NEW), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", ["bcfw", "lbfgs"])
@pytest.mark.parametrize("constraints", [None, "iob2"])
def test_k_best_equal_listing(trainer: str, constraints: str | None) -> None:
    """Scores are those of the labels, sorted, all different; the first is the prediction; fewer where there are fewer."""
    model = trained(trainer, constraints)
    predicted = model.predict(NEW)
    for k in (1, 4, 10_000):
        for x, labels, found in zip(NEW, predicted, model.predict_kbest(NEW, k), strict=True):
            listing = Listing(model, x)
            listing = listing.keep(iob2_valid) if constraints else listing
            scores = [score for _, score in found]
            own = dict(zip(listing.sequences, listing.scores, strict=True))
            np.testing.assert_allclose(scores, [own[tuple(y)] for y, _ in found], atol=1e-6)
            np.testing.assert_allclose(scores, np.sort(listing.scores)[::-1][:k], atol=1e-6)
            assert scores == sorted(scores, reverse=True)
            assert len({tuple(y) for y, _ in found}) == len(found) == min(k, len(own))
            assert found[0][0].tolist() == labels.tolist()


@pytest.mark.parametrize("trainer", ["bcfw", "perceptron", "oeg"])
@pytest.mark.parametrize("constraints", [None, "iob2"])
def test_score_gaps_equal_listing(trainer: str, constraints: str | None) -> None:
    """Best score less the best with another label there, never negative."""
    model = trained(trainer, constraints)
    for x, found in zip(NEW, model.predict_score_gaps(NEW), strict=True):
        listing = Listing(model, x)
        wanted = (listing.keep(iob2_valid) if constraints else listing).gaps()
        np.testing.assert_allclose(found, wanted, atol=1e-6)
        assert (found >= 0).all()
    fixed = [["O", *[None] * (len(x) - 1)] for x in NEW]
    assert all(gaps[0] == np.inf for gaps in model.predict_score_gaps(NEW, fixed=fixed))


def test_one_label_only() -> None:
    """With a single label: probability one, one best sequence, gaps without end."""
    X = [np.ones((3, 2)), np.ones((1, 2))]
    with pytest.warns(NoUpdateWarning):
        model = ChainLabeler("lbfgs", max_iter=3).fit(X, [["A"] * 3, ["A"]])
    assert [m.ravel().tolist() for m in model.predict_marginals(X)] == [[1.0] * 3, [1.0]]
    assert [len(found) for found in model.predict_kbest(X, 5)] == [1, 1]
    assert all(np.isinf(gaps).all() for gaps in model.predict_score_gaps(X))


def test_bad_k_and_empty_sentences_are_refused() -> None:
    """k must be a whole number >= 1; a sentence without tokens is named."""
    model = trained()
    for k in (0, -1, 1.5, True, "2"):
        with pytest.raises(ParameterError, match="k must be a whole number >= 1"):
            model.predict_kbest(NEW, k)
    for call in (model.predict_marginals, model.predict_score_gaps, lambda X: model.predict_kbest(X, 2)):
        with pytest.raises(DataError, match="sample 1"):
            call([NEW[0], np.zeros((0, 5))])


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_huge_weights_keep_probabilities_finite(scale: float) -> None:
    """With scores up to 1e6 marginals stay in [0, 1] and add up to one, with constraints too."""
    for constraints in (None, "iob2"):
        model = trained("lbfgs", constraints)
        model.coef_ = (model.coef_ * np.float32(scale / np.abs(model.coef_).max())).astype(np.float32)
        for found in model.predict_marginals(random_corpus(2, 10, LABELS, iob2_valid, longest=5)[0]):
            np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
            assert found.min() >= 0.0
            assert found.max() <= 1.0 + 1e-9


def long_sentence(length: int, n_labels: int):
    """One packed sentence with a feature a token, and weights for it."""
    from structpred.data.sequences import PackedSequences

    rng = np.random.default_rng(0)
    data = PackedSequences(
        np.arange(length + 1),
        rng.integers(0, 100, length).astype(np.int32),
        np.ones(length, np.float32),
        np.array([0, length]),
        100,
    )
    width = -(-n_labels // 8) * 8
    w = np.zeros((102 + n_labels, width), np.float32)
    w[:, :n_labels] = rng.normal(size=(102 + n_labels, n_labels))
    return data, w.ravel()


def test_what_cannot_fit_is_refused_before_it_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence whose decoding does not fit: the error names tokens, labels and sizes, and nothing was allocated."""
    import tracemalloc

    from structpred.models.chain.decoding import decode_chains

    data, w = long_sentence(200_000, 50)
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 18)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"decoding 200,000 positions with 50 labels would need 0\.0 GiB"):
            decode_chains(data, 50, w)
        assert tracemalloc.get_traced_memory()[1] < 200_000 * 50
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read from /proc")
def test_viterbi_on_a_million_tokens() -> None:
    """A million tokens with 50 labels in one sentence: no more than its input and output, and 4 MiB.

    The labels are those of shorter pieces, away from their ends.
    """
    import subprocess
    import sys

    code = """
import resource
from test_decoding import long_sentence
import numpy as np
from structpred.data.sequences import PackedSequences
from structpred.models.chain.decoding import decode_chains
small, w = long_sentence(1000, 50)
decode_chains(small, 50, w)
data, w = long_sentence(1_000_000, 50)
before = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
labels = decode_chains(data, 50, w)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
grown = (1024 * int(status["VmHWM"].split()[0]) - before) / 2**20  # ru_maxrss would start at the peak of the parent
for start in (0, 400_000, 999_000 - 50):
    stop = min(start + 1050, 1_000_000)
    piece = PackedSequences(np.arange(stop - start + 1), data.indices[start:stop], data.values[start:stop],
                            np.array([0, stop - start]), 100)
    part = decode_chains(piece, 50, w)
    assert np.array_equal(part[50:-50], labels[start + 50 : stop - 50]), start
print(len(labels), grown)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stderr
    tokens, grown = done.stdout.split()
    assert int(tokens) == 1_000_000
    # labels and their copies, token weights and the gold stand-in of 8 bytes a token each; blocks of positions
    assert float(grown) < 4 + 6 * 8


def test_forbidden_is_one_constant() -> None:
    """What the model forbids is what the kernels take for forbidden."""
    from structpred.oracles.chains import _chain_sum_kernels, _semimarkov_kernels

    assert FORBIDDEN <= _chain_sum_kernels.FORBIDDEN
    assert FORBIDDEN <= _semimarkov_kernels.FORBIDDEN


def test_an_empty_sequence_has_no_labels_and_stops_nothing() -> None:
    """predict gives it an empty array, wherever it stands, with constraints, too; errors keep the numbers of the samples."""
    model = trained()
    plain = [labels.tolist() for labels in model.predict(NEW[:3])]
    for i in range(4):
        X = [*NEW[:i], [], *NEW[i:3]]
        allowed = [*([None] * len(x) for x in X)]
        for found in (model.predict(X), model.predict(X, allowed=allowed)):
            assert [labels.tolist() for labels in found] == [*plain[:i], [], *plain[i:]]
    rows = ChainLabeler(template="pos", max_iter=1).fit([[("a",), ("b",)]], [["x", "y"]])
    for either in (model, rows):
        assert [labels.tolist() for labels in either.predict([[], []])] == [[], []]
        assert either.predict([]) == []
    with pytest.raises(NotFittedError):
        ChainLabeler().predict([[]])
    with pytest.raises(DataError, match="sample 2"):
        model.predict([NEW[0], [], 5])
