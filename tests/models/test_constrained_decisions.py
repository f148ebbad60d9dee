"""Hard constraints on decisions: paths at predicted costs and sets of items at predicted values, against all of them, listed."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from structpred.data.decisions import knapsack_data, shortest_path_data
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.models import Constraint, DecisionModel
from structpred.oracles import MilpOracle, SolverOracle
from structpred.oracles.budget import Budget
from structpred.oracles.convex_points import ConvexPoints
from structpred.oracles.knapsack import KnapsackOracle
from structpred.oracles.logic import Logic
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.shortest_path import ShortestPathOracle

PATHS = shortest_path_data(30, grid=(4, 4), degree=4, noise=0.5, seed=2)
ITEMS = knapsack_data(30, n_items=8, degree=4, noise=0.5, seed=3)
ROUTES = DecisionModel(ShortestPathOracle(), shape=PATHS.shape, max_iter=4).fit(PATHS.features, PATHS.costs)


def parts_of(oracle: Any, shape: Any) -> list[set[int]]:
    """The parts of every output."""
    return [set(oracle.parts(y, shape).tolist()) for y in oracle.enumerate(shape)]


def is_best(oracle: Any, shape: Any, worth: np.ndarray, found: np.ndarray, keeps: Any) -> bool:
    """Whether the decision keeps the rules, and none that does is worth more."""
    own = set(oracle.parts(found, shape).tolist())
    most = max(worth[list(parts)].sum() for parts in parts_of(oracle, shape) if keeps(parts))
    return keeps(own) and worth[list(own)].sum() == pytest.approx(most, abs=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("regressor", [None, LinearRegression()])
def test_paths_are_the_cheapest_that_keep_the_rules(n_jobs: int, regressor: Any) -> None:
    """Costs are minimised: of all paths that keep budgets and formulas over edges the one with the least predicted costs."""
    model = DecisionModel(ShortestPathOracle(), shape=PATHS.shape, max_iter=4, n_jobs=n_jobs, regressor=regressor)
    model.fit(PATHS.features, PATHS.costs)
    free, costs = model.predict(PATHS.features), model.predict_costs(PATHS.features)
    first = free[3].tolist()
    rules = [
        Constraint(Budget(at_most=2), list(range(0, 24, 2))),
        Constraint(Logic("not_all"), first, 3),
        Constraint(Logic("implies"), [first[0], int(free[5][-2])], 4),
    ]
    changed = 0
    for i, path in enumerate(model.predict(PATHS.features, constraints=rules)):

        def keeps(parts: set[int], i: int = i) -> bool:
            few = sum(e % 2 == 0 for e in parts) <= 2
            broken = i == 3 and parts >= set(first)
            return few and not broken and not (i == 4 and first[0] in parts and int(free[5][-2]) not in parts)

        assert is_best(model.oracle, PATHS.shape, -costs[i], path, keeps)
        changed += path.tolist() != free[i].tolist()
    assert changed > 5
    assert [y.tolist() for y in model.predict(PATHS.features, constraints=[])] == [y.tolist() for y in free]


def test_items_are_those_of_most_worth_that_keep_the_rules() -> None:
    """Values are maximised: of all sets of items that fit the one with the largest predicted values, by two oracles."""
    weights, limits = np.random.default_rng(4).integers(1, 6, (1, 8)).astype(float), np.array([12.0])
    values = ITEMS.values
    rules = [
        Constraint(Budget(at_most=2), [0, 1, 2, 3, 4, 5]),
        Constraint(Logic("xor"), [6, 7]),
        Constraint(Logic("iff"), [0, 4]),
    ]

    def keeps(parts: set[int]) -> bool:
        return len(parts & set(range(6))) <= 2 and len(parts & {6, 7}) == 1 and (0 in parts) == (4 in parts)

    for oracle, shape in ((MilpOracle(weights, limits), None), (KnapsackOracle(), ITEMS.shape)):
        model = DecisionModel(oracle, shape=shape, max_iter=3).fit(ITEMS.features, values=values)
        found = model.predict(ITEMS.features, constraints=rules)
        for y, worth in zip(found, model.predict_values(ITEMS.features), strict=True):
            assert is_best(oracle, oracle.only_shape if shape is None else shape, worth, y, keeps)


def test_decisions_of_several_sizes_keep_rules() -> None:
    """Rows of features a part, shapes of their own: rules of one sample bind it alone."""
    rng = np.random.default_rng(1)
    shapes = [(3,), (5,), (4,)]
    X = [rng.normal(size=(n, 2)) for (n,) in shapes]
    model = DecisionModel(MulticlassOracle(), max_iter=3).fit(X, [x @ [1.0, -1.0] for x in X], shapes=shapes)
    free, costs = model.predict(X, shapes), model.predict_costs(X, shapes)
    kept = model.predict(X, shapes, constraints=[Constraint(Budget(at_most=0), [int(free[1][0])], 1)])
    assert [y.tolist() for y in kept] == [free[0].tolist(), [int(np.argsort(costs[1])[1])], free[2].tolist()]


def test_what_excludes_every_decision_is_named() -> None:
    """The sample, and the rules none of which could be left out."""
    rules = [
        Constraint(Logic("or"), [0]),
        Constraint(Budget(at_most=0), [0, 5], 2),
        Constraint(Budget(at_most=3), list(range(24)), 7),
    ]
    with pytest.raises(InfeasibleError) as error:
        ROUTES.predict(PATHS.features, constraints=rules[:2])
    clash = "constraints[0], Logic('or') and constraints[1], Budget(at_most=0)"
    assert str(error.value) == f"sample 2: no {ROUTES.oracle.output} satisfies {clash}"
    with pytest.raises(InfeasibleError, match=r"^sample 7: .* satisfies constraints\[1\], Budget\(at_most=3\)$"):
        ROUTES.predict(PATHS.features, constraints=[rules[0], rules[2]])


@pytest.mark.parametrize(("constraint", "message"), [
    (Constraint(Logic("or"), [24], 3), r"constraints\[0\], sample 3: no part 24 among 0 positions, see Constraint"),
    (Constraint(Logic("or"), ["a"]), r"constraints\[0\], sample 0: no part 'a'"),
    (Constraint(Logic("or"), [None]), r"constraints\[0\], sample 0: no part None"),
    (Constraint(Logic("or"), [(0, 1)]), r"constraints\[0\], sample 0: no part \(0, 1\)"),
    (Constraint(Logic("or"), [0, 0], 1), r"constraints\[0\], sample 1: expected at least one part, and none twice"),
    (Constraint(Logic("or"), [0], 30), r"constraints\[0\]: expected Constraint\(oracle, parts, sample < 30\), got"),
    (Logic("or"), r"constraints\[0\]: expected Constraint"),
])  # fmt: skip
def test_wrong_parts_are_refused(constraint: Any, message: str) -> None:
    """One line, which names the sample, for edges that there are not, and for what is no constraint."""
    with pytest.raises(DataError, match=message) as error:
        ROUTES.predict(PATHS.features, constraints=[constraint])
    assert "\n" not in str(error.value)


def simplex(shape: Any) -> Any:
    """Amounts of two parts that sum up to one."""
    import cvxpy

    amounts = cvxpy.Variable(2)
    return amounts, [amounts >= 0, cvxpy.sum(amounts) == 1]


@pytest.mark.parametrize(
    "oracle",
    [
        ConvexPoints(simplex, example_shapes=[(2,)]),
        SolverOracle(lambda worth: np.eye(2)[worth.argmax()], 2, minimises=False),
        SolverOracle(lambda worth: np.eye(2)[worth.argmax()], 2, minimises=False, tolerance=0.01),
    ],
)
def test_what_proves_nothing_is_refused(oracle: Any) -> None:
    """Amounts of parts cannot be bound, and solvers that may miss the best decision could call what there is infeasible."""
    X = np.eye(2)
    model = DecisionModel(oracle, shape=(2,) if oracle.only_shape is None else None, max_iter=1).fit(X, X)
    with pytest.raises(ParameterError, match="constraints need an oracle that finds the best set of parts"):
        model.predict(X, constraints=[Constraint(Budget(at_most=0), [1])])
    assert len(model.predict(X)) == 2
