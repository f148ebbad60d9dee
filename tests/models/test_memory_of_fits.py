"""What a fit needed is freed when it ends, without a search for cycles: thousands of small fits would fill the memory."""

import gc

import numpy as np
import pytest

from structpred.models import ChainLabeler, LinearClassifier, MultiLabelMRF
from structpred.trainers.problem import Problem

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 5))
SEQUENCES = [RNG.normal(size=(4, 3)) for _ in range(8)]
LABELS = [["ab"[int(row[0] > 0)] for row in one] for one in SEQUENCES]
FITS = {
    "sdca, two classes": lambda: LinearClassifier("sdca", max_iter=2).fit(X, X[:, 0] > 0),
    "sdca, signs": lambda: LinearClassifier("sdca", max_iter=2, signs=[1] * 5).fit(X, X[:, 0] > 0),
    "sdca, three classes": lambda: LinearClassifier("sdca", max_iter=2).fit(X, np.digitize(X[:, 0], [-0.5, 0.5])),
    "pegasos": lambda: LinearClassifier("pegasos", max_iter=2).fit(X, X[:, 0] > 0),
    "bcfw": lambda: ChainLabeler("bcfw", max_iter=2).fit(SEQUENCES, LABELS),
    "corrective, mkl": lambda: ChainLabeler("corrective", max_iter=2, regulariser="mkl").fit(SEQUENCES, LABELS),
    "lbfgs": lambda: ChainLabeler("lbfgs", max_iter=2).fit(SEQUENCES, LABELS),
    "pragam": lambda: ChainLabeler("pragam", max_iter=2).fit(SEQUENCES, LABELS),
    "proximal": lambda: ChainLabeler("proximal", max_iter=2).fit(SEQUENCES, LABELS),
    "label sets": lambda: MultiLabelMRF(max_iter=2).fit(X, (X[:, :3] > 0).astype(int)),
}


@pytest.mark.filterwarnings("ignore::structpred.errors.StructpredWarning")
@pytest.mark.parametrize("name", FITS)
def test_no_problem_outlives_its_fit(name) -> None:
    """Nothing that the problem keeps holds the problem."""
    FITS[name]()
    gc.collect()
    gc.disable()
    try:
        FITS[name]()
        assert not [one for one in gc.get_objects() if type(one) is Problem]
    finally:
        gc.enable()
