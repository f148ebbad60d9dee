"""Kernel form of the proximal trainers: the iterates, bounds and resumed runs are those of explicit features."""

from itertools import pairwise

import numpy as np
import pytest
from kernel_cases import both, functions
from training_cases import optimum

from structpred.errors import ParameterError
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import L2
from structpred.objectives.regularisers.mkl import MKL
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.online_mkl import OnlineMKL
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
