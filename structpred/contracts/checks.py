"""Contract checks, for oracles and feature maps: every broken rule is explained, with the likely cause.

Each of a map's faster calls must give, for every sample, what `scores` and `adjoint` give.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from structpred.contracts.capabilities import examine_capabilities
from structpred.contracts.engine import Examiner, OracleReport, Report, brief, enumerated, place, pooled, reported
from structpred.contracts.marginals import examine_marginals
from structpred.contracts.maximum import RANDOM, ZERO, Answer, ShapeCase, examine_maximum
from structpred.contracts.rules import examine_batch, examine_memory, examine_other_batches, examine_shape
from structpred.core.feature_map import FeatureMap
from structpred.core.group_scales import GroupScales
from structpred.core.oracle import Oracle, Shape
from structpred.core.sparse import SparseVector
from structpred.core.stand_ins import stand_in
from structpred.core.types import AnyArray, Floats
from structpred.errors import OracleError

#: after this number of calls of the oracle the shapes that are left are tried with few scores
MAX_CALLS = 200_000
#: samples of a feature map that are tried, and their parts in all; the first few are tried whatever their size
MOST_SAMPLES, MOST_PARTS = 1_000, 200_000
#: neighbours that are tried in one call, and the plain calls that must be as they were written for fast ones to be used
BLOCK, _SCORES, _ADJOINT = 64, ("scores", "fixed_scores", "n_parts"), ("adjoint", "n_parts")


class FastCalls:
    """Scores, random part counts and their joint features of the samples `rows`, which ascend, and what is compared with them."""

    def __init__(self, examiner: Examiner, features: FeatureMap, rows: Sequence[int]) -> None:
        self.examiner, self.features, self.rows = examiner, features, np.asarray(rows)
        self.w, self.room = examiner.rng.normal(size=features.dim).astype(features.dtype), np.zeros(features.dim, features.dtype)
        self.theta: dict[int, Floats] = {}
        self.fixed: dict[int, Floats | float] = {}
        self.mu: dict[int, Floats] = {}
        self.phi: dict[int, SparseVector] = {}
        self.tol = 1e-9 if features.dtype == np.float64 else 1e-5

    def ask(self, call: Callable[..., Any], i: int, *args: Any) -> Any:
        """What a call gives."""
        return self.examiner.ask(call, f"sample {i}", *args)

    def same(self, rule: str, found: Any, wanted: Any, i: int, tol: float = 1e-9) -> None:
        """Compare numbers with what the plain calls give."""
        cause = "it knows other data, another factor or another numbering than scores and adjoint"
        self.examiner.near(rule, found, wanted, f"sample {i}", "what the plain calls give", cause, tol)

    def examine(self) -> None:
        """All of them, a few neighbours at a time."""
        kept = self.w.copy()
        if hasattr(self.features, "corner_calls"):
            self.examiner.skip("corner_calls", "it needs the labels of an oracle; training compares two sums of each step")
        for run in np.split(self.rows, np.flatnonzero(np.diff(self.rows) != 1) + 1):
            for k in range(0, len(run), BLOCK):
                for i in run[k : k + BLOCK].tolist():
                    self.examine_plain(i)
                self.same("flush", [self.room.any()], [False], int(run[k]))
                self.examine_block(int(run[k]), [*run[k : k + BLOCK].tolist()])
        if len(self.rows) == len(self.features):
            self.examine_all(len(self.rows))
        if (take := stand_in(self.features, "take", ("adjoint", "__len__", *_SCORES))) is not None:
            rows = self.examiner.rng.permutation(self.rows)[:BLOCK]
            some = self.ask(take, 0, rows)
            for k, i in enumerate(rows.tolist()):
                self.same("take", self.ask(some.scores, i, self.w, k), self.theta[i], i)
        self.same("mutated input", self.w, kept, 0, 0.0)

    def examine_plain(self, i: int) -> None:
        """<mu, scores> = <w, adjoint(mu)>; and `spread` and `flush`, which all maps have."""
        f, w, rng, expect = self.features, self.w, self.examiner.rng, self.examiner.insist
        theta = self.examiner.numbers(self.ask(f.scores, i, w, i), f.n_parts(i), f"sample {i}", "scores")
        fixed, scratch = self.ask(f.fixed_scores, i, i), self.ask(f.scratch, i)
        mu = rng.normal(size=len(theta)) * (rng.random(len(theta)) < 0.5)
        at = np.flatnonzero(mu)
        phi = SparseVector(*self.ask(f.adjoint, i, i, at, mu[at]))
        inside, where = not len(phi.indices) or 0 <= phi.indices.min() <= phi.indices.max() < f.dim, f"sample {i}"
        expect("sparse", inside, where, f"indices from 0, below {f.dim}", phi.indices, "a feature number that is off")
        products = w[phi.indices].astype(np.float64) * phi.values
        tol = self.tol * (1.0 + float(np.abs(mu) @ np.abs(theta) + np.abs(products).sum()))
        cause = "scores and adjoint use other features, or random ones (dropout)"
        self.examiner.near("adjoint", products.sum(), mu @ theta, where, "<w, adjoint(mu)> = <mu, scores(w)>", cause, tol)
        self.theta[i], self.fixed[i], self.mu[i], self.phi[i] = theta, 0.0 if fixed is None else fixed, mu, phi
        self.same("spread", self.ask(f.spread, i, i, mu.copy(), scratch), phi.values @ phi.values, i)
        self.ask(f.flush, i, i, scratch, 0.5, self.room)
        self.same("flush", [*self.room[phi.indices], scratch.any()], [*0.5 * phi.values, 0.0], i, self.tol)
        self.room[phi.indices] = 0.0

    def examine_block(self, first: int, rows: list[int]) -> None:
        """The calls for neighbours, and for groups of weights."""
        f, w, last = self.features, self.w, first + len(rows)
        places = np.cumsum([0, *(len(self.theta[i]) for i in rows)], dtype=np.int64)
        if (call := stand_in(f, "score_block", _SCORES)) is not None:
            out = np.empty(places[-1])
            self.ask(call, first, w, 0.5, first, last, places, out)
            self.same("score_block", out, np.concatenate([0.5 * self.theta[i] + self.fixed[i] for i in rows]), first, self.tol)
        if (call := stand_in(f, "adjoint_block", _ADJOINT)) is not None:
            at, own = [np.flatnonzero(self.mu[i]) for i in rows], [self.phi[i] for i in rows]
            counts = np.concatenate([self.mu[i][on] for i, on in zip(rows, at, strict=True)])
            found = self.ask(call, first, first, np.concatenate(at), counts, np.cumsum([0, *map(len, at)], dtype=np.int64))
            wanted = [np.concatenate(pieces) for pieces in zip(*own, strict=True)], np.cumsum([0, *(len(phi[0]) for phi in own)])
            for answer, right in zip(found, (*wanted[0], wanted[1]), strict=True):
                self.same("adjoint_block", answer, right, first)
        if (call := stand_in(f, "group_scores", ("scores", "n_parts"))) is not None:
            factors = self.examiner.rng.choice([0.0, 0.5, 2.0], len(f.groups) - 1)  # exact in float32
            scaled = (np.repeat(factors, np.diff(f.groups)) * w).astype(w.dtype)
            for i in rows:
                found = self.ask(call, i, w, GroupScales(f.groups, factors), i)
                self.same("group_scores", found, self.ask(f.scores, i, scaled, i), i, self.tol)

    def examine_all(self, n: int) -> None:
        """The calls for all samples."""
        f, out, wanted, coefs = self.features, np.zeros(self.features.dim), np.zeros(self.features.dim), np.linspace(-1.0, 2.0, n)
        places, add = np.cumsum([0, *map(len, self.mu.values())], dtype=np.int64), stand_in(f, "add_spread", _ADJOINT)
        for i, coef in enumerate(coefs.tolist()):
            wanted[self.phi[i].indices] += coef * self.phi[i].values
            if add is not None:
                self.ask(add, i, i, self.mu[i], coef, out)
        mu: AnyArray = np.concatenate([*self.mu.values()])
        self.same("total", self.ask(f.total, 0, mu, places, coefs), wanted, 0)
        if add is not None:
            self.same("add_spread", out, wanted, 0)
        if (call := stand_in(f, "with_scores", _SCORES)) is not None:
            added = [np.eye(1, len(theta))[0] for theta in self.theta.values()]  # one part: some maps take no others
            if (more := self.ask(call, 0, added)) is not None:
                for i in range(min(n, BLOCK)):
                    self.same("with_scores", self.ask(more.fixed_scores, i, i), self.fixed[i] + added[i], i)


def check_oracle(
    oracle: Oracle, *, shapes: Iterable[Shape] | None = None, n_random: int = 20, seed: int = 0, max_calls: int | None = None
) -> OracleReport:
    """Check an oracle against its contract on small shapes.

    Where the oracle has `enumerate`, every answer is compared with all outputs (up to 20,000 per shape), else with the outputs
    that it gave for other scores. `parts` is also given labels that are not an output. Optional methods are checked, too. With
    ``exact = False`` a missed maximum is not a fault.

    Parameters
    ----------
    oracle : Oracle
        The oracle to check.
    shapes : iterable, optional
        The shapes to try; None: `oracle.example_shapes()`.
    n_random : int
        How many score vectors of each kind are tried for each shape.
    seed : int
        Seed of the random scores.
    max_calls : int, optional
        As `fit` checks, for slow oracles: after that many calls the rest is not checked, half of them for argmax alone. Shapes
        with more outputs count as without `enumerate`. `parts` gets no labels that are no output.

    Returns
    -------
    OracleReport
        What was checked, how often, and what could not be checked and why.

    Raises
    ------
    OracleError
        If a rule is broken. It lists every broken rule with the shape, what was expected, what came and the likely cause.

    Examples
    --------
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> print(check_oracle(MulticlassOracle()).checked["wrong argmax"] > 100)
    True
    """
    if isinstance(oracle, type):
        raise OracleError(f"expected an oracle, got its class {oracle.__name__}: give an instance, {oracle.__name__}(...)")
    examiner = Examiner(oracle, np.random.default_rng(seed), max_calls)
    tried: list[Shape] = []
    cases: list[ShapeCase] = []
    with suppress(OracleError):
        tried = _shapes(examiner, shapes)
        for shape in tried:
            if max_calls is not None and examiner.calls > max_calls // 2:
                examiner.skip(f"{place(shape)}", f"more than {max_calls // 2} calls of the oracle for the shapes before")
                continue
            many = examiner.checked["no exceptions"] > MAX_CALLS
            if many:
                examiner.skip(
                    f"most scores of {place(shape)}", f"more than {MAX_CALLS} calls of the oracle for the shapes before"
                )
            if case := examine_shape(examiner, shape, 1 if many else n_random):
                cases.append(case)
    examine_maximum(examiner, cases)
    examine_memory(examiner, cases)
    examine_batch(examiner, cases)
    examine_other_batches(examiner, cases)
    examine_capabilities(examiner, cases)
    seconds = float(np.median(examiner.cpu_seconds)) if examiner.cpu_seconds else 0.0
    return OracleReport(**vars(reported(examiner, OracleError, tried)), argmax_seconds=seconds)


def check_marginals(oracle: Oracle, shapes: Sequence[Shape], *, seed: int = 0) -> Report:
    """Check `marginals`, and batches of them, on 60 shapes of a training set: in about 230 calls, whatever their size.

    log_z must be at least the score of argmax's output, mu the difference quotient of log_z (on ten); where enumerate lists at
    most 300 outputs both are compared with sums over these. Batches must equal their loops. OracleError has each broken rule.
    """
    rng = np.random.default_rng(seed)
    examiner, cases = Examiner(oracle, rng), []
    tried = [shapes[k] for k in rng.permutation(len(shapes))[:60].tolist()]
    for k, shape in enumerate(tried):
        with suppress(OracleError):
            n_parts = int(examiner.call("n_parts", place(shape), shape))
            thetas = rng.normal(size=(2, n_parts))
            found = [examiner.call("argmax", place(shape), theta, shape).copy() for theta in thetas]
            found = [examiner.labels(labels, place(shape), "argmax") for labels in found]
            own = [(labels, examiner.parts(labels, shape, n_parts, given_by="argmax")) for labels in found]
            kinds = RANDOM if k < 10 else ZERO, ZERO
            answers = [Answer(kind, theta, *one) for kind, theta, one in zip(kinds, thetas, own, strict=True)]
            case = ShapeCase(enumerated(examiner, shape, n_parts, 300) or pooled(shape, n_parts, own), answers)
            for answer in answers:
                examine_marginals(examiner, case.space, answer, f"{place(shape)}, random scores")
            cases.append(case)
    examine_other_batches(examiner, cases)
    return reported(examiner, OracleError, tried)


def _shapes(examiner: Examiner, shapes: Iterable[Shape] | None) -> list[Shape]:
    found = list(examiner.call("example_shapes", "no shape") if shapes is None else shapes)
    examiner.insist("shapes", found, "no shape", "at least one shape", "none", "example_shapes returns an empty list")
    for shape in found:
        cause = "a list, a dict or an array in it: use tuples, or a frozen dataclass"
        examiner.insist("shapes", _hashable(shape), "no shape", "shapes that are hashable values", brief(shape), cause)
    exact = getattr(examiner.oracle, "exact", None)
    examiner.expect("exact", isinstance(exact, bool), "no shape", "exact to be True or False", brief(exact), "another type")
    tolerance = getattr(examiner.oracle, "tolerance", None)
    number = isinstance(tolerance, int | float) and 0.0 <= tolerance < np.inf
    examiner.insist("tolerance", number, "no shape", "tolerance to be a finite number >= 0", brief(tolerance), "another type")
    return found


def _hashable(shape: Shape) -> bool:
    try:
        hash(shape)
    except TypeError:
        return False
    return True


def check_feature_map(features: FeatureMap, *, n_random: int = 20, seed: int = 0) -> Report:
    """Check a feature map against its contract: above all <mu, scores(w, i)> = <w, adjoint(i, mu)>, to 1e-9.

    That is tried for every sample, and each faster call of `core.feature_map.OPTIONAL` beside the plain ones; for 1,000 drawn by
    lot, of 200,000 parts at most, where there are more.

    Parameters
    ----------
    features : FeatureMap
        The map to check.
    n_random : int
        How many samples are tried one by one, each call twice, with random weights of the map's dtype and random sparse counts.
    seed : int
        Seed of these.

    Raises
    ------
    OracleError
        If a rule is broken; it lists every broken rule.

    Examples
    --------
    >>> from structpred.features.label_rows import LabelRows
    >>> report = check_feature_map(LabelRows(np.eye(2), 3))
    """
    rng = np.random.default_rng(seed)
    examiner = Examiner(features, rng)
    groups = features.groups
    ordered = groups[0] == 0 and groups[-1] == features.dim and (np.diff(groups) >= 0).all()
    cause = "group k is groups[k]:groups[k+1] of the flat weights"
    examiner.expect("groups", ordered, "no shape", f"groups from 0 to dim = {features.dim}, ascending", groups, cause)
    names = getattr(features, "group_names", None)
    if names is not None:
        fits = len(names) == len(groups) - 1 and all(isinstance(name, str) for name in names)
        cause = "names of another map: leave group_names out, or give one string per group"
        examiner.expect("groups", fits, "no shape", f"group_names to hold {len(groups) - 1} strings", names, cause)
    tried = rng.permutation(len(features))[:MOST_SAMPLES].tolist()
    for i in tried[:n_random]:
        with suppress(OracleError):
            _check_sample(examiner, features, i)
    if not examiner.broken:  # else fast calls would be blamed for the plain ones
        few = int(np.searchsorted(np.cumsum([features.n_parts(i) for i in tried]), MOST_PARTS))
        with suppress(OracleError):
            FastCalls(examiner, features, sorted(tried[: max(few, 3)])).examine()
    return reported(examiner, OracleError)


def _check_sample(examiner: Examiner, features: FeatureMap, i: int) -> None:
    rng, where = examiner.rng, f"sample {i}"
    n_parts = int(examiner.call("n_parts", where, i))
    w = rng.normal(size=features.dim).astype(features.dtype)
    theta = examiner.numbers(examiner.call("scores", where, w, i), n_parts, where, "scores")
    kept = theta.copy()
    theta += 1.0
    again = examiner.call("scores", where, w, i)
    same = np.array_equal(again, kept)
    examiner.expect("nondeterminism", same, where, "the same scores, in a new array", again, "a shared buffer")
    parts = np.flatnonzero(rng.random(n_parts) < rng.choice([0.1, 0.5, 1.0])).astype(np.int64)
    mu = rng.normal(size=len(parts))
    phi = examiner.call("adjoint", where, i, parts, mu)
    kept_phi = [np.array(own) for own in phi] if isinstance(phi, SparseVector) else []
    again = examiner.call("adjoint", where, i, parts, mu)
    same = all(np.array_equal(a, b) for a, b in zip(again, kept_phi, strict=False))
    cause = "random numbers, such as dropout, or a buffer"
    examiner.expect("nondeterminism", same, where, "twice the same features", again, cause)
    pair = isinstance(phi, SparseVector) and phi.indices.dtype == np.int64 and phi.values.dtype == np.float64
    examiner.insist("wrong dtype", pair, where, "adjoint to give a SparseVector of int64 and float64", phi, "see coalesced()")
    sorted_ = (np.diff(phi.indices) > 0).all() and phi.values.all()
    inside = not len(phi.indices) or (phi.indices[0] >= 0 and phi.indices[-1] < features.dim)
    cause = "pairs that were not put through coalesced(), or a feature number that is off"
    examiner.insist(
        "sparse", sorted_ and inside, where, f"sorted unique indices below {features.dim}, no zeros", phi.indices, cause
    )
