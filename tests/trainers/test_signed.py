"""Signs beside any regulariser: the prox is to cut and to shrink, and every trainer that takes it reaches the convex optimum."""

import numpy as np
import pytest
from training_cases import chain_task, log_problem, multiclass_task, optimum

from structpred import check_regulariser
from structpred.core.regulariser import Regulariser
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.composite import Composite
from structpred.objectives.regularisers.group_lasso import GroupBall, GroupLasso, SparseGroupLasso
from structpred.objectives.regularisers.l1 import L1, Lasso
from structpred.objectives.regularisers.l2 import L2, SignConstraints
from structpred.objectives.regularisers.mkl import MKL, ElasticNetMKL, LpMKL
from structpred.objectives.regularisers.named_groups import GroupTree, OverlappingGroups
from structpred.objectives.regularisers.signed import Signed, signed
from structpred.trainers.bcfw import BCFW
from structpred.trainers.corrective import Corrective
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.ls_bmrm import LineSearchBMRM
from structpred.trainers.names import can_minimise, require_regulariser, trainers
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.online_mkl import OnlineMKL
from structpred.trainers.owlqn import OWLQN
from structpred.trainers.problem import Problem
from structpred.trainers.proximal import OnlineProximal
from structpred.trainers.sgd import SGD

ENDS = np.array([0, 2, 2, 5, 9])
NAMES = ["group 0", "group 1", "group 2", "group 3"]


def norms(w, ends):
    """|w_k| of each group that has weights, as expressions."""
    import cvxpy as cp

    return [cp.norm(w[a:b]) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True) if b > a]


def as_program(r, w, ends):
    """(r(w) as an expression, constraints)."""
    import cvxpy as cp

    found = norms(w, ends)
    entries = cp.norm1(w)
    return {
        L2: lambda: (cp.sum_squares(w) / 2, []),
        L1: lambda: (cp.sum_squares(w) / 2 + r.mu * entries, []),
        Lasso: lambda: (r.mu * entries, []),
        MKL: lambda: (cp.square(sum(found)) / 2, []),
        LpMKL: lambda: (cp.square(cp.pnorm(cp.hstack(found), r.p)) / 2, []),
        ElasticNetMKL: lambda: ((1 - r.share) * sum(found) + r.share * cp.sum_squares(w) / 2, []),
        GroupLasso: lambda: (r.mu * sum(found), []),
        SparseGroupLasso: lambda: (r.share * sum(found) + (1 - r.share) * entries, []),
        GroupBall: lambda: (0, [sum(found) <= r.radius]),
        GroupTree: lambda: (cp.norm(w) + sum(found), []),
    }[type(r)]()


ALL = [
    L1(0.3), Lasso(0.3), MKL(), LpMKL(), ElasticNetMKL(0.4), GroupLasso(0.5), SparseGroupLasso(0.5), GroupBall(1.5),
    GroupTree(["*", *NAMES]),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("r", ALL, ids=lambda r: type(r).__name__)
def test_on_twenty_cones_the_prox_is_that_of_the_program(r: Regulariser) -> None:
    """Cut, then shrink: the point that cvxpy finds, with a valid bound and a value of inf outside."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(5)
    for k in range(20):
        signs, point, step = rng.integers(-1, 2, 9), 2.0 * rng.normal(size=9), float(rng.choice([0.2, 0.7, 1.5]))
        both = Signed(r, signs).grouped(ENDS, NAMES)
        found, w = both.prox(point, step), cp.Variable(9)
        value, rules = as_program(r, w, ENDS)
        program = cp.Problem(cp.Minimize(cp.sum_squares(w - point) / 2 + step * value), [*rules, cp.multiply(signs, w) >= 0])
        try:
            least = program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        except cp.error.SolverError:  # it gives up where groups tie
            least = program.solve(solver=cp.SCS, eps=1e-10, max_iters=100_000)
        assert (signs * found >= 0.0).all()
        assert ((found - point) ** 2).sum() / 2 + step * both.value(found) == pytest.approx(least, abs=1e-6), k
        np.testing.assert_allclose(found, w.value, atol=2e-3)


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    "r", [*ALL, OverlappingGroups(["*", "group 0"]), Composite(L2(), Lasso(0.1))], ids=lambda r: type(r).__name__
)
def test_it_keeps_the_contract_of_regularisers(r: Regulariser) -> None:
    """Value, prox, bound, dual map, new scales and terms agree, whatever runs of signs the groups are cut into."""
    sizes = (2, 0, 3, 4)
    if isinstance(r, OverlappingGroups | GroupTree):
        r = type(r)(["*", *NAMES])
    check_regulariser(Signed(r, np.random.default_rng(1).integers(-1, 2, 9)), sizes=[sizes])
    if not isinstance(r, OverlappingGroups | GroupTree):
        check_regulariser(Signed(r, -1), sizes=[(1,), sizes])


def test_the_square_alone_stays_what_it_was() -> None:
    """1/2 |w|^2 on a cone is the regulariser of its own, with its bits."""
    assert type(signed(L2(), [1, 0])) is SignConstraints
    assert type(signed(MKL(), [1, 0])) is Signed


MARGIN = [
    (BCFW(averaged=False), 150, 5e-4), (LineSearchBMRM(), 200, 3e-2), (Corrective(), 60, 5e-5),
    (OnlineProximal(averaged=True), 60, 0.1), (SGD(), 200, 5e-3),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("r", [L2(), *ALL, OverlappingGroups(["*", "templates"])], ids=lambda r: type(r).__name__)
@pytest.mark.parametrize(("trainer", "passes", "close"), MARGIN, ids=[type(one[0]).__name__ for one in MARGIN])
def test_margin_trainers_reach_the_optimum_of_the_program(trainer, passes, close, r) -> None:
    """Each that takes the pair: primal near cvxpy's value, no dual above it, no wrong sign; the others refuse it in words."""
    cp = pytest.importorskip("cvxpy")
    task, lam = multiclass_task(3, n=8, n_labels=3), 0.2
    ends = np.asarray(task.groups)
    if isinstance(r, OverlappingGroups | GroupTree):
        r = GroupTree(["*", *task.group_names]) if isinstance(r, GroupTree) else OverlappingGroups(["*", *task.group_names])
    signs = np.random.default_rng(2).integers(-1, 2, task.dim)
    both = signed(r, signs)
    problem = Problem(task, MarginRescaling(), lam, regulariser=both)
    if not can_minimise(trainer, problem.regulariser):
        with pytest.raises((MissingCapabilityError, ParameterError), match="Trainers for"):
            require_regulariser(trainer, problem.regulariser)
        return
    like = GroupTree(["*"]) if isinstance(r, OverlappingGroups) else r
    rules = []

    def value(w):
        found, more = as_program(like, w, ends)
        rules.extend(more)
        return (
            found + 1e4 * cp.sum(cp.neg(cp.multiply(signs, w))) + sum(1e4 * cp.pos(rule.args[0] - rule.args[1]) for rule in more)
        )

    least, _ = optimum(task, lam, value)
    result = train(problem, trainer, RunSettings(max_iter=passes, tol=1e-9, check_every=50))
    primal, dual = result.certificate.primal, result.certificate.dual
    assert (signs * result.weights).min() >= 0.0
    assert least - 1e-5 <= primal <= least + close
    assert dual is None or dual <= least + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("r", [L2(), L1(0.1)], ids=lambda r: r.name)
def test_random_fields_with_signs_have_one_optimum(r) -> None:
    """Orthants, exponentiated gradient, planes and proximal steps on the log loss: bounds that enclose one value, exact signs."""
    task = chain_task(2, n=6)
    signs = np.random.default_rng(3).integers(-1, 2, task.dim)
    problem = Problem(task, LogLoss(), 0.1, regulariser=signed(r, signs))
    found = {}
    for trainer, passes in ((OWLQN(), 300), (OnlineEG(), 200), (LineSearchBMRM(), 800), (OnlineProximal(), 200)):
        result = train(problem, trainer, RunSettings(max_iter=passes, tol=1e-7, check_every=10))
        assert (signs * result.weights).min() >= 0.0
        found[trainer.name] = result
    best = found["owlqn"].certificate
    assert best.primal - best.dual <= 1e-6
    assert found["oeg"].certificate.primal - found["oeg"].certificate.dual <= 1e-5
    for name, result in found.items():
        slack = {"proximal": 2e-2, "ls_bmrm": 5e-3}.get(name, 1e-5)
        assert best.dual - 1e-9 <= result.certificate.primal <= best.primal + slack, name
        assert result.certificate.dual is None or result.certificate.dual <= best.primal + 1e-9, name
        if name != "proximal":
            assert (signs * result.report["dual_point"] < 0.0).any()
    free = train(log_problem(task), OWLQN(), RunSettings(max_iter=300, tol=1e-7))
    assert best.primal > free.certificate.primal + 1e-3


def test_signs_among_some_free_weights() -> None:
    """Quasi-Newton over half of the weights keeps the signs of that half."""
    task = chain_task(2, n=6)
    signs, free = np.random.default_rng(3).integers(-1, 2, task.dim), np.arange(0, task.dim, 2)
    problem = Problem(task, LogLoss(), 0.1, regulariser=SignConstraints(signs))
    result = train(problem, OWLQN(free=free), RunSettings(max_iter=300, tol=1e-7))
    assert result.certificate.gap <= 1e-6
    assert (signs * result.weights).min() == 0.0
    assert result.weights[::2].any()
    assert not result.weights[1::2].any()


def test_groups_are_still_pruned_online() -> None:
    """Online multiple kernel learning under signs: whole groups are zero, and kept sums of squares are those of the weights."""
    task = chain_task(1, n=12)
    signs = np.random.default_rng(4).integers(-1, 2, task.dim)
    problem = Problem(task, MarginRescaling(), 0.5, regulariser=signed(MKL(), signs))
    result = train(problem, OnlineMKL(), RunSettings(max_iter=40, tol=0.0))
    assert (signs * result.weights).min() >= 0.0
    assert result.report["group_weights"].shape[0] == 40
    np.testing.assert_allclose(result.report["group_weights"][-1].sum(), 1.0)


def test_a_corrective_run_that_goes_on_has_its_bits(tmp_path) -> None:
    """The dual point is part of the state: a resumed run ends in the bits of the whole one."""
    task = chain_task(1, n=10)
    signs = np.random.default_rng(4).integers(-1, 2, task.dim)
    problem = Problem(task, MarginRescaling(), 0.1, regulariser=signed(MKL(), signs))
    whole = train(problem, Corrective(), RunSettings(max_iter=6, tol=0.0))
    file = tmp_path / "run.ckpt"
    train(problem, Corrective(), RunSettings(max_iter=3, tol=0.0, checkpoint=file))
    rest = train(problem, Corrective(), RunSettings(max_iter=6, tol=0.0, checkpoint=file, resume=True))
    assert rest.weights.tobytes() == whole.weights.tobytes()


def test_which_trainers_take_signs_beside_which_regulariser() -> None:
    """What is refused is what the how-to says."""

    def named(r):
        both = signed(r, 1).grouped(ENDS, NAMES)
        return {name for name, kind in trainers().items() if can_minimise(kind, both)}

    first = {"bcfw", "corrective", "ls_bmrm", "oeg", "online_mkl", "owlqn", "pegasos", "proximal", "sdca", "sgd"}
    assert named(L2()) >= first
    assert named(L1(0.1)) >= first - {"pegasos", "sgd"}
    assert named(MKL()) >= {"bcfw", "corrective", "ls_bmrm", "online_mkl", "proximal"}
    assert not named(MKL()) & {"oeg", "owlqn", "pegasos", "sdca", "sgd", "lbfgs"}
    assert named(GroupLasso()) >= {"bcfw", "corrective", "ls_bmrm", "online_mkl", "proximal"}
    assert named(Lasso()) == {"online_mkl", "proximal"}
