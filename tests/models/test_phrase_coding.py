"""ChainLabeler(coding=...): another scheme inside, answers in that of the user, in training, prediction, files and streams."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.data.tag_schemes import SCHEMES, each_violation, phrases, written
from structpred.errors import DataError, ModelFileError, ParameterError
from structpred.evaluation import chunk_counts
from structpred.models import ChainLabeler, KernelChainLabeler
from structpred.models.chain.constraints import ChainConstraints
from structpred.models.sharding import sharding_of
from structpred.storage.bundles import read_bundle

OWN = ["iob1", "iob2", "iobes", "bilou"]
RNG = np.random.default_rng(0)


def corpus(own: str, n: int = 40, seed: int = 0) -> tuple[list[Any], list[list[str]]]:
    """Sequences of feature strings that mostly show the labels: phrases of X and Y, some of them side by side."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        row: list[str] = []
        while len(row) < 4 or rng.random() < 0.6:
            kind, length = rng.choice(["X", "Y"]), int(rng.integers(1, 4))
            row += ["O"] if rng.random() < 0.3 else [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)
        X.append([[f"w={label if rng.random() < 0.85 else '?'}", f"r={rng.integers(4)}"] for label in row])
        y.append(written(row, own))
    return X, y


def lists(labels: Any) -> list[list[str]]:
    """Arrays of labels as lists."""
    return [row.tolist() for row in labels]


@pytest.mark.parametrize("inside", SCHEMES)
@pytest.mark.parametrize("own", OWN)
def test_it_is_training_on_labels_that_were_recoded_by_hand(own: str, inside: str) -> None:
    """The same bits as a model of recoded labels, constrained when it predicts; answers in the scheme of y, nothing broken."""
    X, y = corpus(own)
    model = ChainLabeler("sgd", coding=inside, max_iter=3).fit(X, y)
    by_hand = ChainLabeler("sgd", max_iter=3).fit(X, [written(row, inside) for row in y])
    assert model.classes_.tolist() == by_hand.classes_.tolist()
    assert model.coef_.tobytes() == by_hand.coef_.tobytes()
    assert model.coding_ == (inside, own)
    new, truth = corpus(own, seed=1)
    wanted = by_hand.set_params(constraints=inside).predict(new)
    found = lists(model.predict(new))
    assert found == [written(row.tolist(), own) for row in wanted]
    assert not any(violation for row in found for violation in each_violation(row, own.upper()))
    assert chunk_counts([written(row, "iobes") for row in truth], [written(row, "iobes") for row in found])[0].f1 > 0.4
    assert [row[0][0].tolist() for row in model.predict_kbest(new, 3)] == found
    assert all(len({tuple(labels) for labels, _ in best}) == len(best) for best in model.predict_kbest(new, 5))


def test_without_a_coding_nothing_changes() -> None:
    """coding=None: labels are what they are, broken ones too; the file does not speak of it."""
    X, y = corpus("iob2")
    y[0][0] = "I-Z"
    model = ChainLabeler("sgd", max_iter=2).fit(X, y)
    assert model.coding_ is None
    assert model.classes_.tolist() == sorted({label for row in y for label in row})


@pytest.mark.parametrize("constraints", [None, "iobes", "iob2"])
def test_broken_labels_are_read_as_conlleval_reads_them(constraints: str | None) -> None:
    """An I- at the start, or after another type, begins a phrase: the same bits as of the labels without fault."""
    X, y = corpus("iob2")
    broken = [[label.replace("B", "I") if t == 0 or row[t - 1] == "O" else label for t, label in enumerate(row)] for row in y[:9]]
    assert broken != y[:9]
    settings: dict[str, Any] = {"coding": "iobes", "constraints": constraints, "max_iter": 2}
    good, bad = (ChainLabeler("sgd", **settings).fit(X, rows) for rows in (y, [*broken, *y[9:]]))
    assert good.coef_.tobytes() == bad.coef_.tobytes()
    assert bad.coding_ == ("iobes", "iob2")
    with pytest.raises(DataError, match=r"the true label 'I-.' .* breaks the constraints"):
        ChainLabeler("sgd", constraints="iob2").fit(X, [*broken, *y[9:]])


def test_marginals_are_over_the_labels_inside() -> None:
    """A column for each of classes_; those of one tag of the user add up to its probability, as from k best of all."""
    X, y = corpus("iob2", 20)
    model = ChainLabeler("lbfgs", coding="iobes", max_iter=8).fit(X, y)
    x = [[["w=B-X"], ["w=?"], ["r=1"]]]
    table = model.predict_marginals(x)[0]
    assert table.shape == (3, len(model.classes_)) == (3, 9)
    best = model.predict_kbest(x, 10_000)[0]
    shares = np.exp([score for _, score in best])
    starts = sum(share for (labels, _), share in zip(best, shares / shares.sum(), strict=True) if labels[1] == "B-X")
    columns = [model.classes_.tolist().index(label) for label in ("B-X", "S-X")]
    assert table[1, columns].sum() == pytest.approx(starts)


@pytest.mark.parametrize("own", ["iob2", "iobes"])
def test_fixed_and_allowed_labels_are_the_users(own: str) -> None:
    """What is predicted is what was fixed, or one of those allowed, in the scheme of y."""
    X, y = corpus(own)
    model = ChainLabeler("sgd", coding="iobes", max_iter=2).fit(X, y)
    new, truth = corpus(own, seed=3)
    fixed = [[label if RNG.random() < 0.3 else None for label in row] for row in truth]
    allowed = [None if i == 0 else [{label, "O"} if RNG.random() < 0.5 else None for label in row] for i, row in enumerate(truth)]
    for row, some, few in zip(lists(model.predict(new, fixed=fixed, allowed=allowed)), fixed, allowed, strict=True):
        assert all(f is None or f == label for label, f in zip(row, some, strict=True))
        assert all(a is None or label in a for label, a in zip(row, few or [None] * len(row), strict=True))
    with pytest.raises(DataError, match="the model does not know the label 'B-Z'"):
        model.predict(new[:1], fixed=[["B-Z", *[None] * (len(new[0]) - 1)]])


@pytest.mark.filterwarnings("ignore::structpred.errors.MissingLabelsWarning")
@pytest.mark.parametrize("trainer", ["sgd", "lbfgs"])
def test_labels_may_be_missing(trainer: str) -> None:
    """None, sets and a mark, also right at phrases; all known gives the bits of known labels."""
    X, y = corpus("iob2")
    part = [[None if RNG.random() < 0.2 else {label, "O"} if RNG.random() < 0.1 else label for label in row] for row in y]
    model = ChainLabeler(trainer, coding="iobes", max_iter=6).fit(X, part)
    assert model.coding_ == ("iobes", "iob2")
    assert chunk_counts(y, lists(model.predict(X)))[0].f1 > 0.6
    marked = [["?" if label is None or isinstance(label, set) else label for label in row] for row in part]
    assert ChainLabeler(trainer, coding="iobes", missing="?", max_iter=2).fit(X, marked).score(X, marked) > 0.5


def test_sequences_of_any_length_have_labels() -> None:
    """All phrases of training have two tokens, and none is outside: sequences of one and of three have labels, too."""
    model = ChainLabeler("sgd", coding="iobes", max_iter=3).fit([[["a"], ["b"]]] * 3, [["B-X", "I-X"]] * 3)
    assert lists(model.predict([[["a"]], [["a"], ["b"], ["b"]]])) == [["B-X"], ["B-X", "I-X", "B-X"]]


def test_kernels_have_it_too(tmp_path: Path) -> None:
    """A labeller with a kernel is coded alike, and so is its file."""
    x, y = [np.eye(2), np.eye(2)[::-1]], [["O", "B-X"], ["B-X", "O"]]
    model = KernelChainLabeler(kernel="rbf", coding="iobes", max_iter=20).fit(x, y)
    assert model.classes_.tolist() == ["O", "S-X"]
    model.save(tmp_path / "k.spz")
    assert lists(KernelChainLabeler.load(tmp_path / "k.spz").predict(x)) == lists(model.predict(x)) == y


@pytest.mark.filterwarnings("ignore::structpred.errors.MissingLabelsWarning")
def test_what_follows_a_missing_label_shows_no_scheme() -> None:
    """An I- after a label that is missing does not make IOB2 data IOB1: it may go on with a phrase, and does so in training."""
    y: list[list[Any]] = [[None, "I-X", "O"]] * 5 + [["B-X", "I-X", "O"], ["O", "B-X", "O"]]
    model = ChainLabeler("lbfgs", coding="iobes", max_iter=9).fit([[["a"], ["b"], ["c"]]] * 7, y)
    assert model.coding_ == ("iobes", "iob2")
    assert lists(model.predict([[["a"], ["b"], ["c"]]])) == [["B-X", "I-X", "O"]]


def test_explanations_speak_of_the_labels_inside() -> None:
    """Contributions add up to the score; labels to explain are given in the scheme of the user."""
    X, y = corpus("iob2")
    model = ChainLabeler("sgd", coding="iobes", max_iter=2).fit(X, y)
    found, best = model.explain(X[0]), model.predict_kbest(X[:1], 1)[0][0]
    assert found.score == pytest.approx(best[1], rel=1e-5)
    assert model.explain(X[0], best[0].tolist()).score == found.score
    assert {c.label for c in found.contributions} <= {*model.classes_.tolist(), None}


def test_a_file_keeps_both_schemes(tmp_path: Path) -> None:
    """The model that is read predicts the same, and trains again with its scheme; other schemes in the file are refused."""
    X, y = corpus("bilou")
    model = ChainLabeler("sgd", coding="iobes", constraints="iob2", max_iter=2).fit(X, y)
    model.save(tmp_path / "m.spz")
    again = ChainLabeler.load(tmp_path / "m.spz")
    assert (again.coding, again.coding_) == ("iobes", ("iobes", "bilou"))
    assert lists(again.predict(X)) == lists(model.predict(X))
    assert again.fit(X, y).coef_.tobytes() == model.coef_.tobytes()
    ChainLabeler("sgd", max_iter=2).fit(X, y).save(tmp_path / "plain.spz")
    assert "coding" not in read_bundle(tmp_path / "plain.spz", kind="model", format_version=1).header
    model.coding_ = ("iobes", "iob7")
    with pytest.raises(DataError, match="iob7"):
        model.save(tmp_path / "bad.spz")


def test_auto_takes_the_best_of_the_folds() -> None:
    """The scheme is the one whose phrases are found best in three folds; the model is the one of that scheme."""
    X, y = corpus("iob1", 18)
    model = ChainLabeler("sgd", coding="auto", max_iter=2).fit(X, y)
    scores = {}
    for scheme in SCHEMES:
        right = total = 0
        for k in range(3):
            train = [i for i in range(18) if i % 3 != k]
            fold = ChainLabeler("sgd", coding=scheme, max_iter=2).fit([X[i] for i in train], [y[i] for i in train])
            pairs = [(phrases(y[i]), phrases(row)) for i, row in zip(range(k, 18, 3), lists(fold.predict(X[k::3])), strict=True)]
            right, total = right + sum(len(a & b) for a, b in pairs), total + sum(len(a) + len(b) for a, b in pairs)
        scores[scheme] = 2 * right / total
    assert len(set(scores.values())) > 1
    assert model.coding_ == (max(scores, key=lambda name: scores[name]), "iob1")
    assert model.coding == "auto"
    wanted = ChainLabeler("sgd", coding=model.coding_[0], max_iter=2).fit(X, y)
    assert wanted.coef_.tobytes() == model.coef_.tobytes()


def test_pieces_of_data() -> None:
    """fit_stream and partial_fit know the labels from `classes`: all forms of them are inside."""
    X, y = corpus("iob2")
    classes = sorted({label for row in y for label in row})
    new, truth = corpus("iob2", seed=1)
    stream = ChainLabeler("perceptron", coding="iobes", n_bits=10).fit_stream(lambda: zip(X, y, strict=True), classes, 2)
    pieces = ChainLabeler("perceptron", coding="iobes", n_bits=10).partial_fit(X, y, classes).partial_fit(X, y)
    assert stream.coef_.tobytes() == pieces.coef_.tobytes()
    assert stream.classes_.tolist() == sorted(["O", *(f"{tag}-{kind}" for tag in "BIES" for kind in "XY")])
    assert chunk_counts(truth, lists(stream.predict(new)))[0].f1 > 0.6
    assert stream.coding_ == ("iobes", "iob2")


def test_shards_agree_on_the_labels_of_all_data() -> None:
    """Labels inside are those of all shards, and answers are in the scheme of most; `classes` may name the labels of users."""
    X, y = corpus("iob1", 12)
    shards = [(X[:5], y[:5]), (X[5:6], [["O"] * len(y[5])]), (X[6:], y[6:])]
    model = ChainLabeler("lbfgs", coding="iobes")
    how = sharding_of(model)
    scans = [how.scan(model, *shard) for shard in shards]
    plan = how.plan(model, scans, None)
    assert plan.encoder.classes.tolist() == sorted({x for _, rows in shards for row in rows for x in written(row, "iobes")})
    assert plan.encoder.coding == ("iobes", "iob1")
    tasks = [how.task(model, plan, *shard)[0] for shard in shards]
    assert [plan.encoder.classes[labels].tolist() for labels in tasks[0].labels] == [written(row, "iobes") for row in y[:5]]
    named = how.plan(model, scans, ["O", "B-X", "I-X", "B-Y", "I-Y"])
    assert named.encoder.classes.tolist() == sorted(["O", *(f"{tag}-{kind}" for tag in "BIES" for kind in "XY")])


def test_held_out_data_are_scored_in_the_scheme_of_y() -> None:
    """The score of each pass is that of predictions: with `dev` the best weights give the best score."""
    X, y = corpus("iob2")
    new, truth = corpus("iob2", seed=1)
    f1 = lambda gold, found: chunk_counts(gold, lists(found))[0].f1  # noqa: E731
    model = ChainLabeler("sgd", coding="iobes", max_iter=3, check_every=1, dev_metric=f1).fit(X, y, dev=(new, truth))
    assert max(row["dev_score"] for row in model.history_) == pytest.approx(f1(truth, model.predict(new)))


def test_training_under_a_dictionary_of_the_users_labels() -> None:
    """`allowed` at fit holds labels of y: it rules out the others while training, and a true label that it lacks is an error."""
    X, y = corpus("iob2", 12)
    few = [[{"O", label} for label in row] for row in y]
    fits = [ChainLabeler(coding="iobes", max_iter=2).fit(X, y, allowed=some) for some in (None, few)]
    assert fits[0].coef_.tobytes() != fits[1].coef_.tobytes()
    assert fits[1].certificate_.primal < fits[0].certificate_.primal  # what is ruled out needs no learning
    few[3][1] = {"B-X", "B-Y", "I-X", "I-Y", "O"} - {y[3][1]}
    with pytest.raises(DataError, match=r"sample 3, position 1: the true label .* breaks the constraints"):
        ChainLabeler(coding="iobes").fit(X, y, allowed=few)


@pytest.mark.parametrize(
    ("settings", "y", "error", "message"),
    [
        ({"coding": "bio"}, None, ParameterError, "coding: expected None, 'iob1', 'iob2', 'iobes', or in fit 'auto', got 'bio'"),
        ({"coding": ["iobes"]}, None, ParameterError, "got \\['iobes'\\]"),
        ({"coding": "iobes"}, [["O", "NN"]], DataError, "sample 0: coding: expected labels of phrases, .* got 'NN'"),
        ({"coding": "iobes"}, [[1, 2]], DataError, "sample 0: coding: .* got 1"),
        ({"coding": "iobes", "constraints": ChainConstraints([("O", "B-X")])}, None, ParameterError, "give a scheme alone"),
    ],
)
def test_refusals(settings: dict[str, Any], y: Any, error: type[Exception], message: str) -> None:
    """What cannot be coded is said in a line, with the sample."""
    with pytest.raises(error, match=message):
        ChainLabeler(**settings).fit([[["a"], ["b"]]], y or [["O", "B-X"]])


def test_auto_needs_all_data_and_no_kernel() -> None:
    """Streams and kernels are asked to name a scheme."""
    x, y = [np.eye(2)], [["O", "B-X"]]
    with pytest.raises(ParameterError, match="in fit 'auto', got 'auto'"):
        ChainLabeler("perceptron", coding="auto").partial_fit(x, y)
    with pytest.raises(ParameterError, match="'auto' is not for kernels; name one of iob1, iob2, iobes"):
        KernelChainLabeler(coding="auto").fit(x * 3, y * 3)
    assert lists(KernelChainLabeler(coding="iobes", max_iter=20).fit(x * 3, y * 3).predict(x)) == y


def test_a_file_with_a_bent_scheme_is_refused(tmp_path: Path) -> None:
    """Labels that the scheme inside does not have are found when the file is read."""
    X, y = corpus("iob2")
    model = ChainLabeler("sgd", coding="iobes", max_iter=1).fit(X, y)
    model.coding_ = ("iob2", "iob2")
    model.save(tmp_path / "bent.spz")
    with pytest.raises(ModelFileError, match="'E-X' is not a valid IOB2 tag"):
        ChainLabeler.load(tmp_path / "bent.spz")
