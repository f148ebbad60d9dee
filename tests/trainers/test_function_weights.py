"""Kernel form of the proximal trainers: the iterates, bounds and resumed runs are those of explicit features."""

from itertools import pairwise

import numpy as np
import pytest
from kernel_cases import N_LABELS, both, functions
from training_cases import optimum

from structpred.core.sparse import SparseVector
from structpred.data.sequences import PackedSequences
from structpred.errors import ParameterError
from structpred.features.positions import MixedFeatures
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import L2
from structpred.objectives.regularisers.mkl import MKL
from structpred.task.task import Task
from structpred.trainers.function_corrective import FunctionCorrective
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.online.grouped_weights import FunctionNorms
from structpred.trainers.online_mkl import OnlineMKL
from structpred.trainers.problem import Problem
from structpred.trainers.proximal import OnlineProximal


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize(("csr", "compiled"), [(False, True), (True, False)])
@pytest.mark.parametrize("regulariser", [MKL(), L2()], ids=lambda r: r.name)
def test_kernels_and_their_features_give_the_same_run(regulariser, csr, compiled, averaged) -> None:
    """Functions, coefficients, norms, certificate and regret bound are those of explicit features, at every pass."""
    plain, kernel, maps = both(regulariser, csr=csr, compiled=compiled)
    settings = RunSettings(max_iter=6, check_every=1, seed=4)
    trainer = OnlineProximal(eta0=1.0, averaged=averaged, radius=2.0)
    expected, found = train(plain, trainer, settings), train(kernel, trainer, settings)
    space = kernel.task.features.space
    wanted, others = functions(plain, expected.weights, maps)
    for k in range(2):
        np.testing.assert_allclose(space.values(found.weights, k).T, wanted[k], atol=1e-6)
        gram = np.asarray(maps[k] @ maps[k].T)
        np.testing.assert_allclose(gram @ space.coefficients(found.weights, k).T, wanted[k], atol=1e-6)
    np.testing.assert_allclose(found.weights[space.groups[2] :], others.ravel(), atol=1e-6)
    for a, b in zip(expected.history, found.history, strict=True):
        assert (b["primal"], b["dual"]) == pytest.approx((a["primal"], a["dual"]), rel=1e-5, abs=1e-5)
    for name, rows in expected.report.items():
        np.testing.assert_allclose(found.report[name], rows, atol=1e-6)


@pytest.mark.parametrize("regulariser", [MKL(), L2()], ids=lambda r: r.name)
def test_compiled_and_plain_steps_give_the_same_bits(regulariser) -> None:
    """Decoding in one compiled call changes nothing; nor does it for the log loss, which has no such call."""
    for surrogate in (MarginRescaling(), LogLoss()):
        runs = [both(regulariser, compiled=c, surrogate=surrogate, dtype=np.float32)[1] for c in (True, False)]
        one, other = (train(prob, OnlineProximal(averaged=True), RunSettings(max_iter=3)) for prob in runs)
        assert one.weights.tobytes() == other.weights.tobytes()
        assert one.history[-1]["primal"] == pytest.approx(other.history[-1]["primal"], rel=1e-12)


@pytest.mark.slow
def test_the_optimum_of_multiple_kernel_learning() -> None:
    """Within 1e-3 of cvxpy's optimum over explicit features, and the dual value is below it."""
    import cvxpy as cp

    plain, kernel, _ = both(MKL(), 1.0, seed=3)
    bounds = list(pairwise(plain.task.groups.tolist()))
    best, _ = optimum(plain.task, 1.0, lambda w: cp.square(sum(cp.norm(w[a:b]) for a, b in bounds)) / 2)
    result = train(kernel, OnlineMKL(averaged=True, eta0=0.05), RunSettings(max_iter=2500, check_every=2500))
    assert best * (1 - 1e-6) <= result.certificate.primal <= best * (1 + 1e-3)
    assert best * 0.9 <= result.certificate.dual <= best * (1 + 1e-6)


def test_huge_steps_stay_finite() -> None:
    """Small factors are multiplied in: a strong regulariser with a large step does not overflow 32 bits."""
    _, kernel, _ = both(MKL(), 5.0, dtype=np.float32)
    result = train(kernel, OnlineMKL(eta0=1e3), RunSettings(max_iter=40))
    assert np.isfinite(result.weights).all()
    assert np.isfinite(result.certificate.primal)


def test_a_resumed_run_has_the_same_bits(tmp_path) -> None:
    """Stopped after two passes and resumed, a run gives the weights, the average and the history of one that was not stopped."""
    _, kernel, _ = both(MKL(), csr=True, dtype=np.float32)
    trainer = OnlineMKL(averaged=True)
    whole = train(kernel, trainer, RunSettings(max_iter=5, check_every=1))
    train(kernel, trainer, RunSettings(max_iter=2, check_every=1, checkpoint=tmp_path / "c"))
    again = train(kernel, trainer, RunSettings(max_iter=5, check_every=1, checkpoint=tmp_path / "c", resume=True))
    assert again.weights.tobytes() == whole.weights.tobytes()
    assert [row["dual"] for row in again.history] == [row["dual"] for row in whole.history]


def test_single_weights_are_no_functions() -> None:
    """A regulariser that depends on more than norms is refused, with what to do."""
    with pytest.raises(ParameterError, match="a kernel knows norms of functions, not single weights; L1"):
        both(L1(0.1))


def beside_features(kernel: Problem, x: np.ndarray) -> Problem:
    """The problem with the first kernel, the linear one of the rows of x, as explicit features."""
    task, own = kernel.task, kernel.task.features
    n, d = x.shape
    packed = PackedSequences(d * np.arange(n + 1), np.tile(np.arange(d), n), x.ravel(), own.offsets, d)
    mixed = MixedFeatures(own.space.grams[1:], packed, N_LABELS, ["quadratic"], dtype=np.float64)
    given = Task(mixed, task.oracle, task.labels, task.shapes, task.loss, sample_weight=task.sample_weight)
    return Problem(given, kernel.surrogate, kernel.lam, regulariser=FunctionNorms(MKL(), mixed.space))


@pytest.mark.parametrize("averaged", [False, True])
def test_explicit_features_are_the_linear_kernel(averaged) -> None:
    """Features beside a Gram matrix give the run of two Gram matrices: scores, bounds and weights of groups."""
    _, kernel, maps = both(MKL())
    mixed, settings = beside_features(kernel, maps[0]), RunSettings(max_iter=20)
    grams, features = (train(one, OnlineProximal(averaged=averaged), settings) for one in (kernel, mixed))
    assert (features.certificate.primal, features.certificate.dual) == pytest.approx(
        (grams.certificate.primal, grams.certificate.dual), rel=1e-10
    )
    np.testing.assert_allclose(
        features.report["group_weights"][:, [1, 0, 2, 3]], grams.report["group_weights"], rtol=1e-10, atol=1e-12
    )
    for i in range(len(kernel.task)):
        expected = kernel.task.features.scores(grams.weights, i)
        np.testing.assert_allclose(mixed.task.features.scores(features.weights, i), expected, atol=1e-10)


@pytest.mark.slow
def test_batch_training_beside_explicit_features() -> None:
    """The certified optimum of features beside a Gram matrix is that of two Gram matrices."""
    _, kernel, maps = both(MKL())
    settings = RunSettings(max_iter=100, tol=1e-5)
    grams, mixed = (train(one, FunctionCorrective(), settings) for one in (kernel, beside_features(kernel, maps[0])))
    assert max(grams.certificate.relative_gap, mixed.certificate.relative_gap) < 1e-5
    assert mixed.certificate.primal == pytest.approx(grams.certificate.primal, rel=2e-5)


def test_joint_features_beside_explicit_ones() -> None:
    """<w, adjoint(d)> = scores(w) . d, also for parts in any order and twice; indices ascend."""
    _, kernel, maps = both(MKL())
    own, rng = beside_features(kernel, maps[0]).task.features, np.random.default_rng(0)
    w = rng.normal(size=own.dim)
    for i in range(len(own)):
        parts, counts = rng.integers(0, own.n_parts(i), 9), rng.normal(size=9)
        psi = own.adjoint(i, parts, counts)
        assert isinstance(psi, SparseVector)
        assert (np.diff(psi.indices) > 0).all()
        assert w[psi.indices] @ psi.values == pytest.approx(own.scores(w, i)[parts] @ counts)
