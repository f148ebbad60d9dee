"""Sums of regularisers."""

from collections.abc import Sequence
from copy import copy

from structpred.core.regulariser import Pieces, Regulariser, capabilities
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.objectives.regularisers.named_groups import no_prox_of_a_sum


class Composite(Regulariser):
    """r(w) = sum_j r_j(w), as its terms. How strong the norms among them are is their own `mu`.

    Parameters
    ----------
    parts : Regulariser
        The r_j, one at least. Their proximal steps are taken in this order.

    Raises
    ------
    ParameterError
        For no part, and for what is not an instance of a Regulariser.

    Examples
    --------
    >>> import numpy as np
    >>> from structpred.objectives.regularisers.l1 import Lasso
    >>> from structpred.objectives.regularisers.l2 import L2
    >>> Composite(L2(), Lasso(0.5)).value(np.array([2.0, 0.0]))
    3.0
    """

    def __init__(self, *parts: Regulariser) -> None:
        if not parts or not all(isinstance(part, Regulariser) for part in parts):
            raise ParameterError(f"parts: expected instances of a Regulariser such as Lasso(0.1), at least one, got {parts!r}")
        self.parts = parts

    @property
    def strong_convexity(self) -> float:  # type: ignore[override]
        """The sum of the parts'."""
        return sum(part.strong_convexity for part in self.parts)

    def grouped(self, groups: Integers, names: Sequence[str]) -> "Composite":
        """Of the parts with these groups."""
        new = copy(self)
        new.parts = tuple(part.grouped(groups, names) for part in self.parts)
        return new

    def terms(self) -> tuple[Regulariser, ...]:
        """The parts; of those that are sums, their terms."""
        found: list[Regulariser] = []
        for part in self.parts:
            found += part.terms() if "terms" in capabilities(part) else (part,)  # type: ignore[attr-defined]
        return tuple(found)

    def value(self, w: Vector) -> float:
        """The sum."""
        return sum(part.value(w) for part in self.parts)

    def prox(self, w: Vector, step: float) -> Vector:
        """Raise MissingCapabilityError: only the terms have one."""
        raise no_prox_of_a_sum(self)

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """The best of the bounds with u given to one part alone, and with u divided equally among them.

        With any shares s_j of the sum 1, the objective is a sum over j of lam r_j + s_j (the losses), each at least the bound of
        the part j from (s_j loss, s_j u).
        """
        pieces: list[Floats] = list(u)
        alone = [part.bound(loss, lam, pieces) for part in self.parts]
        share = 1.0 / len(self.parts)
        return max(*alone, sum(part.bound(share * loss, lam, [share * piece for piece in pieces]) for part in self.parts))

    def reach(self, value: float) -> float:
        """The least of the parts', none of which is above the sum, and of what strong convexity allows."""
        return min(super().reach(value), *(part.reach(value) for part in self.parts))

    def fingerprint(self) -> str:
        """Those of the parts."""
        return f"{type(self).__name__} {[part.fingerprint() for part in self.parts]}"
