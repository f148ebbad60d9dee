"""Cutting planes over shards: pieces and sums of pieces are found where the shards are, and solved for here."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred import Instance
from structpred.distributed import Shards, fit
from structpred.distributed.fit import plan_of
from structpred.errors import MissingCapabilityError, NoUpdateWarning, ParameterError
from structpred.models import StructuredPredictor
from structpred.models.bundles import to_bundle
from structpred.objectives.margin import MarginRescaling
from structpred.oracles.multiclass import MulticlassOracle
from structpred.trainers.bmrm import BMRM
from structpred.trainers.n_slack import NSlackCuttingPlane

# dask first: without it the folder of these tests is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
distributed = pytest.importorskip("distributed")
RNG = np.random.default_rng(5)
Y = [[int(RNG.integers(3))] for _ in range(20)]
X = [Instance(RNG.normal(size=(3, 4)) + 2 * np.eye(3, 4) * np.eye(3)[y[0]][:, None], (3,)) for y in Y]
BOUNDS = [0, 3, 11, 20]


def rows(a: int, b: int) -> tuple[Any, Any]:
    """Some of the instances."""
    return X[a:b], Y[a:b]


SHARDS = Shards.of_functions([partial(rows, a, b) for a, b in pairwise(BOUNDS)])


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client whose worker is this process."""
    with distributed.Client(processes=False, dashboard_address=":0", n_workers=1, threads_per_worker=2) as client:
        yield client


def predictor(trainer: str, **settings: Any) -> StructuredPredictor:
    """Ten passes."""
    return StructuredPredictor(MulticlassOracle(), trainer=trainer, C=1.0, max_iter=10, tol=1e-3, check_every=1, **settings)


def test_n_slack_is_that_of_one_machine(client: Any) -> None:
    """Planes of each instance, found in shards, give the weights and the certificate of `fit`, bit by bit."""
    spread, alone = fit(predictor("n_slack"), SHARDS, client=client), predictor("n_slack").fit(X, Y)
    assert spread.coef_.tobytes() == alone.coef_.tobytes()
    assert spread.certificate_ == alone.certificate_
    assert spread.n_iter_ == alone.n_iter_


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["one_slack", "bmrm"])
def test_sums_of_pieces_give_the_same_planes(client: Any, trainer: str) -> None:
    """Planes that are sums over shards bound the same optimum as those of `fit`, and as closely."""
    settings = {"max_iter": 25, "tol": 0.05}
    spread = fit(predictor(trainer).set_params(**settings), SHARDS, client=client)
    alone = predictor(trainer).set_params(**settings).fit(X, Y)
    for one, other in ((spread, alone), (alone, spread)):
        assert one.certificate_.dual is not None
        assert 0.9 * other.certificate_.primal < one.certificate_.dual <= other.certificate_.primal * (1 + 1e-6)


def test_a_resumed_run_of_planes_gives_the_same_bits(client: Any, tmp_path: Path) -> None:
    """n-slack that stops after some passes and resumes on shards ends with the bits of one run."""
    whole = fit(predictor("n_slack"), SHARDS, client=client)
    kept = {"checkpoint": tmp_path / "run.ckpt"}
    fit(predictor("n_slack", **kept).set_params(max_iter=2, tol=0.0), SHARDS, client=client)
    resumed = fit(predictor("n_slack", **kept, resume=True), SHARDS, client=client)
    assert resumed.coef_.tobytes() == whole.coef_.tobytes()
    with pytest.raises(ParameterError, match=r"cannot be trained on shards; trainers that can: .*n_slack.*one_slack"):
        fit(predictor("sdca"), SHARDS, client=client)


@pytest.mark.parametrize("regulariser", ["mkl", pytest.param("lp_mkl", marks=pytest.mark.slow)])
def test_groups_of_weights_are_learnt_about_on_shards(client: Any, regulariser: str) -> None:
    """Regularisers that need the groups are looked at before the shards are read, and train on them."""
    model = predictor("ls_bmrm", regulariser=regulariser).set_params(max_iter=60, tol=0.09)
    assert fit(model, SHARDS, client=client).certificate_.relative_gap < 0.1
    with pytest.raises(MissingCapabilityError, match="ParameterMixing needs squared_norm, which MKL does not have"):
        fit(predictor("online_mkl"), SHARDS, client=client)


def test_slack_rescaling_on_shards_takes_a_trainer_that_they_take(client: Any) -> None:
    """Where no trainer is named it is bcfw on shards, whatever `fit` takes."""
    model = fit(StructuredPredictor(MulticlassOracle(), surrogate="slack", C=100.0, max_iter=5), SHARDS, client=client)
    assert to_bundle(model).header["trainer"] == "bcfw"
    assert model.score(X, Y) > 0.5


def test_weights_of_zero_warn_on_shards(client: Any) -> None:
    """A run on shards says as well that nothing was learnt."""
    with pytest.warns(NoUpdateWarning, match="after 1 passes all weights are zero"):
        fit(predictor("bmrm").set_params(max_iter=1), SHARDS, client=client)


def test_a_trainer_from_outside_says_what_it_asks() -> None:
    """One that asks for sums alone is planned as bundle methods are; without a word it is refused."""

    class Own(BMRM):
        name = ""

    class Quiet(Own):
        asks = ""

    plan = plan_of(Own(), MarginRescaling(), 0)
    assert (plan.algorithm, plan.gathers) == (None, False)
    assert plan_of(NSlackCuttingPlane(), MarginRescaling(), 0).gathers
    with pytest.raises(ParameterError, match="Quiet cannot be trained on shards; trainers that can"):
        plan_of(Quiet(), MarginRescaling(), 0)
