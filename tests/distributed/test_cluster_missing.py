"""Labels that are missing, on shards: the likelihood of what is known, by sums."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_data import digest

from structpred.distributed import Shards, fit
from structpred.distributed.cluster import local_cluster
from structpred.errors import DataError
from structpred.models import ChainLabeler, DependencyParser, MultiLabelMRF

# dask first: without it the folder of these tests is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::structpred.errors.MissingLabelsWarning")
RNG = np.random.default_rng(12)
X = [RNG.normal(size=(n, 3)) for n in RNG.integers(2, 6, 30)]
WHOLE = [np.where(x.sum(axis=1) > 0, "a", "b").tolist() for x in X]
Y = [[None if RNG.random() < 0.3 and i % 3 else label for label in labels] for i, labels in enumerate(WHOLE)]
CUTS = (slice(0, 11), slice(11, 30))


def data(rows: slice) -> tuple[Any, Any]:
    """Some of the sequences."""
    return X[rows], Y[rows]


def whole(rows: slice) -> tuple[Any, Any]:
    """The same with all labels."""
    return X[rows], WHOLE[rows]


def both(function: Any, other: Any = None) -> Shards:
    """Two shards."""
    return Shards.of_functions([partial(function, CUTS[0]), partial(other or function, CUTS[1])])


@pytest.mark.parametrize("settings", [
    pytest.param({"trainer": "lbfgs"}, id="l2"),
    pytest.param({"trainer": "owlqn", "regulariser": "l1"}, id="l1", marks=pytest.mark.slow),
])  # fmt: skip
def test_the_likelihood_of_what_is_known_ends_where_one_machine_ends(here: Any, settings: Any) -> None:
    """The same local optimum and weights as `fit`, and no bound; where one shard alone has missing labels as well."""
    alone = ChainLabeler(**settings, C=0.3, max_iter=20, check_every=1).fit(X, Y)
    spread = fit(ChainLabeler(**settings, C=0.3, max_iter=20, check_every=1), both(data), client=here)
    for model in (alone, spread):
        assert model.certificate_.local
        assert model.certificate_.dual is None
    assert spread.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-5)
    np.testing.assert_allclose(spread.coef_, alone.coef_, atol=2e-2)
    mixed = fit(ChainLabeler(**settings, C=0.3, max_iter=20), both(whole, data), client=here)
    again = ChainLabeler(**settings, C=0.3, max_iter=20).fit(X, WHOLE[:11] + Y[11:])
    assert mixed.certificate_.primal == pytest.approx(again.certificate_.primal, rel=1e-5)


@pytest.mark.slow
def test_what_needs_all_labels_says_what_does_not(here: Any) -> None:
    """Other trainers and surrogates name the shard, and the way that works."""
    for settings in ({"trainer": "bcfw"}, {"trainer": "oeg"}, {"trainer": "perceptron"}, {"trainer": "one_slack"},
                     {"trainer": "lbfgs", "surrogate": "soft_margin"}):  # fmt: skip
        model = ChainLabeler(**settings)
        with pytest.raises(DataError, match=r"shard 1 \(.*\): some labels are missing, .*: on shards lbfgs and owlqn learn"):
            fit(model, both(whole, data), client=here)
        with pytest.raises(DataError, match=r"shard 0 \(.*\): some labels are missing, .*: on shards lbfgs and owlqn learn"):
            fit(model, both(data), client=here)
        assert not hasattr(model, "coef_")


@pytest.mark.slow
def test_label_sets_may_have_missing_labels(here: Any) -> None:
    """The objective of `fit`, where entries of -1 are not known."""
    rows, sets = RNG.normal(size=(20, 3)), RNG.integers(-1, 2, (20, 3))
    settings = {"trainer": "lbfgs", "C": 0.5, "max_iter": 20, "edges": [(0, 2)]}
    alone = MultiLabelMRF(**settings).fit(rows, sets)
    parts = Shards.of_functions([lambda: (rows[:8], sets[:8]), lambda: (rows[8:], sets[8:])])
    spread = fit(MultiLabelMRF(**settings), parts, client=here)
    assert spread.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-5)


@pytest.mark.slow
def test_trees_and_relations_may_be_known_in_part(here: Any) -> None:
    """Heads that are missing are completed as in `fit`, before relations are learnt; relations may be missing, too."""
    words = [[{"form": f"w{RNG.integers(5)}", "upos": f"T{RNG.integers(3)}"} for _ in range(4)] for _ in range(20)]
    trees: list[Any] = [[(0, "root"), (1, "a"), (1, "b"), (3, "c" if i % 2 else "a")] for i in range(20)]
    trees[3][2], trees[5], trees[12][3], trees[15][1] = (None, "b"), [(None, "_")] * 4, (3, "_"), (-1, "_")
    settings: Any = {"trainer": "lbfgs", "C": 0.1, "max_iter": 8, "max_bits": 8, "projective": True}
    alone = DependencyParser(**settings).fit(words, trees)
    spread = DependencyParser(**settings)
    fit(spread, Shards.of_functions([lambda: (words[:9], trees[:9]), lambda: (words[9:], trees[9:])]), client=here)
    for one, other in ((alone, spread), (alone.relations_, spread.relations_)):
        assert one is not None
        assert other is not None
        assert one.certificate_.local
        assert other.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-5)
    assert alone.relation_features_ is not None
    assert spread.relation_features_ is not None
    assert spread.relation_features_.slots.tolist() == alone.relation_features_.slots.tolist()
    margin = DependencyParser(**{**settings, "trainer": "mira", "max_iter": 1})
    with pytest.raises(DataError, match=r"6 of 80 words have no relation: on shards lbfgs .*, or learn heads alone"):
        fit(margin, Shards.of_functions([lambda: (words, trees)]), client=here)


def test_a_run_with_missing_labels_resumes(here: Any, tmp_path: Path) -> None:
    """A run that stops early and is continued ends with the same bits."""
    settings = {"checkpoint": tmp_path / "run.ckpt", "check_every": 1}
    fit(ChainLabeler("lbfgs", max_iter=2, **settings), both(data), client=here)
    resumed = fit(ChainLabeler("lbfgs", max_iter=4, resume=True, **settings), both(data), client=here)
    assert resumed.coef_.tobytes() == fit(ChainLabeler("lbfgs", max_iter=4), both(data), client=here).coef_.tobytes()


@pytest.mark.slow
def test_workers_never_show_where_labels_are_missing(here: Any) -> None:
    """The bits are the same in one process and on two workers."""
    with local_cluster(2) as cluster, distributed.Client(cluster) as client:
        found = [digest(fit(ChainLabeler("lbfgs", max_iter=5), both(data), client=own)) for own in (here, client)]
        assert found[0] == found[1]
