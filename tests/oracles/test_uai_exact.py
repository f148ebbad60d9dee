"""Real problems with known answers: the reader's scores, elimination on all of them, other oracles on parts, bounds above."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from mrf_cases import eliminated
from scipy.special import logsumexp
from uai_cases import UaiInstance, uai_instances, uai_model

from structpred.core.oracle import Oracle, Shape
from structpred.oracles.dual_mrf import DualMRF
from structpred.oracles.elimination import EliminationMRF
from structpred.oracles.mrf import graph_of, graph_shape
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.mrf_lp import RelaxedMRF
from structpred.oracles.qpbo import QPBO
from structpred.oracles.tree_mrf import TreeMRF

#: all instances with exact answers, and the seconds that EliminationMRF takes for the best output and log Z
EXACT = {
    "Alchemy_11": 0.03,
    "CSP_12": 0.03,
    "DBN_11": 0.6,
    "Grids_11": 0.3,
    "Grids_13": 0.3,
    "Grids_15": 2.3,
    "MAPtrack_Segmentation_12": 0.03,
    "MAPtrack_Segmentation_14": 0.06,
    "MAPtrack_Segmentation_19": 0.05,
    "ObjectDetection_34": 0.4,
    "ObjectDetection_61": 0.4,
    "Pedigree_12": 0.01,
    "Promedus_15": 0.01,
    "Promedus_24": 0.01,
    "Promedus_29": 0.01,
    "Promedus_31": 0.01,
    "Promedus_34": 0.02,
    "Segmentation_11": 0.06,
    "Segmentation_13": 0.2,
    "Segmentation_15": 0.2,
}

#: without exact answers of the data set, but with an official log10 Z; 0.1 to 4 seconds
OFFICIAL = ["DBN_12", "DBN_15", "Grids_17", "ObjectDetection_74", "Pedigree_11", "Promedus_28"]

#: the instances whose elimination by NumPy takes less than some seconds
NARROW = [
    "DBN_11",
    "Grids_11",
    "Grids_13",
    "ObjectDetection_61",
    "Segmentation_11",
    "Segmentation_15",
    "Promedus_24",
    "Alchemy_11",
]


def _given_the_rest(instance: UaiInstance, free: np.ndarray) -> tuple[Shape, np.ndarray, float]:
    """The problem of the free nodes, the others being in their state of the best assignment: shape, scores, constant."""
    graph, scores, best = graph_of(instance.problem.shape), instance.problem.scores, instance.best_labels
    n, k = graph.n, graph.n_states
    place = {int(i): a for a, i in enumerate(free)}
    nodes = scores[: n * k].reshape(n, k)
    own, constant = nodes[free].copy(), instance.problem.constant
    constant += float(sum(nodes[i, best[i]] for i in range(n) if i not in place))
    edges, tables = [], []
    for (i, j), table in zip(graph.edges.tolist(), scores[n * k :].reshape(-1, k, k), strict=True):
        if i in place and j in place:
            edges.append((place[i], place[j]))
            tables.append(table.ravel())
        elif i in place:
            own[place[i]] += table[:, best[j]]
        elif j in place:
            own[place[j]] += table[best[i]]
        else:
            constant += float(table[best[i], best[j]])
    return graph_shape(len(free), k, edges), np.concatenate((own.ravel(), *tables)), constant


def _neighbourhood(rng: np.random.Generator, instance: UaiInstance, size: int) -> np.ndarray:
    """A connected set of nodes, where there is one of this size."""
    edges = graph_of(instance.problem.shape).edges
    inside = {int(rng.integers(instance.problem.shape[0]))}
    while len(inside) < size:
        near = edges[np.isin(edges, list(inside)).sum(axis=1) == 1].ravel()
        inside.add(int(rng.choice(near)) if len(near) else int(rng.integers(instance.problem.shape[0])))
    return np.array(sorted(inside))


def _forest(rng: np.random.Generator, instance: UaiInstance) -> np.ndarray:
    """Nodes taken in random order as long as no cycle closes among them."""
    graph = graph_of(instance.problem.shape)
    near: list[list[int]] = [[] for _ in range(graph.n)]
    for i, j in graph.edges.tolist():
        near[i].append(j)
        near[j].append(i)
    tree = dict.fromkeys(range(graph.n), -1)
    for i in rng.permutation(graph.n).tolist():
        joined = [tree[j] for j in near[i] if tree[j] >= 0]
        if len(set(joined)) == len(joined):
            tree = {j: i if t in joined else t for j, t in tree.items()}
            tree[i] = i
    return np.array([i for i, t in tree.items() if t >= 0])


def test_all_best_assignments_have_the_exact_score(data_dir: Path) -> None:
    """All 20 instances with exact answers: the score of the best assignment, read from the file, is exact_max to 1e-6."""
    instances = uai_instances(data_dir, paired=True)
    assert len(instances) == 20
    for instance in instances:
        model, _ = uai_model(data_dir, instance.name)
        assert model.score(instance.best_labels) == pytest.approx(instance.exact_max, abs=1e-6)
        if not instance.paired:
            assert instance.score(instance.best_labels) == pytest.approx(instance.exact_max, abs=1e-6)
    assert sum(not instance.paired for instance in instances) == 12


@pytest.mark.slow
def test_reference_assignments_have_their_score(data_dir: Path) -> None:
    """The pairwise instances without exact answers: the repository's assignment has the score of the table of answers."""
    for instance in uai_instances(data_dir, exact=False):
        if instance.exact_max is None:
            assert instance.score(instance.best_labels) == pytest.approx(instance.best_known, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", NARROW)
def test_the_problems_have_the_exact_answers(data_dir: Path, name: str) -> None:
    """Elimination on the scores that were read, larger factors made variables, gives exact_max and exact_log_z to 1e-6."""
    (instance,) = uai_instances(data_dir, paired=True, names=[name])
    problem = instance.problem
    assert eliminated(problem.shape, problem.scores, np.max) + problem.constant == pytest.approx(instance.exact_max, abs=1e-6)
    log_z = eliminated(problem.shape, problem.scores, logsumexp) + problem.constant
    assert log_z == pytest.approx(instance.exact_log_z, abs=1e-6)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", [EnumerationMRF, TreeMRF])
def test_exact_oracles_reach_the_exact_score_given_the_rest(data_dir: Path, kind: type[Oracle]) -> None:
    """All 12 pairwise instances, most nodes held at the best assignment: over the others the oracle finds exact_max to 1e-6.

    As the assignment is the best of all, it is the best one for any nodes given the others. The free nodes are connected
    neighbourhoods of up to 2^14 outputs for enumeration, and random forests within the graph for TreeMRF.
    """
    rng, oracle = np.random.default_rng(0), kind()
    for instance in uai_instances(data_dir):
        size = int(14 / np.log2(instance.problem.shape[1]))
        for _ in range(4):
            free = _neighbourhood(rng, instance, size) if kind is EnumerationMRF else _forest(rng, instance)
            shape, scores, constant = _given_the_rest(instance, free)
            found = oracle.argmax(scores, shape)
            assert scores[oracle.parts(found, shape)].sum() + constant == pytest.approx(instance.exact_max, abs=1e-6)
            assert kind is EnumerationMRF or len(graph_of(shape).edges) > 0
            # log Z of this part of the problem, by elimination, and its marginals as its gradient
            log_z, mu = oracle.marginals(scores, shape)  # type: ignore[attr-defined]
            assert log_z == pytest.approx(eliminated(shape, scores, logsumexp), abs=1e-6)
            step = rng.normal(size=len(scores)) * 1e-5
            slope = oracle.marginals(scores + step, shape)[0] - oracle.marginals(scores - step, shape)[0]  # type: ignore[attr-defined]
            assert slope / 2e-5 == pytest.approx(float(mu @ step) / 1e-5, abs=1e-4)


def _answers(data_dir: Path, name: str) -> dict[str, str]:
    """The row of one instance in the table of answers."""
    with (data_dir / "mrf_uai2014" / "answers.tsv").open(encoding="utf-8") as file:
        return next(row for row in csv.DictReader(file, delimiter="\t") if row["name"] == name)


def _reference_marginals(data_dir: Path, name: str) -> list[np.ndarray]:
    """The marginals of the data set, six digits each: one array a variable of the model."""
    numbers = gzip.decompress((data_dir / "mrf_uai2014" / f"{name}.MAR.gz").read_bytes()).split()[1:]
    at, found = 1, []
    for _ in range(int(numbers[0])):
        count = int(numbers[at])
        found.append(np.array(numbers[at + 1 : at + 1 + count], dtype=np.float64))
        at += count + 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_elimination_reaches_the_exact_answers(data_dir: Path, name: str) -> None:
    """Each of the 20 instances: the best output has the score exact_max, and log Z is exact_log_z, both to 1e-6."""
    (instance,) = uai_instances(data_dir, paired=True, names=[name])
    problem, oracle = instance.problem, EliminationMRF()
    labels = oracle.argmax(problem.scores, problem.shape)
    assert instance.score(labels) == pytest.approx(instance.exact_max, abs=1e-6)
    model, evidence = uai_model(data_dir, name)
    own = labels[: len(model.n_states)]
    assert model.score(own) == pytest.approx(instance.exact_max, abs=1e-6)
    assert all(own[i] == state for i, state in evidence.items())
    assert oracle.log_partition(problem.scores, problem.shape) + problem.constant == pytest.approx(instance.exact_log_z, abs=1e-6)


def test_there_are_no_other_exact_answers(data_dir: Path) -> None:
    """The list above is the data set's."""
    assert {instance.name for instance in uai_instances(data_dir, paired=True)} == set(EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("name", OFFICIAL)
def test_elimination_beside_the_official_partition_functions(data_dir: Path, name: str) -> None:
    """Instances without exact answers: log10 Z has the official six digits, the best score is not below the one known."""
    (instance,) = uai_instances(data_dir, exact=False, paired=True, names=[name])
    problem, oracle = instance.problem, EliminationMRF()
    assert instance.score(oracle.argmax(problem.scores, problem.shape)) >= instance.best_known - 1e-6
    log10_z = (oracle.log_partition(problem.scores, problem.shape) + problem.constant) / np.log(10.0)
    assert log10_z == pytest.approx(float(_answers(data_dir, name)["official_log10PR"]), rel=6e-6)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", ["Alchemy_11", "CSP_12", "Pedigree_12", "Promedus_15", "Promedus_34", "Segmentation_11"])
def test_marginals_beside_the_reference(data_dir: Path, name: str) -> None:
    """The marginals of the model's variables are the reference's to the digits given."""
    (instance,) = uai_instances(data_dir, paired=True, names=[name])
    n, k = instance.problem.shape[:2]
    rows = EliminationMRF().marginals(instance.problem.scores, instance.problem.shape)[1][: n * k].reshape(n, k)
    reference = _reference_marginals(data_dir, name)
    assert len(reference) > 60
    for row, expected in zip(rows, reference, strict=False):
        np.testing.assert_allclose(row[: len(expected)], expected, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DBN_11", "Grids_15", "ObjectDetection_34"])
def test_marginals_of_wide_instances_agree_with_themselves(data_dir: Path, name: str) -> None:
    """Tables of up to millions of entries: nodes add up to one, edges to their nodes, and log Z is the exact one."""
    (instance,) = uai_instances(data_dir, names=[name])
    problem, graph = instance.problem, graph_of(instance.problem.shape)
    log_z, mu = EliminationMRF().marginals(problem.scores, problem.shape)
    assert log_z + problem.constant == pytest.approx(instance.exact_log_z, abs=1e-6)
    n, k = graph.n, graph.n_states
    rows, pairs = mu[: n * k].reshape(n, k), mu[n * k :].reshape(-1, k, k)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(pairs.sum(axis=2), rows[graph.edges[:, 0]], atol=1e-9)
    np.testing.assert_allclose(pairs.sum(axis=1), rows[graph.edges[:, 1]], atol=1e-9)


@pytest.mark.parametrize("kind", [DualMRF, QPBO])
def test_bounds_are_never_below_the_exact_score(data_dir: Path, kind: type[Oracle]) -> None:
    """All 20 instances (QPBO: those of two states): bound >= exact_max >= the score of the labels, and often both are equal."""
    oracle, n_tight, n_seen = DualMRF(n_iter=200) if kind is DualMRF else kind(), 0, 0
    for instance in uai_instances(data_dir, paired=True):
        problem = instance.problem
        if kind is QPBO and problem.shape[1] > 2:
            continue
        labels, bound = oracle.argmax_bound(problem.scores, problem.shape)  # type: ignore[attr-defined]
        assert bound + problem.constant >= instance.exact_max - 1e-6, instance.name
        assert instance.score(labels) <= instance.exact_max + 1e-6, instance.name
        n_seen += 1
        n_tight += bound + problem.constant <= instance.exact_max + 1e-3
    assert n_seen == (20 if kind is DualMRF else 10)
    assert 3 <= n_tight < n_seen


@pytest.mark.slow
def test_the_relaxation_is_never_below_the_exact_score(data_dir: Path) -> None:
    """The LP's bound on the 19 instances that the simplex method solves in seconds; CSP_12 has 258,880 parts."""
    for instance in uai_instances(data_dir, paired=True, names=[name for name in EXACT if name != "CSP_12"]):
        labels, bound = RelaxedMRF(pdlp_from=10**6).argmax_bound(instance.problem.scores, instance.problem.shape)
        assert bound + instance.problem.constant >= instance.exact_max - 1e-6, instance.name
        assert instance.score(labels) <= instance.exact_max + 1e-6, instance.name
