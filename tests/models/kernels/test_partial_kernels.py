"""Kernel labelers on labels that are missing: every form of a kernel learns from what is known; sets take compiled steps."""

import copy

import numpy as np
import pytest

from structpred.fused.chains import ChainSteps
from structpred.models import ChainLabeler, GaussianProcessLabeler, KernelChainLabeler
from structpred.models.chain.sharding import labelled
from structpred.task.plain_steps import PlainSteps

LIST = ["linear", ("rbf", 0.5)]
FORMS = {
    "one kernel": {"trainer": "bcfw"},
    "one kernel, likelihood": {"trainer": "lbfgs"},
    "several": {"kernels": LIST},
    "several, likelihood": {"kernels": LIST, "surrogate": "log"},
    "landmarks": {"kernels": LIST, "n_components": 15, "trainer": "bcfw"},
}


def corpus(n=30, seed=0):
    """Noisy sequences in which each label is mostly followed by the next one: X, y, and y with sets and without some labels."""
    rng, X, y = np.random.default_rng(seed), [], []
    for _ in range(n):
        codes = (rng.integers(3) + np.cumsum(rng.random(6) < 0.9)) % 3
        X.append(np.eye(3)[codes] + rng.normal(scale=0.6, size=(6, 3)))
        y.append(["abc"[k] for k in codes])
    marks = [[(None, {label, "abc"[rng.integers(3)]}, label)[rng.choice(3, p=[0.3, 0.2, 0.5])] for label in row] for row in y]
    return X, y, marks


@pytest.mark.mostly_slow
@pytest.mark.parametrize("form", FORMS)
def test_every_form_learns_from_what_is_known(form):
    """With half of the labels missing or in doubt a model comes near the one of all; its certificate says local."""
    X, y, half = corpus()
    test = corpus(seed=1)[:2]
    some, full = (KernelChainLabeler(max_iter=16, C=3.0, **FORMS[form]).fit(X, labels) for labels in (half, y))
    assert some.score(*test) > full.score(*test) - 0.06
    assert some.certificate_.local
    assert not full.certificate_.local


def test_a_linear_kernel_is_no_kernel():
    """The likelihood of what is known has about the same value at the end with a linear kernel as with the features."""
    X, _, half = corpus(12)
    kernel = KernelChainLabeler("lbfgs", C=1.0, kernel="linear", max_iter=60).fit(X, half)
    plain = ChainLabeler("lbfgs", C=1.0, max_iter=60, fit_intercept=False).fit(X, half)
    assert kernel.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-3)


def test_sets_in_kernel_form_take_compiled_steps():
    """Steps and sweeps over functions of kernels give the losses and differences of plain calls where labels are sets."""
    X, _, half = corpus(6)
    labeler = KernelChainLabeler(kernels=LIST)
    input_, sequences = labeler._input_for(X)
    task, _ = labelled(labeler, input_.fit_transform(sequences), half)
    assert isinstance(task.steps, ChainSteps)
    plain, rng = copy.copy(task), np.random.default_rng(0)
    plain.steps = PlainSteps(task.inference, task.parts, task.steps.costs)
    for _ in range(3):
        w = rng.normal(size=task.dim).astype(task.dtype)
        values = task.violations(w, 1.0)
        for i in range(len(task)):
            one, other = task.step(w, i, 1.0), plain.step(w, i, 1.0)
            assert one.loss == other.loss
            np.testing.assert_array_equal(one.difference.indices, other.difference.indices)
            assert values[i] == pytest.approx(other.violation, abs=1e-5)


def test_gaussian_processes_take_missing_labels():
    """GaussianProcessLabeler learns from what is known, too."""
    X, y, half = corpus(12)
    assert GaussianProcessLabeler(max_iter=15).fit(X, half).score(X, y) > 0.7
