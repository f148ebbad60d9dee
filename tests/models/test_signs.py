"""Signs of weights by their names, on every estimator: exact, certified, kept in files, and refused in words that help."""

import numpy as np
import pytest
from labeler_cases import SENTENCES, Y
from parser_cases import corpus

from structpred import Instance, Oracle
from structpred.errors import MissingCapabilityError, NoUpdateWarning, ParameterError
from structpred.models import (
    ChainLabeler,
    DependencyParser,
    GraphLabeler,
    HierarchicalMultiLabel,
    KernelChainLabeler,
    LinearClassifier,
    LinearOrdinal,
    MultiLabelMRF,
    StructuredPredictor,
    load,
)
from structpred.models.signs import NameTable, name_of, resolve_signs
from structpred.objectives.regularisers.l1 import L1
from structpred.trainers.bcfw import BCFW

WORDS = [[{"w": word} for word in words] for words in SENTENCES]
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(30, 3))
SETS = (ROWS[:, :2] + ROWS[:, 1:] > 0).astype(int)
GRAPHS = [(ROWS[k : k + 3], np.array([[0, 1], [1, 2]])) for k in range(0, 30, 3)]
NODES = [np.where(rows[:, 0] > 0, "up", "down").tolist() for rows, _ in GRAPHS]


class Best(Oracle):
    """One of n candidates: an oracle of a user's own."""

    def n_parts(self, shape):
        return shape[0]

    def argmax(self, scores, shape):
        return np.array([scores.argmax()])

    def parts(self, labels, shape):
        return labels

    def enumerate(self, shape):
        return np.arange(shape[0])[:, None]

    @staticmethod
    def example_shapes():
        return [(1,), (3,)]


CANDIDATES = [Instance([{name: x for name, x in zip("abc", row, strict=True)} for row in rows], (3,)) for rows, _ in GRAPHS]
CHOSEN = [[int(np.argmax(rows[:, 0] - rows[:, 1]))] for rows, _ in GRAPHS]


def fitted(kind, signs, trainer="bcfw", **settings):
    """A small model of a kind, trained with signs."""
    settings = {"signs": signs, "trainer": trainer, "max_iter": 20, **settings}
    if kind == "parser":
        return DependencyParser(templates=["h.upos m.upos", "m.upos | distance"], **settings).fit(*corpus(8))
    X, y, model = {
        "chain": (WORDS, Y, ChainLabeler),
        "sets": (ROWS, SETS, MultiLabelMRF),
        "hierarchy": (ROWS, np.minimum.accumulate(SETS, axis=1), HierarchicalMultiLabel),
        "graph": (GRAPHS, NODES, GraphLabeler),
        "own": (CANDIDATES, CHOSEN, StructuredPredictor),
        "two": (ROWS, SETS[:, 0], LinearClassifier),
        "three": (ROWS, SETS.sum(axis=1), LinearClassifier),
        "table": (ROWS, SETS, LinearClassifier),
        "ordinal": (ROWS, SETS.sum(axis=1), LinearOrdinal),
    }[kind]
    extra = {"hierarchy": {"hierarchy": [-1, 0]}, "own": {"oracle": Best()}}.get(kind, {})
    return model(**extra, **settings).fit(X, y)


CASES = {
    "chain": {"w:* -> DET": -1, "transition *": 1},
    "parser": {"h.upos m.upos": 1},
    "sets": {"0 -> 0": -1, "pair *": 1},
    "hierarchy": {"0 -> *": -1},
    "graph": {"0 -> up": -1, "edge -> down, up": 1},
    "own": {"a": -1, "b": 1},
    "two": {"0": -1, "1": 1},
    "three": {"0 -> 2": -1, "1": 1},
    "table": {"0": -1, "1 -> 1": 1},
    "ordinal": {"0": -1, "threshold *": 1},
}


@pytest.mark.parametrize("kind", CASES)
def test_every_estimator_obeys_exactly_and_says_which_bind(kind, tmp_path) -> None:
    """Averaged weights, in float32, and those that were saved and loaded: min c * w is 0.0; and the gap is valid."""
    model = fitted(kind, CASES[kind], max_iter=12, check_every=3)
    assert model.signs_.shape == model.coef_.shape
    assert model.signs_.dtype == np.int8
    assert model.signs_.any()
    assert (model.signs_ * model.coef_).min() == 0.0
    assert all(row["gap"] is None or row["gap"] >= -1e-9 for row in model.history_)
    bound = model.binding_constraints()
    assert bound, "these signs contradict the data"
    assert all(entry.sign * entry.pull < 0 for entry in bound)
    model.save(tmp_path / "m.spz")
    again = load(tmp_path / "m.spz", oracle=Best() if kind == "own" else None)
    assert again.signs == CASES[kind]
    np.testing.assert_array_equal(again.signs_, model.signs_)
    assert [entry.name for entry in again.binding_constraints()] == [entry.name for entry in bound]
    assert (again.signs_ * again.coef_).min() == 0.0


def test_a_model_that_no_constraint_binds_is_read_again(tmp_path) -> None:
    """The table of binding constraints is empty then, in the file, too."""
    X, y = [[{"w": "a"}, {"w": "b"}]] * 2, [["A", "B"]] * 2
    model = ChainLabeler("bcfw", max_iter=5, signs={"w:a -> A": 1}).fit(X, y)
    model.save(tmp_path / "m.spz")
    assert load(tmp_path / "m.spz").binding_constraints() == model.binding_constraints() == []


def test_arrays_are_signs_in_the_order_of_the_weights(tmp_path) -> None:
    """Flat for structures, in the shape of coef_ or one row for linear models; a file does not hold them, and says so."""
    names = resolve_signs(CASES["own"], [NameTable(["a", "b", "c"])], 3)
    one, other = fitted("own", CASES["own"]), fitted("own", names)
    assert one.coef_.tobytes() == other.coef_.tobytes()
    for given in ([-1, 1, 0], [[-1, 1, 0]] * 3):
        assert (fitted("three", given).signs_ == [-1, 1, 0]).all()
    other.save(tmp_path / "m.spz")
    again = load(tmp_path / "m.spz", oracle=Best())
    np.testing.assert_array_equal(again.signs_, names)
    with pytest.raises(ParameterError, match="give it again"):
        again.fit(CANDIDATES, CHOSEN)


def as_weights(task, model):
    """The optimum of a fitted model's problem under its signs, by an independent solver over all outputs."""
    import cvxpy as cp

    lam, signs = 1.0 / (model.C * len(task)), model.signs_
    w, slack = cp.Variable(task.dim), cp.Variable(len(task))
    rules = [cp.multiply(signs, w) >= 0]
    for i, shape in enumerate(task.shapes):
        constant, ell = task.costs(i)
        for y in task.oracle.enumerate(shape):
            rules.append(
                slack[i] >= constant + ell[task.oracle.parts(y, shape)].sum() - task.difference(i, y).dense(task.dim) @ w
            )
    program = cp.Problem(cp.Minimize(lam * cp.sum_squares(w) / 2 + cp.sum(slack) / len(task)), rules)
    program.solve(solver=cp.CLARABEL, **{name: 1e-12 for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas")})
    return float(program.value)


@pytest.mark.parametrize("kind", ["chain", "parser", "own"])
def test_the_optimum_is_that_of_the_convex_program(kind, monkeypatch) -> None:
    """Two samples of a chain, a parser and an oracle of one's own: primal and dual are the value of cvxpy to 1e-6."""
    pytest.importorskip("cvxpy")
    tasks = []
    base = type(fitted("own", None, max_iter=1)).__mro__
    parent = next(cls for cls in base if cls.__name__ == "StructuredEstimator")
    train = parent._train
    monkeypatch.setattr(parent, "_train", lambda self, task, *rest: tasks.append(task) or train(self, task, *rest))
    settings = {"trainer": BCFW(averaged=False), "max_iter": 4000, "tol": 1e-8, "check_every": 250, "C": 0.5}
    if kind == "chain":
        X = [[[("f", "g")[k], "all"] for k in row] for row in ([0, 1], [1, 0])]
        model = ChainLabeler(**settings, signs={"f": 1, "transition *": -1}).fit(X, [["a", "b"], ["b", "a"]])
    elif kind == "parser":
        words = [{"form": "x", "upos": "N"}, {"form": "y", "upos": "V"}]
        model = DependencyParser(**settings, templates=["m.upos | direction"], labelled=False, signs={"m.*": 1}).fit(
            [words, words[::-1]], [[2, 0], [0, 1]]
        )
    else:
        model = StructuredPredictor(Best(), **settings, signs={"a": 1, "b": 1}).fit(CANDIDATES[:3], CHOSEN[:3])
    value = as_weights(tasks[-1], model)
    assert model.certificate_.primal == pytest.approx(value, abs=1e-6)
    assert model.certificate_.dual == pytest.approx(value, abs=1e-6)
    assert all(row["gap"] is None or row["gap"] >= -1e-9 for row in model.history_)
    assert (model.signs_ * model.coef_).min() == 0.0


@pytest.mark.parametrize(
    ("signs", "why"),
    [
        ({"w:teh": 1}, r"no weight is called 'w:teh'.*did you mean 'w:the'\?"),
        ({"x*": 1}, r"no weight is called 'x\*'; there are 'w:"),
        ({"w:the -> DTE": 1}, r"'w:the -> DTE'; did you mean 'DET'\?"),
        ({"w:*": 1, "* -> DET": -1}, r"'w:\w+ -> DET' would have to be zero: it is matched by 'w:\*': \+1 and '\* -> DET': -1"),
        ({"w:*": 0}, r"'w:\*': expected 1 \(not negative\) or -1 \(not positive\), got 0"),
        ({"w:*": True}, "got True"),
        ({3: 1}, "as keys, got 3"),
        ("w:*", "expected a dict"),
        ([1, 0, -1], r"expected one for each of \d+ weights, got 3; a dict of names"),
        ([2] * 3, "expected -1, 0 or 1, got 2 for weight 0"),
    ],
)
def test_what_is_wrong_with_signs_is_said_before_training(signs, why) -> None:
    """Unknown names with the nearest one, conflicts with both patterns and the weight, wrong values and lengths."""
    with pytest.raises(ParameterError, match=why):
        fitted("chain", signs)


def test_signs_that_force_all_weights_to_zero_are_an_error() -> None:
    """The model could tell nothing from anything: every weight is pulled against its sign."""
    X = [Instance([{"a": 1.0}, {"b": 1.0}], (2,)), Instance([{"b": 1.0}, {"a": 1.0}], (2,))]
    with pytest.raises(ParameterError, match=r"force all weights to zero.*wrong way round"):
        StructuredPredictor(Best(), signs={"a": -1, "b": 1}).fit(X, [[0], [1]])
    with pytest.raises(ParameterError, match=r"expected one for each of 3 features, or an array \(1, 3\) as coef_"):
        fitted("two", [1, 1])


@pytest.mark.slow
def test_zero_weights_of_an_unfinished_run_are_no_proof() -> None:
    """Slack rescaling, one sign among many free weights, few planes: a warning, and with more planes a model."""
    settings = {"trainer": "ls_bmrm", "surrogate": "slack"}
    with pytest.warns(NoUpdateWarning, match="all weights are zero; give more passes"):
        assert not fitted("chain", {"transition *": 1}, max_iter=1, **settings).coef_.any()
    assert fitted("chain", {"transition *": 1}, max_iter=150, **settings).coef_.any()


def test_zero_that_the_regulariser_wants_is_not_blamed_on_signs() -> None:
    """The gap is closed at zero, and without signs nothing would move either: a warning says what to do."""
    with pytest.warns(NoUpdateWarning, match="none are better"):
        fitted("own", {"a": -1, "b": 1}, regulariser=L1(100.0), max_iter=30)


@pytest.mark.slow
def test_signs_beside_a_regulariser_by_its_name() -> None:
    """Multiple kernels and l1, in batch and online: exact signs, bounds, which of them bind, and groups in the report."""
    for trainer, regulariser in (("bcfw", "mkl"), ("corrective", "mkl"), ("online_mkl", None), ("corrective", L1(0.01))):
        model = fitted("parser", {"m.upos | distance": 1}, trainer=trainer, regulariser=regulariser)
        assert (model.signs_ * model.coef_).min() >= 0.0
        assert model.coef_.any()
        assert model.binding_constraints()
    assert {"group_weights", "small_groups"} <= set(fitted("chain", {"w:*": 1}, trainer="online_mkl").report_)


def test_what_signs_do_not_go_with_is_refused() -> None:
    """A regulariser that the trainer cannot minimise, a trainer without a dual map (with those that have one), kernels, and data
    in pieces."""
    with pytest.raises(ParameterError, match=r"SGD cannot minimise Signed\. Trainers for Signed: bcfw, .*corrective"):
        fitted("chain", {"w:*": 1}, trainer="sgd", regulariser=L1(0.1))
    with pytest.raises(MissingCapabilityError, match=r"Trainers for SignConstraints: bcfw, .*ls_bmrm, .*sgd"):
        fitted("parser", CASES["parser"], trainer="mira")
    with pytest.raises(ParameterError, match="signs: a kernel"):
        KernelChainLabeler(signs={"*": 1}).fit([np.eye(2)], [["a", "b"]])
    with pytest.raises(ParameterError, match="partial_fit and fit_stream do not take them"):
        ChainLabeler("sgd", signs={"w:*": 1}).partial_fit(WORDS, Y, n_total=10)


def test_names_lead_back_to_weights() -> None:
    """Of tables in either order, of weights of opposite signs, of blocks, and of numbers without a name."""
    tables = [
        NameTable(["a", "b"], ["x", "y"], row_step=8, column_step=1),
        NameTable(["a", "b"], ["x", "y", "z"], start=16, row_step=2, column_step=4, parts=((1, 1), (0, -1))),
        NameTable(["block"], start=28, span=5),
    ]
    named = [name_of(k, tables) for k in range(34)]
    assert named[9] == ("b -> y", 1)
    assert named[3] == ("#3", 1)
    assert named[16:20] == [("a -> x", -1), ("a -> x", 1), ("b -> x", -1), ("b -> x", 1)]
    assert named[28:] == [("block", 1)] * 5 + [("#33", 1)]
    for name in {name for name, _ in named if not name.startswith("#")}:
        found = resolve_signs({name: -1}, tables, 34)
        assert {k for k in range(34) if named[k][0] == name} == set(np.flatnonzero(found).tolist())


@pytest.mark.parametrize("trainer", ["sgd", "ls_bmrm", "proximal"])
def test_other_trainers_keep_signs_too(trainer) -> None:
    """Subgradients, cutting planes and proximal steps: the same constraints, exactly."""
    model = fitted("chain", CASES["chain"], trainer=trainer)
    assert (model.signs_ * model.coef_).min() == 0.0
    assert model.coef_.any()
    assert model.binding_constraints()
