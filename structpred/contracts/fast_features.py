"""The rules of a feature map's faster calls: for every sample each gives what `scores` and `adjoint` give."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.contracts.engine import Examiner
from structpred.core.feature_map import FeatureMap
from structpred.core.group_scales import GroupScales
from structpred.core.sparse import SparseVector
from structpred.core.stand_ins import stand_in
from structpred.core.types import Floats

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
        mu: npt.NDArray[Any] = np.concatenate([*self.mu.values()])
        self.same("total", self.ask(f.total, 0, mu, places, coefs), wanted, 0)
        if add is not None:
            self.same("add_spread", out, wanted, 0)
        if (call := stand_in(f, "with_scores", _SCORES)) is not None:
            added = [np.eye(1, len(theta))[0] for theta in self.theta.values()]  # one part: some maps take no others
            if (more := self.ask(call, 0, added)) is not None:
                for i in range(min(n, BLOCK)):
                    self.same("with_scores", self.ask(more.fixed_scores, i, i), self.fixed[i] + added[i], i)
