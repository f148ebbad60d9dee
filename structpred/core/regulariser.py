"""What a regulariser must do, and what it may do besides: the r of  min_w lam r(w) + sum_i p_i H_i(w).

Its conjugate is r*(u) = max_w <w, u> - r(w). A dual point of the problem is a loss l and a vector v = lam u, and gives the bound
l - lam r*(u). Most regularisers are coordinatewise and quadratic outside an interval; they follow from one table,

    r*(u) = sum_j s/2 dist(u_j, [low, high])^2,   w_j = s (u_j - clip(u_j, low, high)) is its gradient,
    r(w) = sum_j w_j^2 / (2 s) + max of x w_j over x in [low, high],

with s, low and high of the group of j: `DualMap`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple, Protocol, cast

import numpy as np

from structpred.core.products import dot
from structpred.core.types import AnyArray, ArrayLike, Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import MissingCapabilityError

#: the consecutive pieces of a long vector, in order
Pieces = Iterable[Floats]

#: What some trainers need besides value, prox and bound; the methods that a regulariser does not have are left out.
OPTIONAL: dict[str, str] = {
    "dual_map": "(self) -> DualMap: w as a function of the dual point",
    "squared_norm": "(self, w) -> float: r(w) is half of it, so that w is the dual point itself",
    "gradient": "(self, w) -> (r(w), its gradient), for float64 w, where r is smooth and strongly convex",
    "smooth_part": "(self) -> (smooth, mu): r(w) is smooth.value(w) + mu |w|_1, where `smooth` has `gradient` and treats all "
    "weights alike; on the cone of `signs`, an attribute, where there is one",
    "group_prox": "(self, norms, step) -> the norms of the groups of prox(w, step), where r(w) depends on them alone",
    "terms": "(self) -> the regularisers that r is the sum of: online trainers take their prox steps one after the other",
    "free": "(self) -> slice: the weights that r leaves out; it is half the squared norm of the others",
}


class DualMap(NamedTuple):
    """Group k ends before coordinate ends[k]; scale (s), low and high of each group, all of them (K,).

    low <= high; low is -inf or finite, high inf or finite. A scale of zero freezes the weights of a group at zero.
    """

    ends: Integers
    scale: Floats
    low: Floats
    high: Floats

    @staticmethod
    def of(ends: ArrayLike, scale: ArrayLike, low: ArrayLike = 0.0, high: ArrayLike = 0.0) -> "DualMap":
        """From arrays, or from single numbers that hold for all groups."""
        where = np.array(ends, np.int64)
        return DualMap(where, *(np.array(np.broadcast_to(x, where.shape), np.float64) for x in (scale, low, high)))

    @staticmethod
    def alike(scale: float, low: float = 0.0, high: float = 0.0) -> "DualMap":
        """All weights in one group, however many there are.

        >>> DualMap.alike(1.0, -0.5, 0.5).weights(np.array([2.0, 0.3, -1.0]))
        array([ 1.5,  0. , -0.5])
        """
        return DualMap.of([np.iinfo(np.int64).max], scale, low, high)

    def fault(self, dim: int) -> str | None:
        """What does not fit, for vectors of length dim; None where all does."""
        n = len(self.ends)
        for name, kind in (("ends", np.int64), ("scale", np.float64), ("low", np.float64), ("high", np.float64)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != kind or array.shape != (n,) or not n:
                return f"{name}: expected one {np.dtype(kind)} per group, {n} in all"
        if self.ends[0] < 0 or (np.diff(self.ends) < 0).any():
            return "ends: expected ascending numbers"
        if self.ends[-1] < dim:
            return f"ends: group {n - 1} ends before {self.ends[-1]}, but there are {dim} weights"
        if not (np.isfinite(self.scale).all() and (self.scale >= 0.0).all()):
            return "scale: expected finite numbers >= 0"
        if not ((self.low <= self.high).all() and (self.low < np.inf).all() and (self.high > -np.inf).all()):
            return "low, high: expected low <= high, low below inf, high above -inf"
        return None

    @property
    def linear(self) -> bool:
        """Whether w is linear in u: low = high = 0 in every group."""
        return not (self.low.any() or self.high.any())

    @property
    def conic(self) -> bool:
        """Whether w(t u) = t w(u) for t >= 0: low is 0 or -inf, high 0 or inf in every group, so that the domain is a cone."""
        return bool(((self.low == 0.0) | np.isinf(self.low)).all() and ((self.high == 0.0) | np.isinf(self.high)).all())

    def expanded(self, dim: int) -> tuple[Floats, Floats, Floats]:
        """(scale, low, high) of each of dim weights in place of each group.

        >>> scale, low, high = DualMap.of([1, 3], [1.0, 2.0], [-np.inf, 0.0]).expanded(3)
        >>> scale.tolist(), low.tolist(), high.tolist()
        ([1.0, 2.0, 2.0], [-inf, 0.0, 0.0], [0.0, 0.0, 0.0])
        """
        scale, low, high = (np.array(np.broadcast_to(array, dim)) for array in self._between(0, dim))
        return scale, low, high

    def weights(self, u: Floats) -> Floats:
        """The w of a dual point; zeros are +0.0."""
        scale, low, high = self._between(0, len(u))
        return scale * (u - np.clip(u, low, high)) + 0.0

    def conjugate(self, u: Pieces) -> float:
        """r*(u)."""
        total = 0.0
        for x, (scale, low, high) in self._tables(u):
            rest = x - np.clip(x, low, high)
            total += 0.5 * dot(scale * rest, rest)
        return total

    def divergence(self, u: Floats, base: Floats) -> float:
        """r*(u) - r*(base) - <w(base), u - base>, as a sum of squares and products >= 0: small ones are not lost in rounding."""
        scale, low, high = self._between(0, len(u))
        before, inside = base - np.clip(base, low, high), np.clip(u, low, high)
        change = (u - inside) - before
        return 0.5 * dot(scale * change, change) - dot(scale * before, inside - (base - before))

    def value(self, w: Pieces) -> float:
        """r(w); inf where w is outside its domain."""
        total = 0.0
        for piece, table in self._tables(w):
            at = np.flatnonzero(piece)
            x = piece[at]
            scale, low, high = (array[at] if len(array) == len(piece) else array for array in table)
            with np.errstate(divide="ignore"):
                total += dot(np.where(x > 0.0, high, low), x) + dot(x / (2.0 * scale), x) if len(x) else 0.0
        return total

    def prox(self, w: Floats, step: float) -> Floats:
        """The x with the least |x - w|^2 / 2 + step * r(x); for step 0 the point of the domain next to w. Zeros are +0.0."""
        scale, low, high = self._between(0, len(w))
        low, high = (np.where(np.isinf(bound), bound, step * np.where(np.isinf(bound), 0.0, bound)) for bound in (low, high))
        factor = np.divide(scale, scale + step, out=np.zeros_like(scale), where=scale > 0.0)
        return factor * (w - np.clip(w, low, high)) + 0.0

    def _between(self, first: int, n: int) -> tuple[Floats, Floats, Floats]:
        """(scale, low, high) of n weights from the one of number first on; of length 1 where they are in one group."""
        k, last = np.searchsorted(self.ends, [first, first + max(n, 1) - 1], side="right").tolist()
        groups = slice(k, last + 1)
        if k == last:
            return self.scale[groups], self.low[groups], self.high[groups]
        sizes = np.diff(np.minimum(self.ends[groups], first + n), prepend=first)
        return np.repeat(self.scale[groups], sizes), np.repeat(self.low[groups], sizes), np.repeat(self.high[groups], sizes)

    def _tables(self, pieces: Pieces) -> Iterator[tuple[Floats, tuple[Floats, Floats, Floats]]]:
        """Each piece with what `_between` says of it."""
        first = 0
        for piece in pieces:
            if len(piece):
                yield piece, self._between(first, len(piece))
            first += len(piece)

    def squares(self, u: Pieces) -> Floats:
        """|w_k / s_k|^2 of each group: |u_k|^2 where the map is linear, else without what is clipped."""
        out = np.zeros(len(self.ends))
        if not self.linear:
            u = (x - np.clip(x, low, high) for x, (_, low, high) in self._tables(u))
        for k, x in self._spans(u):
            out[k] += dot(x, x)
        return out

    def _spans(self, pieces: Pieces) -> Iterator[tuple[int, Floats]]:
        """(group, the part of a piece that belongs to it)."""
        first = k = 0
        for piece in pieces:
            at = 0
            while at < len(piece):
                while self.ends[k] <= first + at:
                    k += 1
                stop = int(min(len(piece), self.ends[k] - first))
                yield k, piece[at:stop]
                at = stop
            first += len(piece)


class Regulariser:
    """r of the training objective lam r(w) + sum_i p_i H_i(w): a closed convex function with r(0) = 0 and r >= 0.

    One of your own is a subclass. With `dual_map` it needs no other method; without it, it writes `value`, `prox` and `bound`, of
    which one with `terms` may leave out `prox`.
    Settings are attributes of the object, and part of a checkpoint's digest. `structpred.check_regulariser` tries it.

    Attributes
    ----------
    name : str
        What users call it. Names are looked for in structpred/objectives/regularisers; a class elsewhere needs none.
    strong_convexity : float
        The largest m known for which r(w) - m/2 |w|^2 is convex; 0 for none.
    adapts : bool
        Whether `rescale` changes the scales between passes.
    """

    name: ClassVar[str] = ""
    strong_convexity: float = 0.0
    adapts: ClassVar[bool] = False

    def grouped(self, groups: Integers, names: Sequence[str]) -> "Regulariser":
        """The regulariser to use where group k of the weights is groups[k]:groups[k+1]; asked once, before all else."""
        return self

    def value(self, w: Vector) -> float:
        """r(w), in float64."""
        return self._map().value(pieces_of(w))

    def prox(self, w: Vector, step: float) -> Vector:
        """argmin_x |x - w|^2 / 2 + step * r(x), a new vector of the type of w; for step 0 the point of r's domain next to w."""
        return cast(Vector, self._map().prox(w.astype(np.float64), step).astype(w.dtype))

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """A lower bound of the least objective, from the dual point (loss, lam * u): loss - lam r*(u), or a better one."""
        return loss - lam * self._map().conjugate(u)

    def reach(self, value: float) -> float:
        """The largest |w| of any w with r(w) <= value; inf where none is known."""
        return float(np.sqrt(2.0 * max(value, 0.0) / self.strong_convexity)) if self.strong_convexity > 0.0 else np.inf

    def rescale(self, scale: Floats, memory: Floats, squares: Floats) -> tuple[Floats, Floats]:
        """(scales, memory) of the next pass, from the present ones and |u|^2 of each group. Only asked where `adapts`."""
        return scale, memory

    def first_memory(self, n_groups: int) -> Floats:
        """What `rescale` is given at first to remember earlier passes by, (n_groups, m); trainers keep it in their state."""
        return np.zeros((n_groups, 0))

    def fingerprint(self) -> str:
        """Its class and its settings, long arrays by their digest."""
        settings = {name: array_digest(x) if isinstance(x, np.ndarray) else x for name, x in vars(self).items()}
        return f"{type(self).__name__} {sorted(settings.items())}"

    def _map(self) -> DualMap:
        make = getattr(self, "dual_map", None)
        if make is None:
            raise MissingCapabilityError(
                f"{type(self).__name__} has no dual_map, so it writes value, prox and bound itself; the one asked for is missing"
            )
        return cast(DualMap, make())


class Smooth(Protocol):
    """A regulariser with a gradient."""

    strong_convexity: float

    def gradient(self, w: Floats) -> tuple[float, Floats]:
        """(r(w), its gradient)."""
        ...


def pieces_of(w: Vector, length: int = 1 << 18) -> Iterator[Floats]:
    """A vector in float64 pieces, without a float64 copy of the whole."""
    for k in range(0, len(w), length):
        yield w[k : k + length].astype(np.float64)


def array_digest(array: AnyArray) -> str:
    """Of all numbers of an array; its own text leaves numbers out."""
    return f"{array.dtype} {array.shape} {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"


def capabilities(regulariser: object) -> frozenset[str]:
    """The optional methods that a regulariser has."""
    return frozenset(name for name in OPTIONAL if callable(getattr(regulariser, name, None)))


def group_norms(w: Vector, groups: ArrayLike) -> Floats:
    """|w_k| of every group, in float64; group k is groups[k]:groups[k+1]."""
    return np.sqrt(DualMap.of(np.asarray(groups)[1:], 1.0).squares(pieces_of(w)))


def shares(norms: Floats) -> Floats:
    """The beta of multiple kernel learning, beta_k = |w_k| / sum_k |w_k|: the share of each group; zeros if all are zero.

    >>> shares(np.array([5.0, 0.0, 5.0]))
    array([0.5, 0. , 0.5])
    """
    total = float(norms.sum())
    return norms / total if total > 0.0 else norms
