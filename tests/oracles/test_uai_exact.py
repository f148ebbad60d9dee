"""Real problems with known answers: the reader's scores, and the exact oracles on what of them is small enough or a forest."""

from pathlib import Path

import numpy as np
import pytest
from mrf_cases import eliminated
from scipy.special import logsumexp
from uai_cases import UaiInstance, uai_instances, uai_model

from structpred.core.oracle import Oracle, Shape
from structpred.oracles.mrf import graph_of, graph_shape
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.tree_mrf import TreeMRF

#: the instances whose elimination takes less than some seconds
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
