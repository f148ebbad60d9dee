"""Branch and bound over the labels, depth first: finds good labels early, and proves the best where bounds are strong."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import ParameterError
from structpred.nonconvex.problem import Inner, SemiSupervisedProblem
from structpred.nonconvex.search import Level, Search, Solution, Solver

#: how much of the objective "no labels are better" leaves out where a proof is called global
EXACT = 1e-6


class _Node(NamedTuple):
    """A decision that was not followed yet: which point, its label, the depth, the parent's solution."""

    depth: int
    point: int
    label: int
    parent: Inner


@dataclass(frozen=True)
class BranchAndBound(Solver):
    """Depth-first search for the best labels, with the objective of the labels decided so far as the lower bound.

    Points that are not decided are left out of the bound. The next one is that with the largest |h|; the label of its sign is
    tried first, so the first dive lets labels spread from the labelled points, and the wrong label is often refused while its
    inner problem is still being solved. Memory: a solution, O(n), for each depth.

    max_inner: the most inner problems; the best labels so far are then returned, with the least bound of what was not looked at.
    eps: labels are "eps-global" when no others are better by more than this share; 0: "global", proven to a millionth.

    Chapelle, Sindhwani & Keerthi 2006, with warm starts and bounds during the solution of inner problems.
    """

    name: ClassVar[str] = "branch_and_bound"
    max_inner: int = 100_000
    eps: float = 0.0

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        if not 0.0 <= self.eps < 1.0:
            raise ParameterError(f"BranchAndBound: eps must be in [0, 1), got {self.eps!r}")
        if start is not None:
            search.offer(*search.climb(start), "start")
        tree = whole_tree(search, self.eps)
        tree.run(self.max_inner)
        return search.solution(tree.level, tree.bound(), nodes=tree.nodes, deepest=tree.deepest)


class Tree:
    """The open decisions of a depth-first search, which offers every leaf to a `Search`.

    labels: (u,) +1 or -1 of points that keep theirs, 0 of those to be decided. root: the solution with these labels.
    rng: |h| is multiplied by random factors between 0.5 and 1 where the next point is chosen.
    """

    def __init__(self, search: Search, eps: float, labels: Integers, root: Inner, rng: np.random.Generator | None = None) -> None:
        self.search, self.eps = search, eps
        self.nodes, self.deepest = 0, 0
        self.pruned_bound = np.inf  # the least bound of all that was left out
        self.labels = labels.copy()  # of the decided points, else 0
        self._path: list[list[int]] = []  # the points decided at each depth
        self._rng = rng
        self.open: list[_Node] = [_Node(0, -1, 0, root)]

    @property
    def level(self) -> Level:
        """What is proven of the best labels of the search, if this tree holds all labels."""
        if self.open:
            return "local"
        return "eps-global" if self.eps > EXACT else "global"

    def bound(self) -> float:
        """What no labels can be below."""
        return float(min([self.pruned_bound, *(node.parent.objective for node in self.open)]))

    def run(self, until: int) -> None:
        """Follow decisions until none is open, or until this many inner problems were solved in the whole search."""
        while self.open and self.search.n_inner < until:
            self._step(self.open.pop())

    def _step(self, node: _Node) -> None:
        """Follow one decision: prune it, end in a leaf, or branch."""
        search, inner = self.search, node.parent
        cutoff = search.objective * (1.0 - self.eps)
        if inner.objective >= cutoff:
            self.pruned_bound = min(self.pruned_bound, inner.objective)
            return
        self._decide(node)
        self.nodes += 1
        self.deepest = max(self.deepest, node.depth)
        inner = search.solve((self.labels > 0).astype(float), (self.labels < 0).astype(float), start=inner, stop_at=cutoff)
        if inner.objective >= cutoff:
            self.pruned_bound = min(self.pruned_bound, inner.objective)
            return
        undecided = np.flatnonzero(self.labels == 0)
        if len(undecided) == 0:  # the labels, and what climbing makes of them
            p = (self.labels > 0).astype(np.float64)
            if search.offer(p, inner, "leaf"):
                search.offer(*search.climb(p, inner), "leaf, climbed")
            else:  # as good as the best, or worse
                self.pruned_bound = min(self.pruned_bound, search.objective * (1.0 - self.eps))
            return
        point, label = search.problem.next_decision(inner, undecided, self._rng)
        self.open.append(_Node(node.depth + 1, point, -label, inner))
        self.open.append(_Node(node.depth + 1, point, label, inner))

    def _decide(self, node: _Node) -> None:
        """The labels of the path to this node: its own, and those that the balance leaves no choice."""
        keep = max(node.depth - 1, 0)
        for points in self._path[keep:]:
            self.labels[points] = 0
        del self._path[keep:]
        decided = []
        if node.label:
            decided.append(node.point)
            self.labels[node.point] = node.label
        problem = self.search.problem
        if problem.positives is not None:
            for label, most in ((1, problem.positives), (-1, problem.u - problem.positives)):
                if int((self.labels == label).sum()) == most:
                    rest = np.flatnonzero(self.labels == 0)
                    self.labels[rest] = -label
                    decided += rest.tolist()
        if node.label:
            self._path.append(decided)


def whole_tree(search: Search, eps: float = 0.0) -> Tree:
    """The tree of all labels within the balance."""
    return Tree(search, max(eps, EXACT), np.zeros(search.problem.u, np.int64), search.root())


class BlockBound(NamedTuple):
    """value: no labels within the balance have a lower objective. n_inner: inner problems. closed: whether all blocks were solved
    to the end; else a larger `max_inner` may raise the value."""

    value: float
    n_inner: int
    closed: bool


def block_bound(problem: SemiSupervisedProblem, n_blocks: int, max_inner: int = 10_000, seed: int = 0) -> BlockBound:
    """The bound that the concavity of J gives for a random partition of the unlabelled points into blocks B_1, ..., B_m.

    J(plus, minus), the least objective for weights of the labels +1 and -1, is a minimum of functions that are linear in the
    weights, so concave wherever no weight is negative. The weights of labels p are the mean of m points: p times m on B_j, and
    zero elsewhere. So

        J(p) >= 1/m sum_j J(m p on B_j, 0 elsewhere) >= 1/m sum_j phi_j(k_j),

    with phi_j(k) the least objective of labels of B_j alone, k of them +1, for the weight m C2: branch and bound closes for few
    points of a large weight. The least sum over k_1 + ... + k_m = `positives` is found by dynamic programming. One block is the
    problem itself; with u blocks each point has the weight u C2 (cuts at a vertex of the box, in contrast, leave out that vertex
    alone, for beyond its neighbours F is infinite).

    max_inner: the most inner problems of a block and a count; where they do not suffice the bound of the open tree counts.

    >>> problem = SemiSupervisedProblem(np.eye(4), np.array([1, -1, 0, 0]), 1.0, 1.0, positives=1)
    >>> print(round(block_bound(problem, 1).value, 4), round(block_bound(problem, 2).value, 4))
    2.0 1.25
    """
    if problem.kind != SemiSupervisedProblem.kind:
        raise ParameterError(f"block_bound: expected unlabelled points, got {problem.kind}")
    if not 1 <= n_blocks <= max(1, problem.u):
        raise ParameterError(f"n_blocks: expected 1 to {problem.u}, the number of unlabelled points, got {n_blocks!r}")
    labelled, order = np.flatnonzero(problem.y != 0), np.random.default_rng(seed).permutation(problem.unlabelled)
    total, solver, n_inner, closed = np.zeros(1), BranchAndBound(max_inner), 0, True
    for block in np.array_split(order, n_blocks):
        part = problem.subset(np.sort(np.concatenate([labelled, block])), n_blocks * problem.C2)
        free = problem.positives is None
        found = [solver.solve(part if free else part.with_positives(k)) for k in range(1 if free else part.u + 1)]
        before, own = total, np.array([one.lower_bound for one in found])
        total = np.full(len(before) + len(own) - 1, np.inf)
        for i, value in enumerate(before):  # total_k = min over i + j = k of before_i + own_j
            np.minimum(total[i : i + len(own)], value + own, out=total[i : i + len(own)])
        n_inner += sum(one.n_inner for one in found)
        closed &= all(one.level == "global" for one in found)
    value = total[0] if problem.positives is None else total[int(problem.positives)]
    return BlockBound(float(value) / n_blocks, n_inner, closed)
