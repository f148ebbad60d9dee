"""Hard constraints on segments: against all segmentations, listed; budgets count segments; empty sequences shift no number."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from structpred.errors import DataError, InfeasibleError
from structpred.models import Constraint, SegmentLabeler, segments
from structpred.models.constrained import constrained
from structpred.oracles.budget import Budget
from structpred.oracles.logic import Logic
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.semimarkov import SemiMarkovOracle, as_segments
from structpred.task.inference import Inference

TEXTS = ["Ann Lee met Bo in New York", "New York met Ann", "in Oslo", "Bo Li saw New York City"]
X = [[{"w": w, "up": str(w[0].isupper())} for w in text.split()] for text in TEXTS]
Y = [
    ["B-PER", "I-PER", "O", "B-PER", "O", "B-LOC", "I-LOC"],
    ["B-LOC", "I-LOC", "O", "B-PER"],
    ["O", "B-LOC"],
    ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "I-LOC"],
]
MODEL = SegmentLabeler(word="w", max_iter=10).fit(X, Y)
FEW = X[1], X[2], [*X[2], *X[1][:3]]
Holds = Callable[[Any], bool]

#: constraints, and what they say of a list of (where a segment begins, its label)
RULES: list[tuple[Constraint, Holds]] = [
    (Constraint(Budget(at_most=1), [(None, "LOC")]), lambda s: [y for _, y in s].count("LOC") <= 1),
    (Constraint(Budget(exactly=3), [(None, None)], 0), lambda s: len(s) == 3),
    (Constraint(Logic("implies"), [(0, "PER"), (2, "LOC")], 2), lambda s: (0, "PER") not in s or (2, "LOC") in s),
    (Constraint(Logic("iff"), [(0, "O"), (1, "LOC")]), lambda s: ((0, "O") in s) == ((1, "LOC") in s)),
    (Constraint(Logic("not_all"), [(0, "LOC"), (3, "PER")], 0), lambda s: not {(0, "LOC"), (3, "PER")} <= set(s)),
    (Constraint(Logic("or"), [(1, "PER"), (3, "LOC")], 2), lambda s: (1, "PER") in s or (3, "LOC") in s),
]


def begins(labels: np.ndarray) -> list[tuple[int, str]]:
    """Where the segments of an output begin, with their labels."""
    return [(int(t), str(MODEL.classes_[k])) for t, _, k in as_segments(labels)]


def tags(labels: np.ndarray) -> list[str]:
    """The labels of tokens that an output stands for."""
    return ["O" if code < 2 else f"{'B' if code % 2 else 'I'}-{MODEL.classes_[code // 2]}" for code in labels.tolist()]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Inference]:
    """What prediction under constraints looks through."""
    found: list[Inference] = []

    def keep(inference: Inference, *rest: Any) -> Inference:
        found.append(inference)
        return constrained(inference, *rest)

    monkeypatch.setattr(segments, "constrained", keep)
    return found


def listed(inference: Inference, i: int, rules: list[tuple[Constraint, Holds]]) -> list[tuple[float, list[str]]]:
    """Scores and answers of all segmentations that keep the rules of sample i, best first."""
    (length, n_labels, longest), plain = inference.shapes[i], SemiMarkovOracle()
    theta, found = inference.scores(np.ones(1), i)[length * n_labels :], []
    for labels in plain.enumerate((length, n_labels, longest)):
        score = float(theta[plain.parts(labels, inference.shapes[i])].sum())
        if score > -1e29 and all(holds(begins(labels)) for rule, holds in rules if rule.sample in (None, i)):
            found.append((score, tags(labels)))
    return sorted(found, key=lambda one: -one[0])


@pytest.mark.parametrize("chosen", [[0], [1], [2], [3], [4], [5], [0, 3], [0, 1, 2, 3, 4], [2, 3, 5]])
def test_segments_are_the_best_that_keep_the_rules(chosen: list[int], seen: list[Inference]) -> None:
    """Budgets and formulas, of one sample and of all: the best of all segmentations, listed; without rules those of predict."""
    rules = [RULES[k] for k in chosen]
    answers = MODEL.predict(list(FEW), constraints=[rule for rule, _ in rules])
    for i, (answer, free) in enumerate(zip(answers, MODEL.predict(list(FEW)), strict=True)):
        assert listed(seen[0], i, [])[0][1] == free.tolist()
        every = listed(seen[0], i, rules)
        assert max(score for score, labels in every if labels == answer.tolist()) == pytest.approx(every[0][0], abs=1e-9)


def test_budgets_count_segments_and_none_stands_for_all() -> None:
    """Long phrases count once; (t, None) is any segment that begins at t; no rules change nothing."""
    free = MODEL.predict(X)
    assert [row.tolist() for row in free] == Y
    kept = MODEL.predict(X, constraints=[Constraint(Budget(at_most=1), [(None, "LOC")])])
    assert [row.tolist() for row in kept] == Y  # a segment of three tokens is one
    one = MODEL.predict(X[:1], constraints=[Constraint(Budget(exactly=1), [(None, "PER")])])[0].tolist()
    assert sum(label == "B-PER" for label in one) == 1
    joined = MODEL.predict(X[3:], constraints=[Constraint(Budget(at_most=0), [(3, None)])])[0].tolist()
    assert joined[3].startswith("I-")
    assert [row.tolist() for row in MODEL.predict(X, constraints=[])] == Y


def test_empty_sequences_shift_no_number() -> None:
    """Samples are numbered as they are given, also in errors; what binds each sample says nothing of empty ones."""
    given = [[], X[0], [], X[1]]
    few = Constraint(Budget(at_most=0), [(None, "PER")], 3)
    for constraints in ([few], [few, Constraint(Budget(at_least=1), [(None, "LOC")])]):
        answers = MODEL.predict(given, constraints=constraints)
        assert [len(row) for row in answers] == [0, 7, 0, 4]
        assert answers[1].tolist() == Y[0]
        assert "B-PER" not in answers[3].tolist()
    with pytest.raises(DataError, match="sample 1: expected words"):
        MODEL.predict([X[0], 3])
    with pytest.raises(InfeasibleError, match=r"^sample 1: no segmentation satisfies constraints\[0\], Budget\(at_most=0\)$"):
        MODEL.predict(given, constraints=[Constraint(Budget(at_most=0), [(0, None)])])
    with pytest.raises(DataError, match=r"constraints\[0\], sample 3: no part \(5, 'LOC'\) among 4 positions"):
        MODEL.predict(given, constraints=[Constraint(Logic("or"), [(5, "LOC")])])
    with pytest.raises(DataError, match=r"constraints\[0\]: expected Constraint\(oracle, parts, sample < 4 and not empty\), got"):
        MODEL.predict(given, constraints=[Constraint(Logic("or"), [(0, "LOC")], 2)])
    assert [len(row) for row in MODEL.predict([[]], constraints=[few])] == [0]


def test_what_excludes_every_segmentation_is_named() -> None:
    """The sample, and the rules none of which could be left out; phrases longer than those of training are none."""
    three = [
        Constraint(Logic("or"), [(0, "PER")], 1),
        Constraint(Budget(at_most=9), [(None, "O")]),
        Constraint(Logic("or"), [(0, "LOC")], 1),
    ]
    with pytest.raises(InfeasibleError) as error:
        MODEL.predict(X, constraints=three)
    both = "constraints[0], Logic('or') and constraints[2], Logic('or')"
    assert str(error.value) == f"sample 1: no segmentation satisfies {both}"
    with pytest.raises(InfeasibleError, match=r"sample 0: no segmentation satisfies constraints\[0\], Budget\(at_most=2\)"):
        MODEL.predict(X, constraints=[Constraint(Budget(at_most=2), [(None, None)], 0)])


@pytest.mark.parametrize(("constraint", "message"), [
    (Constraint(Logic("or"), [(7, "LOC")], 0), r"constraints\[0\], sample 0: no part \(7, 'LOC'\) among 7 positions, see Constr"),
    (Constraint(Logic("or"), [(-1, "LOC")], 0), r"constraints\[0\], sample 0: no part \(-1, 'LOC'\)"),
    (Constraint(Logic("or"), [(0, "B-LOC")], 1), r"constraints\[0\], sample 1: no part \(0, 'B-LOC'\)"),
    (Constraint(Logic("or"), [(0, [])], 1), r"constraints\[0\], sample 1: no part \(0, \[\]\)"),
    (Constraint(Logic("or"), [3], 1), r"constraints\[0\], sample 1: no part 3"),
    (Constraint(Logic("or"), [(0, "O")], 4), r"constraints\[0\]: expected Constraint\(oracle, parts, sample < 4\), got"),
    (Constraint(Logic("or"), [(0, "O"), (None, "O")], 2), r"sample 2: expected at least one part, and none twice"),
])  # fmt: skip
def test_wrong_parts_are_refused(constraint: Any, message: str) -> None:
    """One line, which names the sample, for positions and labels that there are not."""
    with pytest.raises(DataError, match=message) as error:
        MODEL.predict(X, constraints=[constraint])
    assert "\n" not in str(error.value)


def test_rules_may_be_any_oracle(seen: list[Inference]) -> None:
    """One of two segments, by an oracle that is neither a budget nor a formula."""
    rule = Constraint(MulticlassOracle(), [(0, "PER"), (2, "LOC")])
    rules = [(rule, lambda s: ((0, "PER") in s) != ((2, "LOC") in s))]
    answer = MODEL.predict([X[1]], constraints=[rule])[0].tolist()
    every = listed(seen[0], 0, rules)
    assert max(score for score, labels in every if labels == answer) == pytest.approx(every[0][0], abs=1e-9)


@pytest.mark.parametrize("shape", SemiMarkovOracle.example_shapes())
def test_beginnings_have_parts_of_their_own(shape: Any, seen: list[Inference]) -> None:
    """The best of all outputs, at random scores of beginnings, segments and neighbours; scores are left as they were."""
    MODEL.predict(X[:1], constraints=[RULES[0][0]])
    oracle, rng = seen[0].oracle, np.random.default_rng(sum(shape))
    assert oracle.n_parts(shape) == shape[0] * shape[1] * (shape[2] + 1) + shape[1] ** 2
    for _ in range(5):
        theta = rng.normal(size=oracle.n_parts(shape))
        before = theta.copy()
        worth = [theta[oracle.parts(y, shape)].sum() for y in SemiMarkovOracle().enumerate(shape)]
        assert theta[oracle.parts(oracle.argmax(theta, shape), shape)].sum() == pytest.approx(max(worth), abs=1e-9)
        assert theta.tobytes() == before.tobytes()
