"""SegmentLabeler: what it scores and sums equals a listing of all segmentations; training, files, and what it refuses."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from structpred.contracts.checks import check_feature_map
from structpred.data.sequences import PackedSequences
from structpred.data.tag_schemes import written
from structpred.errors import DataError, ModelFileError, ParameterError
from structpred.features.segments import SegmentFeatures, WrongTokens
from structpred.io.columns import ColumnCorpus
from structpred.models import ChainLabeler, SegmentLabeler, load
from structpred.objectives.log_loss import LogLoss
from structpred.oracles.semimarkov import SemiMarkovOracle, as_segments
from structpred.task.task import Task

ORACLE = SemiMarkovOracle()
#: lengths of sequences, labels, positions of the longest segment
SIZES = [((1, 4, 5), 2, 3), ((3, 1), 3, 1), ((2, 4), 3, 6), ((3, 2), 1, 2)]


def packed(rng: np.random.Generator, lengths: Any, n_features: int) -> PackedSequences:
    """Random features, none to three a position."""
    counts = rng.integers(0, 4, sum(lengths))
    indices, values = rng.integers(0, n_features, counts.sum()), rng.normal(size=counts.sum())
    return PackedSequences(np.cumsum([0, *counts]), indices, values, np.cumsum([0, *lengths]), n_features)


def features_of(lengths: Any, n_labels: int, longest: int) -> SegmentFeatures:
    """Random features of tokens and of segments."""
    rng = np.random.default_rng(len(lengths))
    tokens = packed(rng, lengths, 4)
    return SegmentFeatures(tokens, packed(rng, [n * longest for n in lengths], 3), n_labels, longest)


def rows(data: PackedSequences, table: Any) -> Any:
    """The sum of the weights of the features of each position."""
    return np.array([data.values[a:b] @ table[data.indices[a:b]] for a, b in pairwise(data.indptr.tolist())])


def outputs(shape: Any) -> Iterator[Any]:
    """All segmentations in which label 0 has single tokens only."""
    return (y for y in ORACLE.enumerate(shape) if all(m == 1 or label for _, m, label in as_segments(y).tolist()))


def scored(features: SegmentFeatures, w: Any, i: int, labels: Any) -> float:
    """The score of a segmentation by the words of the class: token by token, segment by segment."""
    (length, _, longest), width = features.shapes[i], features.segments.width
    table, whole = w[: features.tokens.dim].reshape(-1, features.tokens.width), w[features.tokens.dim :].reshape(-1, width)
    tokens, segments = rows(features.tokens.data, table), rows(features.segments.data, whole)
    first, n = int(features.tokens.data.offsets[i]), features.segments.data.n_features
    total, before = 0.0, None
    for start, m, label in as_segments(labels).tolist():
        total += segments[(first + start) * longest + m - 1, label]
        marks = "S" if m == 1 else "B" + "I" * (m - 2) + "E"
        for t, mark in enumerate(marks, first + start):
            total += tokens[t, 4 * label - 3 + "SBIE".index(mark) if label else 0]
        if start == 0 and m == 1:
            total += whole[n, label]
        if longest == 1 and start == length - 1:
            total += whole[n + 1, label]
        total += 0.0 if before is None else whole[n + 2 + before, label]
        before = label
    return float(total)


@pytest.mark.parametrize("size", SIZES)
def test_scores_sums_and_the_best_equal_a_listing(size: Any) -> None:
    """Of segments with features of their own and of their tokens: the best one, log Z, expected part counts."""
    features, rng = features_of(*size), np.random.default_rng(0)
    w = rng.normal(size=features.dim)
    for i, shape in enumerate(features.shapes):
        theta = features.scores(w, i) + features.fixed_scores(i)
        every = list(outputs(shape))
        listed = np.array([scored(features, w, i, y) for y in every])
        np.testing.assert_allclose([theta[ORACLE.parts(y, shape)].sum() for y in every], listed, atol=1e-9)
        assert scored(features, w, i, ORACLE.argmax(theta, shape)) == pytest.approx(listed.max())
        log_z, mu = ORACLE.marginals(theta, shape)
        assert log_z == pytest.approx(logsumexp(listed))
        wanted = np.zeros(len(mu))
        for y, p in zip(every, np.exp(listed - log_z), strict=True):
            np.add.at(wanted, ORACLE.parts(y, shape), p)
        np.testing.assert_allclose(mu, wanted, atol=1e-9)


@pytest.mark.parametrize("size", SIZES)
def test_the_map_keeps_its_contract(size: Any) -> None:
    """<mu, scores(w)> = <w, adjoint(mu)>, and the other rules of a feature map."""
    features = features_of(*size)
    assert check_feature_map(features).checked["adjoint"] == len(features)
    assert features.groups[-1] == features.dim
    assert len(features.group_names) == len(features.groups) - 1


def test_the_loss_counts_wrong_tokens() -> None:
    """For every pair of segmentations: the tokens with another label, or at another place in their segment."""
    shape = (4, 3, 3)

    def tags(y: Any) -> list[Any]:
        rows = as_segments(y).tolist()
        return [(label, "S" if m == 1 else "B" + "I" * (m - 2) + "E", k) for _, m, label in rows for k in range(m)]

    every = list(outputs(shape))
    for truth in every[::7]:
        answer = WrongTokens().costs(truth, shape, ORACLE)
        for y in every:
            wrong = sum((a, p[i]) != (b, q[j]) for (a, p, i), (b, q, j) in zip(tags(truth), tags(y), strict=True))
            assert answer.constant + answer.costs[ORACLE.parts(y, shape)].sum() == wrong


def test_the_gradient_of_the_log_loss_is_that_of_its_values() -> None:
    """Central differences along every weight."""
    features, rng = features_of((1, 4, 3), 2, 3), np.random.default_rng(1)
    labels = [list(outputs(shape))[-1] for shape in features.shapes]
    task, loss = Task(features, ORACLE, labels, features.shapes, WrongTokens()), LogLoss()
    w = rng.normal(size=task.dim)
    gradient = loss.gradient(task, w, np.ones(3))[1]
    for j in range(task.dim):
        shift = 1e-5 * (np.arange(task.dim) == j)
        slope = (loss.values(task, w + shift).sum() - loss.values(task, w - shift).sum()) / 2e-5
        assert gradient[j] == pytest.approx(slope, abs=1e-7)


SENTENCES = ["the old dog sees New York", "New York is old", "a dog of New York City sleeps", "Ann Lee sees a dog", "dogs sleep"]
PLACES = [{4: "B-LOC", 5: "I-LOC"}, {0: "B-LOC", 1: "I-LOC"}, {3: "B-LOC", 4: "I-LOC", 5: "I-LOC"}, {0: "B-PER", 1: "I-PER"}, {}]
X = [[(w, "N" if w[0].isupper() else "x") for w in text.split()] for text in SENTENCES]
Y = [[own.get(t, "O") for t in range(len(x))] for x, own in zip(X, PLACES, strict=True)]
DICTS = [[{"w": w, "pos": pos} for w, pos in x] for x in X]


def lists(labels: Any) -> list[list[str]]:
    """Arrays of labels as lists."""
    return [row.tolist() for row in labels]


@pytest.mark.parametrize("own", ["iob1", "iob2", "iobes", "bilou"])
def test_answers_are_in_the_scheme_of_the_user(own: str) -> None:
    """Fitted to labels of any scheme it gives them back, the same phrases, and what it learnt of them."""
    y = [written(row, own) for row in Y]
    model = SegmentLabeler(template="ner", C=10.0, max_iter=20).fit(X, y)
    assert lists(model.predict(X)) == y
    assert model.score(X, Y) == 1.0
    assert (model.classes_.tolist(), model.max_length_) == (["O", "LOC", "PER"], 3)
    assert model.phrases_ == ["ann lee", "new york", "new york city"]
    assert lists(model.predict([[], X[1]])) == [[], y[1]]


def test_every_form_of_input_says_the_same() -> None:
    """Rows, a generator of them and a column corpus give the same bits; feature dicts with word= give phrases, too."""
    settings: dict[str, Any] = {"template": "ner", "max_iter": 3}
    first = SegmentLabeler(**settings).fit(X, Y)
    for given in (ColumnCorpus.from_rows(X), (x for x in X)):
        other = SegmentLabeler(**settings).fit(given, Y)
        assert other.coef_.tobytes() == first.coef_.tobytes()
        assert lists(other.predict(ColumnCorpus.from_rows(X))) == lists(first.predict(X))
    named = SegmentLabeler(word="w", C=10.0, max_iter=20).fit(DICTS, Y)
    assert named.phrases_ == first.phrases_
    assert lists(named.predict(DICTS)) == Y


def test_a_phrase_that_was_seen_is_found_where_its_tokens_say_nothing() -> None:
    """Tokens without features: only the segment "new york" has a weight of its own, and beats the words alone."""
    blank = [[{"w": w} for w in text.split()] for text in ("new york", "york new", "new", "york") * 3]
    y = [["B-LOC", "I-LOC"], ["O", "O"], ["O"], ["O"]] * 3
    model = SegmentLabeler(word="w", min_count=99, C=10.0, max_iter=50).fit(blank, y)
    assert lists(model.predict(blank)) == y
    assert lists(ChainLabeler(min_count=99, C=10.0, max_iter=50).fit(blank, y).predict(blank[:2])) != y[:2]


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
@pytest.mark.parametrize("trainer", ["sgd", "bcfw", "perceptron", "n_slack", "lbfgs", "oeg"])
def test_trainers_and_losses(trainer: str) -> None:
    """Margins and the log loss are learnt; certified lower bounds lie below the objective."""
    model = SegmentLabeler(trainer, 10.0, template="ner", max_iter=30).fit(X, Y)
    assert model.score(X, Y) > 0.7
    assert model.probabilistic_ == (trainer in ("lbfgs", "oeg"))
    primal, dual = model.certificate_.primal, model.certificate_.dual
    assert primal is None or dual is None or dual <= primal + 1e-9


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_held_out_data_choose_the_weights() -> None:
    """dev: F1 of phrases of each pass is in the history, and the best weights are kept."""
    model = SegmentLabeler("sgd", template="ner", max_iter=6, check_every=1).fit(X, Y, dev=(X[:2], Y[:2]))
    found = [row["dev_score"] for row in model.history_]
    assert max(found) == pytest.approx(model.score(X[:2], Y[:2]))


def test_files_bring_it_back(tmp_path: Path) -> None:
    """The same settings, weights and answers; phrases that are missing, or other ones, are an error of the file."""
    for given, settings in ((X, {"template": "ner"}), (DICTS, {"word": "w", "max_length": 4, "n_bits": 8})):
        model = SegmentLabeler(max_iter=3, **settings).fit(given, Y)
        model.save(tmp_path / "m.spz")
        read = load(tmp_path / "m.spz")
        assert read.coef_.tobytes() == model.coef_.tobytes()
        assert lists(read.predict(given)) == lists(model.predict(given))
        assert (read.phrases_, read.max_length_, read.word) == (model.phrases_, model.max_length_, model.word)
        assert read.fit(given, Y).coef_.tobytes() == model.coef_.tobytes()
    model.phrases_ = model.phrases_[:1]
    model.save(tmp_path / "m.spz")
    with pytest.raises(ModelFileError, match="weights"):
        load(tmp_path / "m.spz")


REFUSED: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "labels without a scheme": (X[:2], [["DET"] * 6, ["O"] * 4], {"template": "ner"}, r"sample 0: .*expected labels of phrases"),
    "a label that is missing": (X[:2], [Y[0], [None, "O", "O", "O"]], {"template": "ner"}, r"sample 1: labels must be"),
    "a longer phrase": (X, Y, {"template": "ner", "max_length": 2}, r"sample 2, position 3: .*longer than max_length=2"),
    "an empty sequence": ([X[0], []], [Y[0], []], {"template": "ner"}, r"sample 1: .*empty"),
    "labels of another length": (X[:1], [["O"]], {"template": "ner"}, r"sample 0: x has 6 tokens but y has 1 labels"),
    "no such column": (X, Y, {"template": "ner", "word": 7}, r"sample 0: expected words at word=7"),
    "dicts without a word": (DICTS, Y, {}, r"sample 0: expected words at word=0"),
    "numbers": ([np.eye(6)], Y[:1], {}, r"sample 0: expected words at word=0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_in_one_line(name: str) -> None:
    """With the sample, before anything is trained; what was learnt before stays."""
    given, labels, settings, message = REFUSED[name]
    model = SegmentLabeler(template="ner", max_iter=2).fit(X, Y)
    kept = model.coef_.copy()
    with pytest.raises(DataError, match=message) as error:
        model.set_params(**{"template": None, **settings}).fit(given, labels)
    assert "\n" not in str(error.value)
    assert model.coef_.tobytes() == kept.tobytes()
    with pytest.raises((DataError, ParameterError), match="max_length"):
        SegmentLabeler(template="ner", max_length=0).fit(X, Y)


@pytest.mark.parametrize("size", SIZES)
def test_compiled_steps_are_plain_steps(size: Any) -> None:
    """To the last bit, for any number of threads; log losses and their gradient to rounding."""
    features, rng = features_of(*size), np.random.default_rng(2)
    labels = [list(outputs(shape))[-1] for shape in features.shapes]
    plain, *tasks = (
        Task(features, ORACLE, labels, features.shapes, WrongTokens(), compiled=jobs > 0, n_jobs=max(jobs, 1))
        for jobs in range(3)
    )
    n, w = len(labels), rng.normal(size=features.dim).astype(np.float32)
    values, gradient = plain.log_losses(w, np.arange(n) + 1.0)
    sums = [task.log_losses(w, np.arange(n) + 1.0) for task in tasks]
    np.testing.assert_allclose(sums[0][0], values, atol=1e-9)
    np.testing.assert_allclose(sums[0][1], gradient, atol=1e-9)
    assert sums[0][1].tobytes() == sums[1][1].tobytes()
    for task in tasks:
        assert task.violations(w, 1.0).tobytes() == plain.violations(w, 1.0).tobytes()
        for i in range(n):
            step, wanted = task.step(w, i, 1.0, 0.5), plain.step(w, i, 1.0, 0.5)
            assert (step.loss, step.violation) == (wanted.loss, wanted.violation)
            assert step.difference.indices.tolist() == wanted.difference.indices.tolist()
            assert step.difference.values.tobytes() == wanted.difference.values.tobytes()


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_marginals_of_a_batch_are_those_of_each(scale: float) -> None:
    """The same bits; counts of segments that end anywhere add up to one, however large the scores are."""
    shapes = [(1, 2, 3), (5, 3, 2), (6, 1, 1)]
    rng, sizes = np.random.default_rng(3), [ORACLE.n_parts(shape) for shape in shapes]
    flat, ends = scale * rng.normal(size=sum(sizes)), np.cumsum([0, *sizes])
    log_zs, mu = ORACLE.marginals_batch(flat, ends, shapes)
    for (a, b), shape, log_z in zip(pairwise(ends.tolist()), shapes, log_zs.tolist(), strict=True):
        alone = ORACLE.marginals(flat[a:b], shape)
        assert (alone[0], alone[1].tobytes()) == (log_z, mu[a:b].tobytes())
        length, n_labels, longest = shape
        segments = alone[1][: length * longest * n_labels].reshape(length, longest, n_labels)
        covered = np.zeros(length)
        for t, m, label in np.ndindex(segments.shape):
            covered[t : t + m + 1] += segments[t, m, label]
        np.testing.assert_allclose(covered, 1.0, atol=1e-12)
