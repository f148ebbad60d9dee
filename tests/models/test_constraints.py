"""Hard constraints, at fit and predict: the same as searching through the sequences that keep to them."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_listing import IOBES, LABELS, Listing, iob2_valid, iobes_valid, random_corpus

from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.evaluation import evaluate_sequences
from structpred.io import read_columns
from structpred.models import ChainLabeler
from structpred.models.chain.constraints import ChainConstraints, tag_dictionary


def anything(sequence: Any) -> bool:
    """No rule."""
    return True


def pairs_without(*bad: tuple[str, str]) -> Any:
    """A rule: none of these pairs side by side."""
    return lambda s: not any(pair in bad for pair in itertools.pairwise(s))


BAD = [("O", "B-X"), ("B-Y", "B-Y")]
AFTER_X = ("I-X", "O")
RULES: dict[str, tuple[Any, Any, list[str]]] = {
    "iob2": ("iob2", iob2_valid, LABELS),
    "iobes": ("iobes", iobes_valid, IOBES),
    "forbidden": (
        ChainConstraints(forbidden=[("O", "B-X"), ("B-Y", "B-Y")]),
        pairs_without(("O", "B-X"), ("B-Y", "B-Y")),
        LABELS,
    ),
    "required": (
        ChainConstraints(required={"B-X": AFTER_X}),
        pairs_without(*(("B-X", name) for name in LABELS if name not in AFTER_X)),
        LABELS,
    ),
    "first": (ChainConstraints(not_first=["O", "I-X"]), lambda s: s[0] not in ("O", "I-X"), LABELS),
    "last": (ChainConstraints(not_last=["B-Y", "nobody"]), lambda s: s[-1] != "B-Y", LABELS),
    "all at once": (
        ChainConstraints([("O", "B-X")], {"B-Y": ["I-Y"]}, ["B-Y"], ["B-Y"], "iob2"),
        lambda s: (
            iob2_valid(s)
            and pairs_without(("O", "B-X"), *(("B-Y", n) for n in LABELS if n != "I-Y"))(s)
            and s[0] != "B-Y"
            and s[-1] != "B-Y"
        ),
        LABELS,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "mira", "perceptron", "oeg", "lbfgs"])
@pytest.mark.parametrize("name", RULES)
def test_decoding_equals_the_best_of_those_allowed(name: str, trainer: str) -> None:
    """Trained with the constraint, with every trainer: predictions keep to it and are the best that do; some had to change."""
    constraints, rule, labels = RULES[name]
    X, y = random_corpus(0, 40, labels, rule)
    model = ChainLabeler(trainer, max_iter=6, constraints=constraints, random_state=1).fit(X, y)
    assert set(model.classes_) == set(labels)
    new, _ = random_corpus(1, 40, labels, anything, longest=4)
    changed = 0
    for x, found in zip(new, model.predict(new), strict=True):
        listing = Listing(model, x)
        free = listing.best()
        best = listing.keep(rule).best()
        assert tuple(found) == best
        changed += free != best
    assert changed > 0


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", RULES)
def test_training_under_constraints_is_that_of_the_listed_problem(name: str) -> None:
    """The CRF's objective and its optimality condition hold over the sequences allowed: expected counts from listing them."""
    constraints, rule, labels = RULES[name]
    X, y = random_corpus(2, 12, labels, rule, longest=4)
    model = ChainLabeler("lbfgs", C=2.0, max_iter=60, constraints=constraints).fit(X, y)
    listings = [Listing(model, x).keep(rule) for x in X]
    losses = []
    for listing, tags in zip(listings, y, strict=True):
        top = listing.scores.max()
        losses.append(top + np.log(np.exp(listing.scores - top).sum()) - listing.scores[listing.sequences.index(tuple(tags))])
    norm = float(model.coef_.astype(np.float64) @ model.coef_)
    assert model.certificate_.primal == pytest.approx(norm / (2 * 2.0 * 12) + np.mean(losses), rel=1e-5)
    oeg = ChainLabeler("oeg", C=2.0, max_iter=200, tol=1e-4, constraints=constraints).fit(X, y).certificate_
    assert oeg.primal == pytest.approx(model.certificate_.primal, rel=1e-4)
    assert oeg.dual <= model.certificate_.primal * (1 + 1e-6)
    free = ChainLabeler("lbfgs", C=2.0, max_iter=60).fit(X, y).certificate_
    assert model.certificate_.primal < free.dual or name == "last"  # what is ruled out needs no learning


@pytest.mark.parametrize("trainer", ["bcfw", "oeg"])
@pytest.mark.parametrize("name", ["iob2", "all at once"])
def test_fixed_and_allowed_labels_at_predict(name: str, trainer: str) -> None:
    """With labels fixed at some tokens and lists of allowed ones at others, together with the rules: the best of what is left."""
    constraints, rule, labels = RULES[name]
    model = ChainLabeler(trainer, max_iter=5, constraints=constraints).fit(*random_corpus(3, 40, labels, rule))
    rng = np.random.default_rng(0)
    new, truth = random_corpus(4, 40, labels, rule, longest=4)
    fixed = [[tag if rng.random() < 0.3 else None for tag in tags] for tags in truth]
    allowed = [
        None if rng.random() < 0.2 else [sorted({tag, *rng.choice(labels, 2)}) if rng.random() < 0.5 else None for tag in tags]
        for tags in truth
    ]
    for i, (x, found) in enumerate(zip(new, model.predict(new, allowed=allowed, fixed=fixed), strict=True)):

        def possible(s: tuple[str, ...], i: int = i) -> bool:
            lists = allowed[i] or [None] * len(s)
            return rule(s) and all(
                (a is None or tag in a) and (f is None or tag == f) for tag, a, f in zip(s, lists, fixed[i], strict=True)
            )

        assert tuple(found) == Listing(model, x).keep(possible).best()


@pytest.mark.parametrize("trainer", ["sgd", "lbfgs"])
def test_allowed_labels_at_fit(trainer: str) -> None:
    """A tag dictionary at fit: the objective counts only what it allows, and a truth outside it is an error."""
    X, y = random_corpus(5, 20, LABELS, anything, longest=4)
    rng = np.random.default_rng(1)
    allowed = [[sorted({tag, *rng.choice(LABELS, 2)}) for tag in tags] for tags in y]
    model = ChainLabeler(trainer, C=3.0, max_iter=30).fit(X, y, allowed=allowed)
    losses = []
    for x, tags, lists in zip(X, y, allowed, strict=True):
        listing = Listing(model, x).keep(lambda s, lists=lists: all(tag in some for tag, some in zip(s, lists, strict=True)))
        truth = listing.scores[listing.sequences.index(tuple(tags))]
        if trainer == "lbfgs":
            losses.append(np.log(np.exp(listing.scores - truth).sum()))
        else:
            wrong = [sum(a != b for a, b in zip(s, tags, strict=True)) for s in listing.sequences]
            losses.append((np.array(wrong) + listing.scores - truth).max())
    norm = float(model.coef_.astype(np.float64) @ model.coef_)
    assert model.certificate_.primal == pytest.approx(norm / (2 * 3.0 * 20) + np.mean(losses), rel=1e-5)
    allowed[7][0] = [next(tag for tag in LABELS if tag != y[7][0])]
    with pytest.raises(DataError, match=r"sample 7, position 0: the true label .* breaks the constraints"):
        ChainLabeler(trainer).fit(X, y, allowed=allowed)


def test_a_truth_that_breaks_the_rules_is_an_error() -> None:
    """The message names sample, position, label and the label before it."""
    X, y = random_corpus(6, 10, LABELS, iob2_valid)
    y[4] = ["O"] * len(X[4])
    X[4], y[4] = np.zeros((3, 5)), ["O", "B-X", "I-Y"]
    with pytest.raises(DataError, match=r"sample 4, position 2: the true label 'I-Y' after 'B-X' breaks the constraints"):
        ChainLabeler(constraints="iob2").fit(X, y)
    y[4] = ["I-Y", "O", "O"]
    with pytest.raises(DataError, match=r"sample 4, position 0: the true label 'I-Y' in front breaks the constraints"):
        ChainLabeler(constraints="iob2").fit(X, y)
    X, y = random_corpus(6, 10, IOBES, iobes_valid)
    X[9], y[9] = np.zeros((2, 5)), ["O", "B-X"]
    with pytest.raises(DataError, match="sample 9, position 1"):
        ChainLabeler(constraints="iobes").fit(X, y)


def test_the_rules_do_not_reach_across_sentences() -> None:
    """One sentence may end in O and the next begin with what O may not be followed by."""
    X, y = [np.eye(5)[:2], np.eye(5)[2:4]], [["B-X", "O"], ["B-Y", "I-Y"]]
    ChainLabeler(constraints=ChainConstraints(forbidden=[("O", "B-Y")])).fit(X, y)


@pytest.mark.parametrize("method", ["predict", "predict_marginals"])
def test_what_is_impossible_names_the_sample(method: str) -> None:
    """Fixed labels against the rules: InfeasibleError with the sample's number; an unknown label or a wrong length: DataError."""
    X, y = random_corpus(7, 20, LABELS, iob2_valid)
    model = ChainLabeler("lbfgs", max_iter=5, constraints="iob2").fit(X, y)
    call = getattr(model, method)
    new = [np.zeros((2, 5))] * 4
    free = [None, None]
    with pytest.raises(InfeasibleError, match="sample 2"):
        call(new, fixed=[free, free, ["O", "I-X"], free])
    with pytest.raises(DataError, match=r"fixed, sample 1, position 1: the model does not know the label 'B-Z'"):
        call(new, fixed=[free, [None, "B-Z"], free, free])
    with pytest.raises(DataError, match=r"allowed, sample 3: expected 2 entries, one per token, got 1"):
        call(new, allowed=[None, None, None, [["O"]]])
    with pytest.raises(DataError, match=r"sample 0, position 0: no label is left"):
        call(new, allowed=[[["O"], None], None, None, None], fixed=[["B-X", None], free, free, free])


@pytest.mark.parametrize("method", ["predict_kbest", "predict_score_gaps"])
def test_k_best_and_gaps_name_impossible_samples_or_say_nothing(method: str) -> None:
    """Where nothing is possible there is no k best sequence and no gap: InfeasibleError as for predict."""
    X, y = random_corpus(7, 20, LABELS, iob2_valid)
    model = ChainLabeler(max_iter=3, constraints="iob2").fit(X, y)
    arguments = {"k": 2} if method == "predict_kbest" else {}
    with pytest.raises(InfeasibleError, match="sample 1"):
        getattr(model, method)([np.zeros((2, 5))] * 2, fixed=[[None, None], ["O", "I-X"]], **arguments)


@pytest.mark.parametrize("short", ["allowed", "fixed"])
def test_too_few_lists_are_an_error(short: str) -> None:
    """allowed and fixed need an entry for each sample."""
    X, y = random_corpus(7, 20, LABELS, iob2_valid)
    model = ChainLabeler(max_iter=2).fit(X, y)
    with pytest.raises(DataError, match=short):
        model.predict(X[:3], **{short: [None]})


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", RULES)
def test_the_rules_are_saved_with_the_model(name: str, tmp_path: Path) -> None:
    """A loaded model predicts the same, which differs from what it would predict without the rules."""
    constraints, rule, labels = RULES[name]
    X, y = random_corpus(8, 40, labels, rule)
    model = ChainLabeler("lbfgs", max_iter=5, constraints=constraints).fit(X, y)
    model.save(tmp_path / "m.spz")
    loaded = ChainLabeler.load(tmp_path / "m.spz")
    new, _ = random_corpus(9, 40, labels, anything)
    assert [p.tolist() for p in loaded.predict(new)] == [p.tolist() for p in model.predict(new)]
    assert all(rule(tuple(p)) for p in loaded.predict(new))
    loaded.constraints = None
    assert not all(rule(tuple(p)) for p in loaded.predict(new))


def test_settings_that_make_no_sense_are_refused() -> None:
    """Unknown schemes, labels that are no tags of the scheme, constraints of another type."""
    X, y = random_corpus(10, 5, LABELS, iob2_valid)
    for constraints, message in [
        ("iob3", "expected the scheme"),
        (7, "expected 'iob2', 'iobes', 'places' or a ChainConstraints"),
    ]:
        with pytest.raises(ParameterError, match=message):
            ChainLabeler(constraints=constraints).fit(X, y)
    with pytest.raises(ParameterError, match="'NOUN' is not a valid IOB2 tag"):
        ChainLabeler(constraints="iob2").fit(X, [["NOUN"] * len(x) for x in X])


def test_the_tag_dictionary() -> None:
    """Word to labels, for words seen often enough; used as `allowed` it keeps the truth."""
    words, tags = [["a", "b", "a"], ["a", "c"]], [["X", "Y", "Z"], ["X", "X"]]
    assert tag_dictionary(words, tags) == {"a": ["X", "Z"], "b": ["Y"], "c": ["X"]}
    assert tag_dictionary(words, tags, min_count=2) == {"a": ["X", "Z"]}


def test_constrained_chunks_are_the_same_strictly_and_leniently() -> None:
    """With IOB2 rules no prediction needs repair: strict F1 is lenient F1; without them it is not."""
    X, y = random_corpus(11, 60, LABELS, iob2_valid)
    new, gold = random_corpus(12, 200, LABELS, iob2_valid)
    model = ChainLabeler("sgd", max_iter=1, C=0.01, constraints="iob2").fit(X, y)
    scores = evaluate_sequences(gold, [tags.tolist() for tags in model.predict(new)])
    assert scores.f1 == scores.f1_strict
    assert scores.f1 > 0
    model.constraints = None
    scores = evaluate_sequences(gold, [tags.tolist() for tags in model.predict(new)])
    assert scores.f1 != scores.f1_strict


@pytest.mark.slow
def test_constrained_chunking_of_conll2000(data_dir: Path) -> None:
    """On CoNLL-2000: strict F1 is lenient F1 exactly, at least 93.5, and a tenth below that without rules at most."""
    train, test = (read_columns(data_dir / "conll2000" / f"{name}.txt.gz") for name in ("train", "test"))
    scores = {}
    for constraints in (None, "iob2"):
        model = ChainLabeler("sgd", C=0.3, max_iter=6, template="chunking", constraints=constraints).fit(train, train.labels())
        scores[constraints] = evaluate_sequences(test.labels(), [tags.tolist() for tags in model.predict(test)])
    assert scores["iob2"].f1 == scores["iob2"].f1_strict
    assert scores["iob2"].f1 >= max(0.935, scores[None].f1 - 0.001)
