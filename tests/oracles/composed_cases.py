"""Compositions of seven kinds, small enough to list: of landed oracles and of members that are listed here."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from structpred.core.oracle import Oracle
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.composed import Composed, Member
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.knapsack import KnapsackOracle, knapsack_shape


class Counted(Oracle):
    """An oracle that counts the instances it answers."""

    def __init__(self, inner: Oracle) -> None:
        self.inner, self.calls = inner, 0

    def n_parts(self, shape: Any) -> int:
        return self.inner.n_parts(shape)

    def argmax(self, scores: Any, shape: Any) -> Any:
        self.calls += 1
        return self.inner.argmax(scores, shape)

    def parts(self, labels: Any, shape: Any) -> Any:
        return self.inner.parts(labels, shape)

    def enumerate(self, shape: Any) -> Any:
        return self.inner.enumerate(shape)  # type: ignore[attr-defined]

    def example_shapes(self) -> Any:  # type: ignore[override]
        return self.inner.example_shapes()


def listed(outputs: Any, parts: Any, n_parts: Any) -> EnumeratedOracle:
    """A member by its outputs."""
    return EnumeratedOracle(outputs, parts, n_parts, example_shapes=[])


def pairs() -> EnumeratedOracle:
    """Two labels out of (n, m) and their pair: parts n + m + n * m."""
    return listed(
        lambda shape: (np.array(y) for y in itertools.product(*map(range, shape))),
        lambda y, shape: np.array([y[0], shape[0] + y[1], sum(shape) + y[0] * shape[1] + y[1]]),
        lambda shape: sum(shape) + shape[0] * shape[1],
    )


def numbered(first: int, *sizes: int) -> Any:
    """An array of part numbers from `first` on."""
    return first + np.arange(int(np.prod(sizes))).reshape(sizes)


class Family(Composed):
    """Compositions whose members are known by name."""

    def __init__(self, max_nodes: int | None = 1000) -> None:
        super().__init__([], max_nodes=max_nodes)
        self.oracles_by_name = {name: Counted(one) for name, one in self.kinds().items()}

    def kinds(self) -> dict[str, Oracle]:
        raise NotImplementedError

    def one(self, name: str, shape: Any, *parts: Any) -> Member:
        return Member(self.oracles_by_name[name], shape, np.concatenate([np.ravel(p) for p in parts]).astype(np.int64))

    @property
    def calls(self) -> int:
        return sum(one.calls for one in self.oracles_by_name.values())


class SkipChain(Family):
    """shape = (T, L, links): a chain, and label pairs of linked positions. Labels are the chain's, which determine the rest."""

    def kinds(self) -> dict[str, Oracle]:
        return {"chain": ChainOracle(), "pairs": pairs()}

    def members(self, shape: Any) -> list[Member]:
        t, k, links = shape
        unary, between = numbered(0, t, k), numbered(t * k, k, k)
        members = [self.one("chain", (t, k), unary, between)]
        for e, (i, j) in enumerate(links):
            members.append(self.one("pairs", (k, k), unary[i], unary[j], numbered(t * k + k * k * (1 + e), k, k)))
        return members

    def enumerate(self, shape: Any) -> Iterator[Any]:
        return (np.array(y) for y in itertools.product(range(shape[1]), repeat=shape[0]))

    def label_grid(self, shape: Any) -> tuple[int, int]:  # type: ignore[override]
        return shape[0], shape[1]

    @staticmethod
    def example_shapes() -> list[Any]:  # type: ignore[override]
        return [(2, 2, ()), (4, 2, ((0, 2), (1, 3))), (4, 3, ((0, 3),))]


class BudgetChain(Family):
    """shape = (T, L, budgets): label l at most budgets[l] times (None: any number)."""

    def kinds(self) -> dict[str, Oracle]:
        return {"chain": ChainOracle(), "budget": KnapsackOracle()}

    def members(self, shape: Any) -> list[Member]:
        t, k, budgets = shape
        unary = numbered(0, t, k)
        members = [self.one("chain", (t, k), unary, numbered(t * k, k, k))]
        for label, most in enumerate(budgets):
            if most is not None:
                members.append(self.one("budget", knapsack_shape(np.ones(t), most), unary[:, label]))
        return members

    def enumerate(self, shape: Any) -> Iterator[Any]:
        t, k, budgets = shape
        for y in itertools.product(range(k), repeat=t):
            if all(most is None or y.count(label) <= most for label, most in enumerate(budgets)):
                yield np.array(y)

    def label_grid(self, shape: Any) -> tuple[int, int]:  # type: ignore[override]
        return shape[0], shape[1]

    @staticmethod
    def example_shapes() -> list[Any]:  # type: ignore[override]
        return [(2, 2, (1, None)), (4, 2, (2, 3)), (4, 3, (1, None, 2))]


class TwoChains(Family):
    """shape = (T, L): two chains over T positions, and the pairs of their labels at each. Labels: one chain's, the other's."""

    def kinds(self) -> dict[str, Oracle]:
        return {"chain": ChainOracle(), "pairs": pairs()}

    def members(self, shape: Any) -> list[Member]:
        t, k = shape
        size = t * k + k * k
        members = [self.one("chain", shape, numbered(first, size)) for first in (0, size)]
        for i in range(t):
            both = numbered(i * k, k), numbered(size + i * k, k)
            members.append(self.one("pairs", (k, k), *both, numbered(2 * size + i * k * k, k, k)))
        return members

    def output_of(self, answers: Any, shape: Any) -> Any:
        return np.concatenate(answers[:2])

    def parts(self, labels: Any, shape: Any) -> Any:
        t, k = shape
        if labels.shape != (2 * t,):
            raise ValueError("two chains")
        first, second = ChainOracle().parts(labels[:t], shape), ChainOracle().parts(labels[t:], shape)
        size = t * k + k * k
        return np.concatenate((first, size + second, 2 * size + np.arange(t) * k * k + labels[:t] * k + labels[t:]))

    def enumerate(self, shape: Any) -> Iterator[Any]:
        return (np.array(y) for y in itertools.product(range(shape[1]), repeat=2 * shape[0]))

    @staticmethod
    def example_shapes() -> list[Any]:  # type: ignore[override]
        return [(1, 2), (2, 2)]


class SecondOrder(Family):
    """shape = (n, grandparents): a tree, and for each word an automaton of its head and its modifiers. Labels: heads.

    Arc (h, m) is part (m - 1) * (n + 1) + h; then siblings (h, s, m, side), s = h for the first, m = n + 1 for the end; then
    grandparents (g, h, m).
    """

    def kinds(self) -> dict[str, Oracle]:
        return {"tree": ArborescenceOracle(), "head": listed(self.local_outputs, self.local_parts, self.local_size)}

    @staticmethod
    def numbers(shape: Any) -> tuple[Any, dict[tuple[int, ...], int], dict[tuple[int, ...], int]]:
        n, grand = shape
        arcs = numbered(0, n, n + 1)
        first = n * (n + 1)
        siblings = {}
        for h in range(n + 1):
            for side in (0, 1):
                inner = [m for m in range(1, n + 1) if (m > h) == bool(side) and m != h]
                chain = inner if side else inner[::-1]
                for a, s in enumerate([h, *chain]):
                    for m in [*chain[a:], n + 1]:
                        siblings[h, s, m, side] = first + len(siblings)
        first += len(siblings)
        seconds = [(g, h, m) for h in range(1, n + 1) for g in range(n + 1) for m in range(1, n + 1) if len({g, h, m}) == 3]
        return arcs, siblings, {key: first + k for k, key in enumerate(seconds)} if grand else {}

    @staticmethod
    def on_sides(h: int, mods: Any, n: int) -> list[tuple[int, int, int, int]]:
        found = []
        for side in (0, 1):
            row = [m for m in mods if (m > h) == bool(side)]
            row = row if side else row[::-1]
            found += [(h, s, m, side) for s, m in itertools.pairwise([h, *row, n + 1])]
        return found

    @classmethod
    def held(cls, shape: Any) -> dict[Any, int]:
        """What the automaton of the word shape[2] holds: its own numbers."""
        n, grand, h = shape
        _, siblings, seconds = cls.numbers((n, grand))
        keys: list[Any] = [("in", g) for g in range(n + 1) if h and g != h]
        keys += [("out", m) for m in range(1, n + 1) if m != h]
        keys += [key for key in siblings if key[0] == h] + [key for key in seconds if key[1] == h]
        return {key: k for k, key in enumerate(keys)}

    def local_size(self, shape: Any) -> int:
        return len(self.held(shape))

    def local_outputs(self, shape: Any) -> Iterator[Any]:
        n, _, h = shape
        for g in [g for g in range(n + 1) if g != h] if h else [-1]:
            others = [m for m in range(1, n + 1) if m not in (g, h)]
            for size in range(len(others) + 1):
                for mods in itertools.combinations(others, size):
                    if h or size == 1:  # the root has one child
                        yield np.array([g, *mods])

    def local_parts(self, y: Any, shape: Any) -> Any:
        n, grand, h = shape
        at, (g, *mods) = self.held(shape), y.tolist()
        keys: list[Any] = [("in", g)] if h else []
        keys += [("out", m) for m in mods] + self.on_sides(h, mods, n)
        keys += [(g, h, m) for m in mods] if h and grand else []
        return np.array([at[key] for key in keys], dtype=np.int64)

    def members(self, shape: Any) -> list[Member]:
        n, grand = shape
        arcs, siblings, seconds = self.numbers(shape)
        members = [self.one("tree", (n,), arcs)]
        for h in range(n + 1):
            parts = []
            for key in self.held((n, grand, h)):
                if key[0] == "in":
                    parts.append(arcs[h - 1, key[1]])
                elif key[0] == "out":
                    parts.append(arcs[key[1] - 1, h])
                else:
                    parts.append(siblings[key] if len(key) == 4 else seconds[key])
            members.append(self.one("head", (n, grand, h), np.array(parts)))
        return members

    def parts(self, labels: Any, shape: Any) -> Any:
        n, grand = shape
        _, siblings, seconds = self.numbers(shape)
        parts = ArborescenceOracle().parts(labels, (n,)).tolist()
        for h in range(n + 1):
            mods = [m for m in range(1, n + 1) if labels[m - 1] == h]
            parts += [siblings[key] for key in self.on_sides(h, mods, n)]
            parts += [seconds[int(labels[h - 1]), h, m] for m in mods] if h and grand else []
        return np.array(parts)

    def enumerate(self, shape: Any) -> Any:
        return ArborescenceOracle().enumerate((shape[0],))

    @staticmethod
    def example_shapes() -> list[Any]:  # type: ignore[override]
        return [(1, True), (2, True), (3, True)]


class TaggedTree(Family):
    """shape = (n, tags): a tree, a tag for each word, and scores of an arc with its two tags. Labels: heads, then tags.

    A member for each arc between words holds the arc, both tags, and their pair if the arc is on.
    """

    def kinds(self) -> dict[str, Oracle]:
        def outputs(shape: Any) -> Iterator[Any]:
            return (np.array(y) for y in itertools.product((0, 1), range(shape[0]), range(shape[0])))

        def parts(y: Any, shape: Any) -> Any:
            (on, a, b), (k,) = y.tolist(), shape
            return np.array([1 + a, 1 + k + b, *([0, 1 + 2 * k + a * k + b] if on else [])])

        return {"tree": ArborescenceOracle(), "arc": listed(outputs, parts, lambda shape: 1 + 2 * shape[0] + shape[0] ** 2)}

    @staticmethod
    def words(shape: Any) -> list[tuple[int, int]]:
        return [(h, m) for m in range(1, shape[0] + 1) for h in range(1, shape[0] + 1) if h != m]

    def members(self, shape: Any) -> list[Member]:
        n, k = shape
        arcs, tags = numbered(0, n, n + 1), numbered(n * (n + 1), n, k)
        members = [self.one("tree", (n,), arcs)]
        for e, (h, m) in enumerate(self.words(shape)):
            first = n * (n + 1) + n * k + e * k * k
            members.append(self.one("arc", (k,), arcs[m - 1, h], tags[h - 1], tags[m - 1], numbered(first, k, k)))
        return members

    def output_of(self, answers: Any, shape: Any) -> Any:
        n, _ = shape
        tags = np.zeros(n, np.int64)
        for (h, m), y in zip(self.words(shape), answers[1:], strict=True):
            tags[h - 1], tags[m - 1] = y[1], y[2]
        return np.concatenate((answers[0], tags))

    def parts(self, labels: Any, shape: Any) -> Any:
        n, k = shape
        if labels.shape != (2 * n,) or not ((labels[n:] >= 0) & (labels[n:] < k)).all():
            raise ValueError("heads and tags")
        parts = [*ArborescenceOracle().parts(labels[:n], (n,)), *(n * (n + 1) + np.arange(n) * k + labels[n:])]
        for e, (h, m) in enumerate(self.words(shape)):
            if labels[m - 1] == h:
                parts.append(n * (n + 1) + n * k + e * k * k + labels[n + h - 1] * k + labels[n + m - 1])
        return np.array(parts)

    def enumerate(self, shape: Any) -> Iterator[Any]:
        n, k = shape
        for heads in ArborescenceOracle().enumerate((n,)):
            for tags in itertools.product(range(k), repeat=n):
                yield np.concatenate((heads, np.array(tags)))

    @staticmethod
    def example_shapes() -> list[Any]:  # type: ignore[override]
        return [(2, 2), (3, 2), (2, 3)]


LINKS = ((0, 2), (1, 4), (2, 5), (0, 4))
#: family, shape, calls a member until the bound is within 0.01 % of the LP's value (a prototype of the bundle method)
KINDS: dict[str, tuple[type[Family], Any, int]] = {
    "grandparents 4": (SecondOrder, (4, True), 9),
    "grandparents 5": (SecondOrder, (5, True), 13),
    "siblings 5": (SecondOrder, (5, False), 10),
    "skip chain": (SkipChain, (6, 3, LINKS), 8),
    "two chains": (TwoChains, (4, 3), 6),
    "budgets": (BudgetChain, (7, 3, (2, None, 3)), 7),
    "tagged tree": (TaggedTree, (4, 2), 12),
}


def best_of_all(oracle: Family, scores: Any, shape: Any) -> float:
    """The best output's score, by listing."""
    return float((EnumeratedOracle.of(oracle).table(shape).counts @ scores).max())


def relaxed_value(oracle: Family, scores: Any, shape: Any) -> float:
    """max theta . x where the parts of each member are a mixture of its outputs, by HiGHS."""
    return float(scores @ relaxed_point(oracle, scores, shape))


def relaxed_point(oracle: Family, scores: Any, shape: Any) -> Any:
    """The x of that maximum."""
    from scipy import sparse
    from scipy.optimize import linprog

    members, n = oracle.members(shape), len(scores)
    rows, costs = [], [-scores]
    tables = [EnumeratedOracle.of(one.oracle).table(one.shape).counts for one in members]
    widths = [len(scores), *(table.shape[0] for table in tables)]
    for k, (one, table) in enumerate(zip(members, tables, strict=True)):
        blocks = [sparse.csr_array((len(one.parts), width)) for width in widths]
        at = np.arange(len(one.parts))
        blocks[0] = sparse.csr_array((-np.ones(len(at)), (at, one.parts)), shape=(len(at), n))
        blocks[k + 1] = table.T
        ones = [sparse.csr_array((1, width)) for width in widths]
        ones[k + 1] = sparse.csr_array(np.ones((1, table.shape[0])))
        rows += [sparse.hstack(blocks), sparse.hstack(ones)]
        costs.append(np.zeros(table.shape[0]))
    sides = np.concatenate([np.append(np.zeros(len(one.parts)), 1.0) for one in members])
    bounds = [(None, None)] * n + [(0.0, None)] * sum(widths[1:])
    found = linprog(np.concatenate(costs), A_eq=sparse.vstack(rows).tocsr(), b_eq=sides, bounds=bounds, method="highs")
    assert found.status == 0
    return found.x[:n]
