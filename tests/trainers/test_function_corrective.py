"""Corrective blocks in kernel form: the optimum of explicit features, a gap that closes, and resumed runs."""

import numpy as np
import pytest
from kernel_cases import both

from structpred.objectives.regularisers.l2 import L2
from structpred.objectives.regularisers.mkl import MKL
from structpred.trainers.corrective import Corrective
from structpred.trainers.function_corrective import FunctionCorrective
from structpred.trainers.loop import RunSettings, train


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("regulariser", [MKL(), L2()], ids=lambda r: r.name)
def test_the_optimum_is_that_of_explicit_features(regulariser, csr) -> None:
    """The certified interval encloses the one of explicit features' optimum, to 1e-4, and bounds are never crossed."""
    plain, kernel, maps = both(regulariser, 0.3, seed=1, csr=csr)
    settings = RunSettings(max_iter=300, check_every=5, tol=1e-4)
    wanted = train(plain, Corrective(), settings).certificate
    result = train(kernel, FunctionCorrective(), settings)
    found = result.certificate
    assert found.relative_gap <= 1e-4
    assert all(row["gap"] >= 0.0 for row in result.history if row["gap"] is not None)
    assert found.dual <= wanted.primal * (1 + 1e-6)
    assert wanted.dual <= found.primal * (1 + 1e-6)
    space = kernel.task.features.space
    for k in range(2):
        gram = maps[k] @ maps[k].T
        np.testing.assert_allclose(gram @ space.coefficients(result.weights, k).T, space.values(result.weights, k).T, atol=1e-5)
    assert kernel.primal(result.weights) == pytest.approx(found.primal, rel=1e-5)
    norms = space.norms(result.weights)
    np.testing.assert_allclose(result.report["group_weights"][-1], norms / norms.sum(), atol=1e-5)


def test_steps_keep_the_functions_of_the_dual_point() -> None:
    """After a pass under fixed scales the values that steps have added up are those of the coefficients."""
    _, kernel, _ = both(L2(), 0.05, seed=2)
    trainer, rng = FunctionCorrective(), np.random.default_rng(0)
    state = trainer.init_state(kernel)
    for n_pass in range(3):
        for item in trainer.order(kernel, state, rng, n_pass).tolist():
            state, _ = trainer.update(kernel, state, item)
    before = state.weights.v.copy()
    trainer.objective(kernel, state)
    np.testing.assert_allclose(before, state.weights.v, atol=1e-4)
    assert np.abs(before).max() > 0.1


def test_a_resumed_run_has_the_same_bits(tmp_path) -> None:
    """Stopped after two passes and resumed, a run gives the weights and the bounds of one that was not stopped."""
    _, kernel, _ = both(MKL(), 0.1)
    whole = train(kernel, FunctionCorrective(), RunSettings(max_iter=5, check_every=1))
    train(kernel, FunctionCorrective(), RunSettings(max_iter=2, check_every=1, checkpoint=tmp_path / "c"))
    _, again, _ = both(MKL(), 0.1)
    resumed = train(again, FunctionCorrective(), RunSettings(max_iter=5, check_every=1, checkpoint=tmp_path / "c", resume=True))
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert [row["dual"] for row in resumed.history] == [row["dual"] for row in whole.history]
