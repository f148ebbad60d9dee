"""Parsers on a cluster: heads, then relations, by the same rounds."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_data import digest

from structpred.distributed import Shards, fit
from structpred.distributed.cluster import local_cluster
from structpred.io.treebanks.reader import read_treebank
from structpred.models import DependencyParser

# dask first: without it the folder of these tests is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
distributed = pytest.importorskip("distributed")
WORD = "{0}\tw{1}\tl{1}\tT{2}\t_\t_\t{3}\t{4}\t_\t_\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty sentences of two to five words, whose relations follow from the tags but for some noise."""
    rng, out = np.random.default_rng(4), []
    for k in range(40):
        n = 2 + k % 4
        heads, tags = [0, *rng.integers(1, 2, n - 1).tolist()], rng.integers(0, 3, n)
        names = ["root", *(f"r{tag if rng.random() < 0.9 else 9}" for tag in tags[1:])]
        out.append("".join(WORD.format(j + 1, rng.integers(20), tags[j], heads[j], names[j]) for j in range(n)) + "\n")
    path = tmp_path_factory.mktemp("data") / "a.conllu"
    path.write_text("".join(out))
    return path


def parser(**settings: Any) -> DependencyParser:
    """A parser of few weights."""
    return DependencyParser(**{"trainer": "lbfgs", "C": 0.1, "max_iter": 4, "max_bits": 8, "check_every": 1, **settings})


def digests(model: DependencyParser) -> tuple[str, str]:
    """Those of heads and relations."""
    assert model.relations_ is not None
    return digest(model), digest(model.relations_)


@pytest.mark.slow
def test_relations_are_those_of_one_machine(here: Any, path: Path, tmp_path: Path) -> None:
    """Both stages reach the optimum of `fit`, know the same features and relations, and are saved and loaded as any parser."""
    treebank, rows = read_treebank(path), list[Any]()
    alone = parser(max_iter=15, C=0.003).fit(treebank)
    spread = parser(max_iter=15, C=0.003, callbacks=rows.append)
    fit(spread, Shards.of_file(path, 2, format="conllu"), client=here)
    first, second = alone.relations_, spread.relations_
    assert first is not None
    assert second is not None
    for one, other in ((alone, spread), (first, second)):
        np.testing.assert_allclose(one.certificate_.primal, other.certificate_.primal, rtol=1e-6)
        assert other.certificate_.relative_gap == pytest.approx(0.0, abs=1e-6)
    assert second.classes_.tolist() == first.classes_.tolist()
    assert alone.relation_features_ is not None
    assert spread.relation_features_ is not None
    assert spread.relation_features_.slots.tolist() == alone.relation_features_.slots.tolist()
    assert second.report_["shards"].tolist() == [2.0]
    assert [row.get("stage") for row in rows].count(2) == len(second.history_)
    assert spread.score(treebank) == pytest.approx(alone.score(treebank), abs=0.02)
    spread.save(tmp_path / "m")
    assert DependencyParser.load(tmp_path / "m").predict(treebank)[3].labels == spread.predict(treebank)[3].labels


def test_a_pruned_parser_is_that_of_one_machine(here: Any, path: Path, tmp_path: Path) -> None:
    """n-slack in all three stages gives the bits of `fit`: of what prunes, of heads and of relations; held-out trees, too."""
    treebank, dev = read_treebank(path), read_treebank(path).take(np.arange(8))
    settings: dict[str, Any] = {"trainer": "n_slack", "prune": 1, "tol": 0.0, "max_iter": 3}
    alone, spread = parser(**settings).fit(treebank, dev=dev), parser(**settings)
    fit(spread, Shards.of_file(path, 2, format="conllu"), client=here, dev=dev)
    assert alone.pruner_ is not None
    assert spread.pruner_ is not None
    assert alone.kept_ is not None
    assert spread.kept_ == alone.kept_ < 1.0
    assert alone.relations_ is not None
    assert spread.relations_ is not None
    for one, other in ((alone, spread), (alone.pruner_, spread.pruner_), (alone.relations_, spread.relations_)):
        assert other.coef_.tobytes() == one.coef_.tobytes()
        assert other.certificate_ == one.certificate_
        assert other.report_["shards"].tolist() == [2.0]
    assert [row["dev_score"] for row in spread.history_] == [row["dev_score"] for row in alone.history_]
    spread.save(tmp_path / "m")
    assert DependencyParser.load(tmp_path / "m").predict(treebank)[3].labels == alone.predict(treebank)[3].labels


@pytest.mark.slow
def test_a_second_order_parser_on_shards(here: Any, path: Path) -> None:
    """n-slack over two shards gives the bits of `fit`: of what prunes and of trees with siblings and grandparents."""
    treebank, settings = read_treebank(path), {"trainer": "n_slack", "order": 2, "labelled": False, "tol": 0.0, "max_iter": 2}
    alone, spread = parser(**settings).fit(treebank), parser(**settings)
    fit(spread, Shards.of_file(path, 2, format="conllu"), client=here)
    assert spread.coef_.tobytes() == alone.coef_.tobytes()
    assert spread.pruner_.coef_.tobytes() == alone.pruner_.coef_.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("stage", [1, 2])
def test_a_pruned_parser_resumes_in_either_stage(here: Any, path: Path, tmp_path: Path, stage: int) -> None:
    """What prunes is learnt again, to the same bits, and does not touch what the other stages have stored."""
    shards = Shards.of_file(path, 2, format="conllu")
    whole = digests(fit(parser(prune=1), shards, client=here))

    def fail(row: Any) -> None:
        if row.get("stage", 1) == stage and row["passes"] == 2:
            raise RuntimeError("stop")

    settings = {"checkpoint": tmp_path / "p.ckpt", "prune": 1}
    with pytest.raises(RuntimeError, match="stop"):
        fit(parser(callbacks=fail, **settings), shards, client=here)
    assert digests(fit(parser(resume=True, **settings), shards, client=here)) == whole


@pytest.mark.slow
def test_a_parser_resumes_in_either_stage(here: Any, path: Path, tmp_path: Path) -> None:
    """An error in the first or in the second stage loses nothing: resume ends with the same bits."""
    shards = Shards.of_file(path, 2, format="conllu")
    whole = digests(fit(parser(), shards, client=here))
    for stage in (1, 2):

        def fail(row: Any, stage: int = stage) -> None:
            if row.get("stage", 1) == stage and row["passes"] == 2:
                raise RuntimeError("stop")

        settings = {"checkpoint": tmp_path / f"{stage}.ckpt"}
        with pytest.raises(RuntimeError, match="stop"):
            fit(parser(callbacks=fail, **settings), shards, client=here)
        assert digests(fit(parser(resume=True, **settings), shards, client=here)) == whole


@pytest.mark.slow
@pytest.mark.usefixtures("hears_interrupts")
def test_ctrl_c_among_relations_keeps_both_stages(here: Any, path: Path) -> None:
    """Ctrl-C in the second stage ends it; the parser has its heads, and relations as far as they were learnt."""

    def press(row: Any) -> None:
        if row.get("stage") == 2 and row["passes"] == 2:
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()

    model = parser(max_iter=30, tol=0.0, callbacks=press)
    with pytest.raises(KeyboardInterrupt, match="the model holds what was learnt"):
        fit(model, Shards.of_file(path, 2, format="conllu"), client=here)
    assert model.relations_ is not None
    assert model.relations_.stop_reason_ == model.stop_reason_ == "interrupted"
    assert model.predict(read_treebank(path))[0].labels is not None


@pytest.mark.slow
def test_workers_never_show_in_heads_or_relations(here: Any, path: Path) -> None:
    """The bits of both stages are the same in one process and on two workers."""
    shards = Shards.of_file(path, 2, format="conllu")
    with local_cluster(2) as cluster, distributed.Client(cluster) as client:
        for settings in ({}, {"trainer": "mira"}, {"prune": 1}, {"trainer": "mira", "prune": 1}):
            model = fit(parser(**settings), shards, client=client)
            assert digests(model) == digests(fit(parser(**settings), shards, client=here)), settings
