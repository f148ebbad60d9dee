"""Second-order trees of real sentences, judged by an integer program."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from structpred.core.head_lists import head_lists
from structpred.features.arcs import ArcFeatures
from structpred.io import read_treebank
from structpred.models import DependencyParser
from structpred.models.parser.arcs import kept_heads
from structpred.models.parser.second_order import structure
from structpred.task.inference import Inference


def best_by_program(theta: np.ndarray, shape: tuple) -> float:
    """The best score of a crossing tree with one root: paths over siblings, products for grandparents, a flow for the tree."""
    (sizes, words, ends, parts, copies, _), n = head_lists(shape), shape[0]
    n_parts, rows, low, high = len(theta), [], [], []
    arcs = np.unique(parts[parts < n * (n + 1)])

    def row(entries: list[tuple[int, float]], least: float, most: float) -> None:
        rows.append(entries)
        low.append(least)
        high.append(most)

    for m in range(1, n + 1):
        row([(a, 1.0) for a in arcs if a // (n + 1) == m - 1], 1.0, 1.0)
    row([(a, 1.0) for a in arcs if a % (n + 1) == 0], 1.0, 1.0)
    # what flows along an arc, from the root, one unit for each word below it: variables behind the parts
    flow = {a: n_parts + k for k, a in enumerate(arcs.tolist())}
    for a, f in flow.items():
        row([(f, 1.0), (a, -float(n))], -np.inf, 0.0)
    for m in range(1, n + 1):
        into = [(f, 1.0) for a, f in flow.items() if a // (n + 1) == m - 1]
        row(into + [(f, -1.0) for a, f in flow.items() if a % (n + 1) == m], 1.0, 1.0)
    for h, (n_heads, left, right) in enumerate(sizes.tolist()):
        own = words[ends[h] : ends[h + 1]].tolist()
        modifiers, above = own[: left + right], own[left + right :]
        at = copies[h] + len(own)
        for listed in (modifiers[:left], modifiers[left:]):
            d = len(listed)
            pair = {(i, j): int(parts[at + j * (j - 1) // 2 + i]) for j in range(1, d + 2) for i in range(j)}
            at += (d + 1) * (d + 2) // 2
            row([(pair[0, j], 1.0) for j in range(1, d + 2)], 1.0, 1.0)
            for j, m in enumerate(listed, 1):
                arc = (m - 1) * (n + 1) + h
                row([(pair[i, j], 1.0) for i in range(j)] + [(arc, -1.0)], 0.0, 0.0)
                row([(pair[j, k], 1.0) for k in range(j + 1, d + 2)] + [(arc, -1.0)], 0.0, 0.0)
        for j, m in enumerate(modifiers):
            for i, g in enumerate(above):
                both, arc, upper = int(parts[at + j * n_heads + i]), (m - 1) * (n + 1) + h, (h - 1) * (n + 1) + g
                row([(both, 1.0), (arc, -1.0)], -np.inf, 0.0)
                row([(both, 1.0), (upper, -1.0)], -np.inf, 0.0)
                row([(both, 1.0), (arc, -1.0), (upper, -1.0)], -1.0, np.inf)
    where = np.repeat(np.arange(len(rows)), [len(entries) for entries in rows])
    columns, values = zip(*[entry for entries in rows for entry in entries], strict=True)
    A = sparse.csr_array((values, (where, columns)), shape=(len(rows), n_parts + len(arcs)))
    upper = np.append(np.ones(n_parts), np.full(len(arcs), float(n)))
    used = np.zeros(n_parts, np.bool_)
    used[parts] = True
    upper[:n_parts][~used | (theta < -1e20)] = 0.0
    cost = np.append(np.where(theta < -1e20, 0.0, -theta), np.zeros(len(arcs)))
    whole = np.append(np.isin(np.arange(n_parts), arcs).astype(np.int64), np.zeros(len(arcs), np.int64))
    options = {"mip_rel_gap": 0.0}
    found = milp(cost, integrality=whole, bounds=Bounds(0, upper), constraints=LinearConstraint(A, low, high), options=options)
    return -float(found.fun)


@pytest.mark.slow
def test_fifty_latin_sentences(data_dir: Path) -> None:
    """The search finds the best tree of each among the candidates, and its bound is that tree's score."""
    folder = data_dir / "ud_latin_perseus"
    train, test = (read_treebank(folder / f"la_perseus-ud-{part}.conllu.gz") for part in ("train", "test"))
    parser = DependencyParser(order=2, max_iter=3, projective=False, labelled=False).fit(train.take(range(400)))
    some = test.take(np.flatnonzero((test.lengths >= 4) & (test.lengths <= 24))[:50])
    data = parser.featurizer_.transform(some)
    arcs = ArcFeatures(data, parser.templates_, parser.bits_, candidates=kept_heads(parser, parser.pruner_, data))
    inference = Inference(*structure(arcs, 2, False, True))
    branched = 0
    for i, shape in enumerate(inference.shapes):
        theta = inference.scores(parser.coef_, i)
        labels, bound = inference.oracle.argmax_bound(theta, shape)
        value = theta[inference.oracle.parts(labels, shape)].sum()
        best = best_by_program(theta, shape)
        assert value == pytest.approx(best, abs=1e-6)
        assert value - 1e-9 <= bound <= value + 1e-6
        hasty = type(inference.oracle)(False, rounds=40, max_nodes=None)
        branched += hasty.argmax_bound(theta, shape)[1] > value + 1e-6
    assert branched >= 5  # sentences that need a search are among them
