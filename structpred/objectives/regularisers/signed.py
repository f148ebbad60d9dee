"""Any regulariser on a cone of signs: what has the wrong sign is cut off, then it does what it does without signs."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from operator import attrgetter
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from structpred.core.regulariser import DualMap, Pieces, Regulariser, capabilities, pieces_of
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.objectives.regularisers.l2 import L2, SignConstraints


class Signed(SignConstraints):
    """r(w) where c_j w_j >= 0 for each j, infinite elsewhere, for an r that never falls where an entry grows in size.

    Such an r is best at zero where u has the wrong sign. So its conjugate is r*(P_S(u)), and its prox that of r at P_S(w), with
    P_S the projection on the cone. It has the optional methods that r has, but for those that know no kinks.

    Parameters
    ----------
    of : Regulariser
        r.
    signs : array of int
        c, one for each weight, or one for all of them.

    Examples
    --------
    >>> from structpred.objectives.regularisers.l1 import Lasso
    >>> Signed(Lasso(0.5), [1, -1, 0]).prox(np.array([-2.0, -2.0, -2.0]), 1.0)
    array([ 0. , -1.5, -1.5])
    """

    def __init__(self, of: Regulariser, signs: npt.ArrayLike = 1) -> None:
        super().__init__(signs)
        self.of = of

    strong_convexity = property(attrgetter("of.strong_convexity"))
    adapts = property(attrgetter("of.adapts"))
    reach = property(attrgetter("of.reach"))
    smooth_part = property(attrgetter("of.smooth_part"))

    def grouped(self, groups: Integers, names: Sequence[str]) -> "Signed":
        """Of r with these groups."""
        new = copy(cast(Signed, super().grouped(groups, names)))
        new.of = self.of.grouped(groups, names)
        return new

    def value(self, w: Vector) -> float:
        """r(w); inf for a wrong sign."""
        wrong = any((signs * piece < 0.0).any() for signs, piece in self._pieces(pieces_of(w)))
        return np.inf if wrong else self.of.value(w)

    def cut(self, w: Vector) -> Vector:
        """P_S(w)."""
        return cast(Vector, np.where(self.signs * w < 0.0, np.zeros(1, w.dtype), w))

    def prox(self, w: Vector, step: float) -> Vector:
        """That of r at P_S(w). A sum of terms has none, but its domain, at step 0, is all weights."""
        found = self.cut(w)
        return found if step == 0.0 and "terms" in capabilities(self.of) else self.of.prox(found, step)

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """That of r at P_S(u): on the cone <w, u> is at most <w, P_S(u)>."""
        return self.of.bound(loss, lam, (np.where(signs * piece < 0.0, 0.0, piece) for signs, piece in self._pieces(u)))

    def _pieces(self, u: Pieces) -> Iterator[tuple[npt.NDArray[np.int8], Floats]]:
        """(signs, piece)."""
        first = 0
        for piece in u:
            yield self.signs[first : first + len(piece)] if self.signs.ndim else self.signs, piece
            first += len(piece)

    @property
    def dual_map(self) -> Callable[[], DualMap]:
        """That of r, whose interval has no end where the sign is wrong; groups end where either r's or runs of signs do."""
        make: Callable[[], DualMap] = self.of.dual_map  # type: ignore[attr-defined]
        return lambda: self._refined(make())[0]

    @property
    def terms(self) -> Callable[[], tuple[Regulariser, ...]]:
        """Those of r, each on the cone."""
        make = cast(Any, self.of).terms
        return lambda: tuple(signed(term, self.signs) for term in make())

    def rescale(self, scale: Floats, memory: Floats, squares: Floats) -> tuple[Floats, Floats]:
        """As r's, whose groups may have several runs of signs."""
        _, owner, last = self._refined(self.of.dual_map())  # type: ignore[attr-defined]
        found, memory = self.of.rescale(scale[last], memory, np.bincount(owner, squares, len(last)).astype(np.float64))
        return found[owner], memory

    def first_memory(self, n_groups: int) -> Floats:
        """As r's."""
        return self.of.first_memory(len(self.of.dual_map().ends) if self.adapts else n_groups)  # type: ignore[attr-defined]

    def fingerprint(self) -> str:
        """The signs, and r's."""
        return f"{super().fingerprint()} of {self.of.fingerprint()}"

    def _refined(self, table: DualMap) -> tuple[DualMap, Integers, Integers]:
        """The dual map; the group of r that each of its groups is part of; the last part of each group of r."""
        runs = super().dual_map()
        ends = np.concatenate([table.ends, np.setdiff1d(runs.ends, table.ends)])
        ends = ends[ends <= table.ends[-1]]
        order = np.argsort(ends, kind="stable")
        last = np.argsort(order, kind="stable")[: len(table.ends)]
        owner = np.searchsorted(last, np.arange(len(ends)))
        ends = ends[order]
        run = np.minimum(np.searchsorted(runs.ends, ends), len(runs.ends) - 1)
        low, high = np.minimum(table.low[owner], runs.low[run]), np.maximum(table.high[owner], runs.high[run])
        return DualMap(ends, table.scale[owner], low, high), owner, last


def signed(regulariser: Regulariser, signs: npt.ArrayLike) -> SignConstraints:
    """The regulariser on the cone of these signs."""
    return SignConstraints(signs) if type(regulariser) is L2 else Signed(regulariser, signs)
