"""Features of siblings and grandparents: what one part adds by itself adds up to the scores, and the contract holds."""

import numpy as np

from structpred.contracts.checks import check_feature_map
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.head_lists import candidate_shape, head_lists
from structpred.data.sequences import AttributedSentences
from structpred.features.arcs import ArcCandidates, ArcFeatures
from structpred.features.second_order import SIZE, SecondOrderFeatures
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.io.templates.arc_template_sets import pruning_templates
from structpred.io.treebanks.treebank import Sentence, Treebank


def sentences(lengths: tuple[int, ...] = (1, 2, 5, 9)) -> AttributedSentences:
    """Random sentences with few tags and lemmas."""
    rng = np.random.default_rng(0)
    made = []
    for n in lengths:
        tags, lemmas = rng.choice(["NOUN", "VERB", "ADJ"], n).tolist(), [f"l{k}" for k in rng.integers(0, 4, n)]
        made.append(Sentence([lemma.upper() for lemma in lemmas], lemmas, tags, ["_"] * n, ["_"] * n))
    treebank = Treebank.of(made)
    return ArcFeaturizer().fit(treebank).transform(treebank)


def features(share: float = 0.6) -> SecondOrderFeatures:
    """Second-order features of these, with this share of all arcs as candidates."""
    data, rng = sentences(), np.random.default_rng(0)
    shapes, listed, counts = [], [], [0]
    for n in data.lengths.tolist():
        allowed = rng.random((n, n + 1)) < share
        allowed[np.arange(n), np.arange(n)] = True  # the left neighbour
        allowed[np.arange(n), np.arange(1, n + 1)] = False
        shapes.append(candidate_shape(allowed))
        counts += allowed.sum(axis=1).tolist()
        listed.append(np.nonzero(allowed)[1])
    templates = ArcFeaturizer(present=data.names).usable(pruning_templates())
    listing = ArcCandidates(np.cumsum(counts), np.concatenate(listed).astype(np.int32))
    candidates = listing if share < 1.0 else None
    arcs = ArcFeatures(data, templates, [6] * len(templates), dtype=np.float64, candidates=candidates)
    return SecondOrderFeatures(arcs, shapes)


def test_the_contract_holds() -> None:
    """Scores and adjoint belong together, and blocks and subsets of sentences give the same."""
    check_feature_map(features(1.0))


def test_each_part_adds_what_it_adds_alone() -> None:
    """theta_p = <w, Psi^T e_p> for every arc that is a candidate, every sibling and every grandparent."""
    f = features()
    w = np.random.default_rng(1).normal(size=f.dim)
    for i in range(len(f)):
        theta = f.scores(w, i)
        alone = [w[v.indices] @ v.values for v in (f.adjoint(i, np.array([p]), np.ones(1)) for p in range(f.n_parts(i)))]
        barred = f.arcs.fixed_scores(i) if len(theta) else None
        kept = np.ones(len(theta), np.bool_)
        kept[: len(barred)] = barred > FORBIDDEN
        np.testing.assert_allclose(theta[kept], np.array(alone)[kept], rtol=0, atol=1e-9)


def test_a_sibling_has_a_weight_a_template() -> None:
    """Twelve features a sibling and a grandparent, behind those of arcs, each in the block of its template."""
    f = features()
    lists = head_lists(f.shapes[2])
    for part in (30, int(lists.parts[-1])):  # the first sibling of a sentence of five words, the last grandparent
        found = f.adjoint(2, np.array([part]), np.ones(1))
        blocks = np.searchsorted(f.groups, found.indices, side="right") - 1 - (len(f.arcs.groups) - 1)
        assert blocks.tolist() == list(range(12)) or blocks.tolist() == list(range(12, 24))
    assert f.groups[-1] == f.dim == f.arcs.dim + SIZE
    assert len(f.group_names) == len(f.groups) - 1


def test_no_word_is_its_own_grandparent() -> None:
    """The part of a grandparent that is the modifier is forbidden."""
    f = features()
    lists, fixed = head_lists(f.shapes[3]), f.fixed_scores(3)
    n_circles = sum(
        int(np.isin(words[:split], words[split:]).sum())
        for h, (begin, end) in enumerate(zip(lists.ends[:-1], lists.ends[1:], strict=True))
        for words, split in [(lists.words[begin:end], int(lists.sizes[h, 1:].sum()))]
    )
    assert (fixed[90:] == FORBIDDEN).sum() == n_circles > 0
