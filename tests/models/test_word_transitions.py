"""Templates of transitions (`B01:%x[0,0]` of CRF++): each string has a weight of its own for each pair of labels."""

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from structpred.errors import ParameterError
from structpred.export.programs import export_predictor
from structpred.io.templates.templates import Template, load_templates, read_template, write_templates
from structpred.models import ChainLabeler, KernelChainLabeler
from structpred.models.chain.constraints import ChainConstraints
from structpred.models.chain.inspection import chain_names
from structpred.models.files import load
from structpred.models.sharding import sharding_of

TEMPLATE = "U0:%x[0,0]\nB\nB1:%x[-1,0]/%x[0,0]\nU1:%x[-1,1]\nB2:%x[1,1]\n"
X = [
    [("a", "p")],
    [("a", "p"), ("b", "q"), ("a", "q")],
    [("b", "p"), ("b", "p"), ("a", "q"), ("c", "p")],
    [("c", "q"), ("a", "p")],
]
Y = [["X"], ["Y", "X", "Z"], ["Y", "Z", "Z", "X"], ["Z", "Y"]]
Sentence = list[tuple[str, str]]


@pytest.fixture(name="template")
def template_file(tmp_path: Path) -> Path:
    """The lines above, as a file of CRF++."""
    path = tmp_path / "b.template"
    path.write_text(TEMPLATE)
    return path


def _at(x: Sentence, t: int, column: int) -> str:
    return x[t][column] if 0 <= t < len(x) else f"_B-{-t}" if t < 0 else f"_B+{t - len(x) + 1}"


def _named(x: Sentence, y: tuple[str, ...]) -> list[str]:
    """The names of the weights that a labelling uses, by hand."""
    names = [f"start -> {y[0]}", f"stop -> {y[-1]}"]
    for t, label in enumerate(y):
        names += [f"U0:{x[t][0]} -> {label}", f"U1:{_at(x, t - 1, 1)} -> {label}"]
        if t:
            names.append(f"transition {y[t - 1]} -> {label}")
            for made in (f"B1:{x[t - 1][0]}/{x[t][0]}", f"B2:{_at(x, t + 1, 1)}"):
                names.append(f"{made} after {y[t - 1]} -> {label}")
    return names


def _listed(model: ChainLabeler, x: Sentence) -> list[tuple[float, tuple[str, ...]]]:
    """Score and labels of all labellings, best first, from the weights by their names."""
    (table,) = chain_names(model.input_, model.classes_)
    named = ((table.name(k), float(weight)) for k, weight in enumerate(model.coef_))
    weights = {found[0]: weight for found, weight in named if found is not None}
    every = product(model.classes_.tolist(), repeat=len(x))
    return sorted(((sum(weights.get(name, 0.0) for name in _named(x, y)), y) for y in every), reverse=True)


def test_scores_are_those_of_all_labellings(template: Path) -> None:
    """Predictions, the k best, their scores and the gaps of scores are those of enumeration, also of a word not seen before."""
    model = ChainLabeler("bcfw", template=template, max_iter=30, tol=1e-3).fit(X, Y)
    tests = [*X, [("b", "q"), ("new", "p"), ("c", "p"), ("a", "q")]]
    best, gaps = model.predict_kbest(tests, 4), model.predict_score_gaps(tests)
    for x, labels, found, gap in zip(tests, model.predict(tests), best, gaps, strict=True):
        listed = _listed(model, x)
        assert tuple(labels.tolist()) == listed[0][1]
        assert np.allclose([score for _, score in found], [score for score, _ in listed[: len(found)]])
        for t, own in enumerate(gap):
            assert own == pytest.approx(listed[0][0] - max(s for s, y in listed if y[t] != listed[0][1][t]))
        assert model.explain(x).score == pytest.approx(listed[0][0])


@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "lbfgs"])
def test_objective_is_that_of_all_labellings(template: Path, trainer: str) -> None:
    """The primal of the certificate is the objective by enumeration (by C n), of the hinge (Hamming loss) and of the log loss."""
    model = ChainLabeler(trainer, template=template, C=0.7, max_iter=5).fit(X, Y)
    total = 0.5 * float(model.coef_ @ model.coef_)
    for x, y in zip(X, Y, strict=True):
        listed = _listed(model, x)
        own = next(score for score, labels in listed if list(labels) == y)
        if trainer == "lbfgs":
            total += 0.7 * (np.logaddexp.reduce([score for score, _ in listed]) - own)
        else:
            total += 0.7 * max(score + sum(map(str.__ne__, labels, y)) - own for score, labels in listed)
    assert model.certificate_.primal == pytest.approx(total / (0.7 * len(X)), rel=1e-6)
    assert model.certificate_.gap is None or model.certificate_.gap >= 0


def test_marginals_and_partial_labels(template: Path) -> None:
    """Probabilities are those of enumeration, and labels may be missing."""
    model = ChainLabeler("lbfgs", template=template, max_iter=20, missing="?").fit(X, [["?"], *Y[1:]])
    for x, found in zip(X, model.predict_marginals(X), strict=True):
        listed = _listed(model, x)
        p = np.exp([score - listed[0][0] for score, _ in listed])
        wanted = np.zeros_like(found)
        for share, (_, labels) in zip(p / p.sum(), listed, strict=True):
            wanted[np.arange(len(x)), [model.classes_.tolist().index(label) for label in labels]] += share
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_rules_hold(template: Path) -> None:
    """Constraints on neighbouring labels hold at fit and predict, and the best labelling that keeps them is found."""
    rules = ChainConstraints(forbidden=[("Y", "X")])
    model = ChainLabeler("bcfw", template=template, constraints=rules, max_iter=10).fit(X[2:], Y[2:])
    for x, labels in zip(X, model.predict(X, allowed=[[["X", "Z"], *[None] * (len(x) - 1)] for x in X]), strict=True):
        kept = [y for _, y in _listed(model, x) if ("Y", "X") not in pairwise(y) and y[0] != "Y"]
        assert tuple(labels.tolist()) == kept[0]


def test_files_keep_them(template: Path, tmp_path: Path) -> None:
    """A model file and a template file (.json) keep them; pieces of data may follow one another."""
    model = ChainLabeler("perceptron", template=template).partial_fit(X[1:3], Y[1:3]).partial_fit(X, Y)
    model.save(tmp_path / "m.spz")
    again = load(tmp_path / "m.spz")
    assert [labels.tolist() for labels in again.predict(X)] == [labels.tolist() for labels in model.predict(X)]
    assert again.template == model.input_.features.templates
    write_templates(read_template(template), tmp_path / "t.json")
    assert load_templates(tmp_path / "t.json") == read_template(template)
    assert [t.transition for t in read_template(template)] == [False, True, False, True]


def test_what_does_not_take_them_says_so(template: Path, tmp_path: Path) -> None:
    """Hashed features, shards, kernels, exported programs and dropping groups name the template and what refuses it."""
    with pytest.raises(ParameterError, match=r"'B1:.*transitions that look at words do not go with hashed features"):
        ChainLabeler(template=template, n_bits=8).fit(X, Y)
    with pytest.raises(ParameterError, match=r"'B1:.*do not go with shards"):
        sharding_of(ChainLabeler()).scan(ChainLabeler(template=template), X, Y)
    with pytest.raises(ParameterError, match="do not go with kernels"):
        KernelChainLabeler(template=template).fit(X, Y)
    model = ChainLabeler("perceptron", template=template).fit(X, Y)
    with pytest.raises(ParameterError, match=r"'B1:.*do not go with exported programs"):
        export_predictor(model, tmp_path / "p.py")
    with pytest.raises(ParameterError, match="train with fewer templates"):
        model.without_groups(["U0:%x[0,0]"])


def test_only_transitions_of_python() -> None:
    """A Template of Python may be one of transitions, and the only one."""
    model = ChainLabeler("bcfw", template=[Template("w", ((0, 0),), transition=True)]).fit(X[1:], Y[1:])
    assert model.n_features_in_ == 0
    assert model.emissions_.shape == (0, 3)
    with pytest.raises(ParameterError, match="transition must be True or False"):
        Template("w", ((0, 0),), transition="yes")  # type: ignore[arg-type]
