"""Hard constraints at prediction: sequences, trees, label sets, graphs and own structures against all outputs, listed."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parser_cases import corpus, random_words

from structpred import Instance
from structpred.core.head_lists import candidate_shape
from structpred.errors import ConvergenceError, DataError, InfeasibleError
from structpred.features.parts import PartFeatures
from structpred.io import read_treebank
from structpred.models import (
    ChainLabeler,
    Constraint,
    DependencyParser,
    GraphLabeler,
    HierarchicalMultiLabel,
    KernelChainLabeler,
    MultiLabelMRF,
    StructuredPredictor,
    constrained,
)
from structpred.models.constrained import Constrained
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.budget import Budget
from structpred.oracles.logic import Logic
from structpred.oracles.second_order_tree import SecondOrderTree
from structpred.task.inference import Inference

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(n, 3)) for n in (5, 4, 6, 5, 1, 3, 5, 6)]
Y = [["ABC"[k] for k in (x + 0.5 * RNG.normal(size=x.shape)).argmax(axis=1)] for x in X]
CHAIN = ChainLabeler(C=1.0, max_iter=10).fit(X, Y)
Holds = Callable[[Any], bool]

#: constraints on sequences, and what they say of a sequence of labels; of "B at 0, then C at 3" where there is a position 3
ON_CHAINS: list[tuple[Constraint, Holds]] = [
    (Constraint(Budget(at_most=1), [(None, "A")]), lambda y: y.count("A") <= 1),
    (Constraint(Budget(exactly=2), [(None, "B")], 2), lambda y: y.count("B") == 2),
    (Constraint(Logic("implies"), [(0, "B"), (3, "C")], 3), lambda y: y[0] != "B" or y[3] == "C"),
    (Constraint(Logic("iff"), [(1, "A"), (2, "C")], 6), lambda y: (y[1] == "A") == (y[2] == "C")),
    (Constraint(Logic("xor"), [(0, "C"), (4, "C"), (5, "C")], 7), lambda y: [y[0], y[4], y[5]].count("C") == 1),
]


def best(listed: Sequence[tuple[Any, float]], rules: Sequence[tuple[Constraint, Holds]], i: int) -> tuple[Any, float]:
    """The first of all outputs, best first, that keeps the rules of sample i."""
    return next((y, s) for y, s in listed if all(holds(y) for rule, holds in rules if rule.sample in (None, i)))


@pytest.mark.parametrize("n_rules", range(1, len(ON_CHAINS) + 1))
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sequences_are_the_best_that_keep_the_rules(n_rules: int, n_jobs: int) -> None:
    """One rule and more of them, for all samples and for one: the best of all label sequences, listed; the same on threads."""
    rules = ON_CHAINS[:n_rules]
    model = CHAIN.set_params(n_jobs=n_jobs)
    found = model.predict(X, constraints=[rule for rule, _ in rules])
    for i, listed in enumerate(model.predict_kbest(X, 3**6)):
        all_labels = [(labels.tolist(), score) for labels, score in listed]
        labels, score = best(all_labels, rules, i)
        assert dict((tuple(y), s) for y, s in all_labels)[tuple(found[i])] == pytest.approx(score, abs=1e-9), (labels, found[i])


def test_rules_meet_other_constraints() -> None:
    """Rules hold together with labels that are fixed or allowed; no rules at all change nothing."""
    rule = Constraint(Budget(exactly=2), [(None, "A")], 0)
    found = CHAIN.predict(X[:1], fixed=[["C", None, None, None, None]], constraints=[rule])[0].tolist()
    assert found[0] == "C"
    assert found.count("A") == 2
    assert [y.tolist() for y in CHAIN.predict(X, constraints=[])] == [y.tolist() for y in CHAIN.predict(X)]
    empty = CHAIN.predict([X[0], X[0][:0]], constraints=[Constraint(Budget(at_most=0), [(None, "A")])])
    assert len(empty[1]) == 0
    assert "A" not in empty[0]
    impossible = [Constraint(Budget(at_least=99), [(None, "A")])]
    with pytest.raises(InfeasibleError, match=r"^sample 1: no label sequence"):
        CHAIN.predict([X[0][:0], X[0]], constraints=impossible)
    with pytest.raises(DataError, match=r"sample < 2 and not empty"):
        CHAIN.predict([X[0][:0], X[0]], constraints=[Constraint(Budget(at_most=0), [(None, "A")], sample=0)])


def test_transitions_with_features_and_kernels_keep_rules() -> None:
    """A labeler with a kernel, and one whose transitions see the token, keep rules as every other one."""
    rules = [Constraint(Budget(exactly=1), [(None, "A")])]
    for model in (KernelChainLabeler(max_iter=3).fit(X, Y), ChainLabeler(template="pos", max_iter=3)):
        rows = X if isinstance(model, KernelChainLabeler) else [[(f"w{k}",) for k in range(len(y))] for y in Y]
        found = (model if isinstance(model, KernelChainLabeler) else model.fit(rows, Y)).predict(rows, constraints=rules)
        assert [y.tolist().count("A") for y in found] == [1] * len(X)


@pytest.mark.parametrize("projective", [True, False])
def test_trees_are_the_best_that_keep_the_rules(projective: bool) -> None:
    """Few children, arcs that exclude or imply each other: the best of all trees, listed, projective ones and others."""
    parser = DependencyParser(max_iter=5, labelled=False, projective=projective).fit(*corpus(30, 0, 0.0 if projective else 0.3))
    words = random_words([5, 4, 5, 3], np.random.default_rng(3))
    rules: list[tuple[Constraint, Holds]] = [
        (Constraint(Budget(at_most=1), [(1, None)]), lambda h: h.count(1) <= 1),
        (Constraint(Budget(at_most=1), [(2, None)]), lambda h: h.count(2) <= 1),
        (Constraint(Logic("implies"), [(0, 1), (1, 2)]), lambda h: h[0] != 0 or h[1] == 1),
        (Constraint(Logic("not_all"), [(2, 3), (3, 4)], 0), lambda h: not (h[2] == 2 and h[3] == 3)),
        (Constraint(Logic("xor"), [(5, 4), (0, 4)], 2), lambda h: (h[3] == 5) + (h[3] == 0) == 1),
    ]
    for n in (1, 3, 5):
        found = parser.predict(words, constraints=[rule for rule, _ in rules[:n]])
        for i, listed in enumerate(parser.predict_kbest(words, 2000)):
            trees = {tuple(tree.heads.tolist()): score for tree, score in listed}
            expected = best([(list(heads), score) for heads, score in trees.items()], rules[:n], i)
            assert trees[tuple(found[i].heads.tolist())] == pytest.approx(expected[1], abs=1e-9)


@pytest.mark.parametrize("projective", [True, False])
def test_trees_of_second_order_are_the_best_that_keep_the_rules(projective: bool) -> None:
    """Budgets and formulas over arcs, on scores of all arcs, siblings and grandparents; some arcs are no candidates: against all
    trees, listed; where no tree keeps the rules, those that cannot be left out are named."""
    own, rng, infeasible = SecondOrderTree(projective, single_root=False), np.random.default_rng(7), 0
    oracle = Constrained(own)
    for k in range(12):
        n = int(rng.integers(2, 5))
        shape = candidate_shape(np.ones((n, n + 1)) if k % 2 else (rng.random((n, n + 1)) < 0.8) | np.eye(n, n + 1, dtype=bool))
        theta, arcs = rng.normal(size=own.n_parts(shape)), n * (n + 1)
        possible = [int(m * (n + 1) + h) for m in range(n) for h in range(n + 1) if h != m + 1]
        rules = (
            (0, Budget(at_most=2), tuple(m * (n + 1) for m in range(n))),  # words below the root
            (1, Budget(exactly=int(rng.integers(0, n))), tuple(rng.permutation(possible)[: arcs // 2].tolist())),
            (2, Logic("or"), tuple(rng.permutation(possible)[:3].tolist())),
        )

        def keeps(y: np.ndarray, rules: Any = rules, shape: Any = shape) -> bool:
            counts = [int(np.isin(parts, own.parts(y, shape)).sum()) for _, _, parts in rules]
            return counts[0] <= 2 and counts[1] == rules[1][1].high and counts[2] >= 1

        scores = [float(theta[own.parts(y, shape)].sum()) for y in own.enumerate(shape) if keeps(y)]
        if scores:
            found = oracle.argmax(theta, (shape, rules))
            assert keeps(found)
            assert float(theta[own.parts(found, shape)].sum()) == pytest.approx(max(scores), abs=1e-9)
        else:
            infeasible += 1
            with pytest.raises(InfeasibleError, match=r"no tree satisfies constraints\["):
                oracle.argmax(theta, (shape, rules))
    assert 0 < infeasible < 10


def test_parsers_of_second_order_keep_rules() -> None:
    """Rules over words in the terms of users; rules that hold already change no tree; the sample that has no tree is named."""
    words, trees = corpus(20, 0, 0.0)
    parser = DependencyParser(order=2, max_iter=3, labelled=False, single_root=False).fit(words, trees)
    few = parser.predict(words, constraints=[Constraint(Budget(at_most=1), [(0, None)]), Constraint(Logic("or"), [(1, 2)], 0)])
    assert all(tree.heads.tolist().count(0) == 1 for tree in few)
    assert few[0].heads[1] == 1
    free = [tree.heads.tolist() for tree in parser.predict(words)]
    kept = parser.predict(words, constraints=[Constraint(Budget(at_least=1), [(0, None)])])
    assert [tree.heads.tolist() for tree in kept] == free
    with pytest.raises(InfeasibleError, match=r"^sample 1: no tree satisfies constraints\[0\], Budget\(at_most=0\)$"):
        parser.predict(words, constraints=[Constraint(Budget(at_most=0), [(0, None)], 1)])


@pytest.mark.slow
def test_real_sentences_are_proven_under_rules(data_dir: Path) -> None:
    """Twenty English sentences of up to 30 words with at most two words below the root: each proven, none more than that."""
    train, test = (read_treebank(data_dir / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu.gz") for part in ("train", "test"))
    parser = DependencyParser(order=2, max_iter=4, projective=False, single_root=False, labelled=False)
    parser.fit(train.take(np.arange(1500)))
    lengths = np.asarray(test.lengths)
    some = test.take(np.flatnonzero((lengths >= 8) & (lengths <= 30))[:20])
    found = parser.predict(some, constraints=[Constraint(Budget(at_most=2), [(0, None)])])
    assert max(tree.heads.tolist().count(0) for tree in found) <= 2
    assert (np.concatenate([tree.heads for tree in found]) == some.heads).mean() > 0.7


def test_pruned_sentences_are_whole_under_constraints() -> None:
    """A parser that keeps one head a word finds a tree that needs another one."""
    words, trees = corpus(30, 0, 0.0)
    parser = DependencyParser(max_iter=3, labelled=False, prune=1).fit(words, trees)
    n = len(words[0])
    found = parser.predict(words[:1], constraints=[Constraint(Budget(exactly=1), [(n, 1)])])[0].heads
    assert found[0] == n


def label_sets() -> tuple[np.ndarray, np.ndarray]:
    """Features and four labels that depend on them."""
    rows = np.random.default_rng(1).normal(size=(40, 3))
    return rows, (rows @ np.random.default_rng(2).normal(size=(3, 4)) > 0).astype(int)


@pytest.mark.parametrize("edges", ["complete", "tree", []])
def test_label_sets_are_the_best_that_keep_the_rules(edges: Any) -> None:
    """Budgets over names and formulas: the best of the 16 label sets, scored from the weights."""
    rows, Y = label_sets()
    names = [["abcd"[k] for k in np.flatnonzero(y)] for y in Y]
    model = MultiLabelMRF(C=1.0, max_iter=20, edges=edges, scale=None).fit(rows, names)
    rules: list[tuple[Constraint, Holds]] = [
        (Constraint(Budget(at_most=2), [None]), lambda y: sum(y) <= 2),
        (Constraint(Logic("or"), ["a", "d"]), lambda y: y[0] or y[3]),
        (Constraint(Logic("implies"), ["b", "c"], 5), lambda y: y[2] >= y[1]),
    ]
    found = model.predict(rows, constraints=[rule for rule, _ in rules])
    n = 4 * 4 * 2  # labels, features with the bias, states
    nodes, pairs = model.coef_[:n].reshape(4, 4, 2), model.coef_[n:].reshape(-1, 2, 2)

    def score(x: np.ndarray, y: Sequence[int]) -> float:
        total = sum(float(np.append(x, 1.0) @ nodes[k][:, y[k]]) for k in range(4))
        return total + sum(float(pairs[e][y[i], y[j]]) for e, (i, j) in enumerate(model.edges_.tolist()))

    for i, x in enumerate(rows):
        listed = sorted(((y, score(x, y)) for y in itertools.product((0, 1), repeat=4)), key=lambda one: -one[1])
        assert score(x, found[i].tolist()) == pytest.approx(best(listed, rules, i)[1], abs=1e-9)


def test_hierarchies_and_graphs_keep_rules() -> None:
    """Label sets stay closed under their hierarchy; nodes of graphs are bound as tokens are."""
    rows, Y = label_sets()
    parents = [-1, 0, 0, 1]
    closed = np.array([[max(y), max(y[1], y[3]), y[2], y[3]] for y in Y])
    found = HierarchicalMultiLabel(C=1.0, max_iter=10, hierarchy=parents, require=None).fit(rows, closed).predict(
        rows, constraints=[Constraint(Budget(at_most=2), [None]), Constraint(Logic("or"), ["1", "2"])]
    )  # fmt: skip
    assert (found.sum(axis=1) == 2).all()
    assert (found[:, 0] == 1).all()
    ring = np.array([(0, 1), (1, 2), (0, 2)])
    graphs = [(x, ring) for x in X if len(x) == 3] * 3
    model = GraphLabeler(max_iter=5).fit(graphs, [["A", "B", "C"]] * 3)
    assert [y.tolist().count("B") for y in model.predict(graphs, constraints=[Constraint(Budget(exactly=2), [(None, "B")])])] == [
        2
    ] * 3


def test_own_structures_are_bound_by_parts_and_positions() -> None:
    """Matchings: rows and columns, or numbers of parts; against all permutations."""
    rng = np.random.default_rng(4)
    samples = [Instance(rng.normal(size=(16, 2)), (4,)) for _ in range(8)]
    truth = [AssignmentOracle().argmax(one.features @ [1.0, -1.0], (4,)) for one in samples]
    model = StructuredPredictor(AssignmentOracle(), max_iter=5).fit(samples, truth)
    rules: list[tuple[Constraint, Holds]] = [
        (Constraint(Logic("implies"), [(0, 1), (2, 3)]), lambda y: y[0] != 1 or y[2] == 3),
        (Constraint(Budget(at_most=1), [0, 5, 10, 15]), lambda y: sum(y[k] == k for k in range(4)) <= 1),
    ]
    found = model.predict(samples, constraints=[rule for rule, _ in rules])
    for i, one in enumerate(samples):
        scores = (one.features @ model.coef_).reshape(4, 4)
        listed = sorted(((y, float(scores[range(4), y].sum())) for y in itertools.permutations(range(4))), key=lambda y: -y[1])
        assert float(scores[range(4), found[i]].sum()) == pytest.approx(best(listed, rules, i)[1], abs=1e-9)


def test_what_excludes_every_output_is_named() -> None:
    """The sample, and constraints none of which could be left out; with labels that are fixed, the one that breaks these."""
    harmless = Constraint(Budget(at_most=4), [(None, "B")])
    three = [Constraint(Budget(exactly=3), [(None, "A")], 3), harmless, Constraint(Budget(at_least=3), [(None, "B")], 3)]
    with pytest.raises(InfeasibleError) as error:
        CHAIN.predict(X, constraints=three)
    both = "constraints[0], Budget(exactly=3) and constraints[2], Budget(at_least=3)"
    assert str(error.value) == f"sample 3: no label sequence satisfies {both}"
    with pytest.raises(InfeasibleError, match=r"sample 4: no label sequence satisfies constraints\[1\], Budget\(at_least=2\)"):
        CHAIN.predict(X, constraints=[harmless, Constraint(Budget(at_least=2), [(None, "A")])])
    with pytest.raises(InfeasibleError, match=r"sample 1: no label sequence satisfies constraints\[0\], Logic\('or'\)"):
        CHAIN.predict(X[:2], fixed=[None, ["A", None, None, None]], constraints=[Constraint(Logic("or"), [(0, "B"), (0, "C")])])
    words, trees = corpus(20, 0, 0.0)
    parser = DependencyParser(max_iter=2, labelled=False).fit(words, trees)
    with pytest.raises(InfeasibleError, match=r"sample 1: no tree satisfies constraints\[0\], Budget\(exactly=2\)"):
        parser.predict(words, constraints=[Constraint(Budget(exactly=2), [(0, None)], 1)])


@pytest.mark.parametrize(("constraint", "message"), [
    (Constraint(Logic("or"), [(7, "A")], 3), r"constraints\[0\], sample 3: no part \(7, 'A'\) among 5 positions"),
    (Constraint(Logic("or"), [(-1, "A")], 3), r"constraints\[0\], sample 3: no part \(-1, 'A'\)"),
    (Constraint(Logic("or"), [(0, "Z")], 1), r"constraints\[0\], sample 1: no part \(0, 'Z'\)"),
    (Constraint(Logic("or"), ["A"], 1), r"constraints\[0\], sample 1: no part 'A'"),
    (Constraint(Logic("or"), [(0, "A")], 99), r"constraints\[0\]: expected Constraint\(.*, sample < 8\), got"),
    (Constraint(Logic("or"), []), r"constraints\[0\], sample 0: expected at least one part, and none twice, got \[\]"),
    (Constraint(Logic("or"), [(0, "A"), (None, "A")], 2), r"sample 2: expected at least one part, and none twice"),
    (Logic("or"), r"constraints\[0\]: expected Constraint\(oracle, parts, sample < 8\), got Logic\('or'\)"),
])  # fmt: skip
def test_wrong_names_and_numbers_are_refused(constraint: Any, message: str) -> None:
    """One line, which names the sample, for labels and positions that there are not, and for what is no constraint."""
    with pytest.raises(DataError, match=message) as error:
        CHAIN.predict(X, constraints=[constraint])
    assert "\n" not in str(error.value)


def test_names_and_arcs_that_there_are_not_are_refused() -> None:
    """Label sets name labels, trees arcs between words of the sentence."""
    rows, Y = label_sets()
    with pytest.raises(DataError, match=r"sample 0: no part 'x'"):
        MultiLabelMRF(max_iter=2).fit(rows, Y).predict(rows, constraints=[Constraint(Logic("or"), ["x"])])
    words, trees = corpus(20, 0, 0.0)
    parser = DependencyParser(max_iter=2, labelled=False).fit(words, trees)
    for arc in ((1, 0), (99, 1), (1, 99), 3):
        with pytest.raises(DataError, match=r"constraints\[0\], sample 1: no part"):
            parser.predict(words, constraints=[Constraint(Logic("or"), [arc], 1)])


def test_what_is_not_proven_is_not_given() -> None:
    """A search that is cut short is an error, never an output that may not be the best."""
    oracle = Constrained(AssignmentOracle())
    oracle.max_nodes = 1
    rng, listed, stopped = np.random.default_rng(5), np.array(list(itertools.permutations(range(5)))), []
    rules = tuple((k, Budget(at_most=3), tuple(rng.permutation(25)[:14].tolist())) for k in range(4))
    for i, theta in enumerate(scores := rng.normal(size=(40, 25))):
        kept = [y for y in listed if all(np.isin(parts, 5 * np.arange(5) + y).sum() <= 3 for _, _, parts in rules)]
        expected = max(float(theta[5 * np.arange(5) + y].sum()) for y in kept)
        try:
            found = oracle.argmax(theta, ((5,), rules))
        except ConvergenceError:
            stopped.append(i)
        else:
            assert float(theta[5 * np.arange(5) + found].sum()) == pytest.approx(expected, abs=1e-9)
    assert 0 < len(stopped) < 40
    inference = Inference(PartFeatures([theta[:, None] for theta in scores]), oracle, [((5,), rules)] * 40)
    with pytest.raises(ConvergenceError, match=f"^sample {stopped[0]}: .* subproblems"):
        inference.decode(np.ones(1))


def test_how_long_is_searched_is_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a search that is cut short names the number to raise; raised, the best output is found."""
    rng = np.random.default_rng(5)
    samples = [Instance(rng.normal(size=(25, 2)), (5,)) for _ in range(20)]
    truth = [AssignmentOracle().argmax(one.features @ [1.0, -1.0], (5,)) for one in samples]
    model = StructuredPredictor(AssignmentOracle(), max_iter=5).fit(samples, truth)
    rules = [Constraint(Budget(at_most=2), rng.permutation(25)[:14].tolist()) for _ in range(4)]
    monkeypatch.setattr(constrained, "MAX_SUBPROBLEMS", 1)
    with pytest.raises(ConvergenceError, match=r"after 1 subproblems; .* or raise structpred\.models\.constrained\.MAX_SUBPR"):
        model.predict(samples, constraints=rules)
    monkeypatch.setattr(constrained, "MAX_SUBPROBLEMS", 1000)
    assert len(model.predict(samples, constraints=rules)) == len(samples)
