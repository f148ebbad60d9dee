"""C=None of label sets: 0.1, with a kernel 1; training, files and runs that go on have that number, settings keep None."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from structpred.distributed import Shards, fit
from structpred.errors import CheckpointError, ParameterError
from structpred.models import GraphLabeler, HierarchicalMultiLabel, MultiLabelMRF
from structpred.storage.bundles import read_bundle
from structpred.tuning import tune

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X @ RNG.normal(size=(3, 3)) > 0).astype(np.int64)
Y[:, 1:] *= Y[:, :1]
KINDS: dict[str, Any] = {"sets": MultiLabelMRF, "hierarchy": HierarchicalMultiLabel}


def model_of(kind: str, **settings: Any) -> Any:
    """A short run."""
    own = {"hierarchy": [-1, 0, 0], "require": None} if kind == "hierarchy" else {}
    return KINDS[kind](**{"max_iter": 6, "tol": 0.0, "random_state": 0, **own, **settings})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("kernel", "C"), [(None, 0.1), ("rbf", 1.0), ("precomputed", 1.0)])
def test_none_is_a_number_wherever_one_is_needed(kind: str, kernel: Any, C: float, tmp_path: Path) -> None:
    """Weights and bounds are those of the number; files hold it; settings and clones keep None."""
    rows, path = X @ X.T if kernel == "precomputed" else X, tmp_path / "m.spz"
    model, same = (model_of(kind, kernel=kernel, **given).fit(rows, Y) for given in ({}, {"C": C}))
    assert model.coef_.tobytes() == same.coef_.tobytes()
    assert model.certificate_ == same.certificate_
    assert model.get_params()["C"] is clone(model).C is None
    model.save(path)
    assert read_bundle(path, kind="model", format_version=1).header["settings"]["C"] == C
    again = KINDS[kind].load(path)
    assert again.C == C
    if kernel != "precomputed":
        assert again.fit(rows, Y).coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_runs_go_on_with_the_number(kind: str, tmp_path: Path) -> None:
    """None and 0.1 continue each other to the same bits; another C is another problem."""
    whole, kept = model_of(kind).fit(X, Y), {"checkpoint": tmp_path / "c"}
    model_of(kind, **{**kept, "max_iter": 3}).fit(X, Y)
    with pytest.raises(CheckpointError):
        model_of(kind, C=1.0, resume=True, **kept).fit(X, Y)
    resumed = model_of(kind, C=0.1, resume=True, **kept).fit(X, Y)
    assert resumed.coef_.tobytes() == whole.coef_.tobytes()


def test_shards_and_tune_take_the_number() -> None:
    """On shards the objective is that of 0.1; a search over kernels has 0.1 without one, 1 with one."""
    pieces = Shards.of_functions([lambda k=k: (X[k::2], Y[k::2]) for k in range(2)])
    ours, same = (fit(model_of("sets", **given), pieces) for given in ({}, {"C": 0.1}))
    assert ours.coef_.tobytes() == same.coef_.tobytes()
    grid = {"kernel": [None, "rbf"]}
    usual, *numbers = (
        {one.setting["kernel"]: one.score for one in tune(model_of("sets", C=C), grid, X, Y, cv=2, min_passes=6).trials}
        for C in (None, 0.1, 1.0)
    )
    assert usual == {None: numbers[0][None], "rbf": numbers[1]["rbf"]}


def test_other_values_are_refused_and_graphs_keep_theirs() -> None:
    """What is no positive number is an error; graphs have C = 1 and no None."""
    for C in (0.0, -1.0, "0.1", True):
        with pytest.raises(ParameterError, match="C must be a positive number"):
            model_of("sets", C=C).fit(X, Y)
    assert GraphLabeler().C == 1.0
    with pytest.raises(ParameterError, match="C must be a positive number, got None"):
        GraphLabeler(C=None).fit([(X[:2], [(0, 1)])], [["a", "b"]])  # type: ignore[arg-type]
