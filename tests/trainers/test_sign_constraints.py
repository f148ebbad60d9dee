"""Sign constraints as a regulariser: their dual map, exact weights from every trainer that takes them, and valid bounds."""

import numpy as np
import pytest
from training_cases import assignment_task, chain_task, multiclass_task

from structpred import check_regulariser
from structpred.core.regulariser import DualMap
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l2 import L2, SignConstraints
from structpred.trainers.bcfw import BCFW
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.ls_bmrm import LineSearchBMRM
from structpred.trainers.names import require_regulariser
from structpred.trainers.problem import Problem
from structpred.trainers.proximal import OnlineProximal
from structpred.trainers.sgd import SGD

TRAINERS = [BCFW(), BCFW(averaged=False), LineSearchBMRM(), SGD(), SGD(averaged=False), OnlineProximal(averaged=True)]


def signs_of(dim, seed=0):
    """Random signs, a third of them free."""
    return np.random.default_rng(seed).integers(-1, 2, dim)


def problem(task, lam, signs) -> Problem:
    """The margin-rescaled problem of a task under signs."""
    return Problem(task, MarginRescaling(), lam, regulariser=SignConstraints(signs))


def best(task, lam, signs):
    """The optimum that an independent solver finds."""
    import cvxpy as cp
    from training_cases import optimum

    return optimum(task, lam, lambda w: cp.sum_squares(w) / 2 + 1e6 * cp.sum(cp.neg(cp.multiply(signs, w))))


@pytest.mark.mostly_slow
@pytest.mark.parametrize("signs", [1, -1, 0, signs_of(7), np.zeros(7, int)], ids=str)
def test_it_keeps_the_contract_of_regularisers(signs) -> None:
    """One sign for all weights, one for each, and none at all: value, prox, bound and dual map agree."""
    sizes = [(7,)] if np.ndim(signs) else [(1,), (2, 0, 5)]
    check_regulariser(SignConstraints(signs), sizes=sizes)


def test_its_dual_map_is_the_projection_on_the_cone() -> None:
    """Coordinate by coordinate, and zeros are +0.0: a million weights in runs of any length."""
    rng, c = np.random.default_rng(1), signs_of(10**6)
    u = rng.normal(size=len(c))
    u[::7] = -0.0
    dual_map = SignConstraints(c).dual_map()
    assert len(dual_map.ends) > 5 * 10**5
    w = dual_map.weights(u)
    np.testing.assert_array_equal(w, np.where(c * u < 0, 0.0, u))
    assert not np.signbit(w[w == 0.0]).any()
    assert dual_map.value([w[:999], w[999:]]) == pytest.approx(w @ w / 2) == dual_map.conjugate([u])
    assert dual_map.value([u]) == np.inf
    np.testing.assert_allclose(dual_map.prox(u, 3.0), w / 4)
    scale, low, high = dual_map.expanded(len(c))
    np.testing.assert_array_equal(scale * (u - np.clip(u, low, high)) + 0.0, w)


def test_groups_of_many_are_found_by_their_ends() -> None:
    """The compiled search from any group on is NumPy's, empty groups included."""
    from structpred.trainers.blocks._bcfw_kernels import group_from

    rng = np.random.default_rng(0)
    for _ in range(30):
        ends = np.sort(rng.integers(0, 60, rng.integers(1, 40)))
        for j in range(int(ends[-1])):
            k = int(np.searchsorted(ends, j, side="right"))
            assert all(group_from(ends, start, j) == k for start in range(k + 1))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([1, 2], "got 2 for weight 1"),
        ([0.5], "got 0.5 for weight 0"),
        ([np.nan], "weight 0"),
        ([[1]], "flat array"),
        ([], "flat array"),
        (["+"], "flat array"),
        ([[1], [1, 0]], "expected an array"),
    ],
)
def test_other_signs_are_refused(wrong, why) -> None:
    """The error names the value and the weight."""
    with pytest.raises(ParameterError, match=why):
        SignConstraints(wrong)


def test_a_wrong_number_of_signs_is_refused() -> None:
    """Before training: it says how many weights there are."""
    with pytest.raises(ParameterError, match="one for each of 4 weights, got 3"):
        problem(assignment_task(d=4), 0.1, [1, 0, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("trainer", TRAINERS, ids=lambda t: f"{type(t).__name__}-{getattr(t, 'averaged', '')}")
def test_weights_obey_exactly_and_bounds_enclose_the_optimum(trainer, dtype) -> None:
    """min c * w is 0.0 and not -1e-17, averaged or not, in either type; no dual value exceeds a primal one."""
    task = chain_task(4, dtype=dtype, weighted=True)
    c = signs_of(task.dim)
    result = train(problem(task, 0.05, c), trainer, RunSettings(max_iter=60 if trainer.name == "ls_bmrm" else 8, check_every=1))
    assert (c * result.weights).min() == 0.0
    assert result.weights.any()
    rows = [row for row in result.history if row["dual"] is not None]
    if rows or dtype == np.float64:
        assert max(row["dual"] for row in rows) <= min(row["primal"] for row in rows) + 1e-6


@pytest.mark.parametrize("trainer", [BCFW(averaged=False), LineSearchBMRM()], ids=lambda t: t.name)
def test_the_optimum_is_that_of_the_convex_program(trainer) -> None:
    """To 1e-6, on a problem of many classes; the constraints change the optimum, and the dual point says which of them bind."""
    pytest.importorskip("cvxpy")
    task, lam = multiclass_task(1, n=6, n_labels=3), 0.5
    c = signs_of(task.dim)
    value, w = best(task, lam, c)
    result = train(problem(task, lam, c), trainer, RunSettings(max_iter=300, tol=1e-8, check_every=50))
    assert abs(result.certificate.primal - value) <= 1e-6
    assert abs(result.certificate.dual - value) <= 1e-6
    np.testing.assert_allclose(result.weights, w, atol=1e-3)
    free = train(problem(task, lam, 0 * c), BCFW(), RunSettings(max_iter=300, tol=1e-6, check_every=50))
    assert value > free.certificate.primal + 1e-3
    pulled = c * result.report["dual_point"] < -1e-6
    assert pulled.any()
    assert not result.weights[pulled].any()


def test_no_signs_are_the_squared_norm() -> None:
    """All weights free: the same weights, to the last bit, from the trainers that take both."""
    task = chain_task(2)
    for trainer in (BCFW(), SGD()):
        runs = [
            train(Problem(task, MarginRescaling(), 0.1, regulariser=r), trainer, RunSettings(max_iter=4))
            for r in (L2(), SignConstraints(0))
        ]
        assert runs[0].weights.tobytes() == runs[1].weights.tobytes()


def test_sgd_is_dual_averaging_on_the_cone() -> None:
    """Each iterate is the projection of 1/(lam k) times the sum of the steps, as a dense implementation has it."""
    task, lam, rng = chain_task(1), 0.1, np.random.Generator(np.random.PCG64(9))
    c = signs_of(task.dim)
    total, k, w, average = np.zeros(task.dim), 0, np.zeros(task.dim), np.zeros(task.dim)
    for _ in range(3):
        for i in rng.permutation(len(task)):
            k += 1
            total += task.difference(i, task.argmax(w, i, 1.0)).dense(task.dim)
            w = np.where(c * total < 0, 0.0, total) / (lam * k)
            average += k * w
    runs = [train(problem(task, lam, c), SGD(averaged=a), RunSettings(max_iter=3, seed=9)).weights for a in (False, True)]
    np.testing.assert_allclose(runs[0], w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(runs[1], average / (k * (k + 1) / 2), rtol=1e-9, atol=1e-12)


def test_trainers_that_cannot_keep_signs_name_those_that_can() -> None:
    """Plain quasi-Newton steps need a gradient at zero, too."""
    with pytest.raises(
        MissingCapabilityError, match=r"gradient.*bcfw, bmrm, corrective, .*ls_bmrm, .*owlqn, .*proximal, sdca, sgd"
    ):
        require_regulariser(LBFGS(), SignConstraints())


def test_the_fully_expanded_arrays_of_one_group() -> None:
    """One group for all weights gives arrays as long as they are."""
    assert [x.tolist() for x in DualMap.alike(2.0, -1.0, 3.0).expanded(2)] == [[2.0, 2.0], [-1.0, -1.0], [3.0, 3.0]]
