"""The squared Euclidean norm, which all trainers know."""

from structpred.core.products import dot
from structpred.core.regulariser import DualMap, Pieces, Regulariser, pieces_of
from structpred.core.types import Floats
from structpred.core.weights import Vector


class L2(Regulariser):
    """r(w) = 1/2 |w|^2, which is its own conjugate: w is the dual point itself."""

    name = "l2"
    strong_convexity = 1.0

    def squared_norm(self, w: Vector) -> float:
        """|w|^2, the products and sums in float64, without a float64 copy of the whole vector."""
        return _summed(pieces_of(w))

    def value(self, w: Vector) -> float:
        """1/2 |w|^2."""
        return 0.5 * self.squared_norm(w)

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """loss - lam/2 |u|^2."""
        return loss - 0.5 * lam * _summed(u)

    def dual_map(self) -> DualMap:
        """w = u."""
        return DualMap.alike(1.0)

    def gradient(self, w: Floats) -> tuple[float, Floats]:
        """(1/2 |w|^2, w)."""
        return self.value(w), w

    def smooth_part(self) -> tuple["L2", float]:
        """All of it is smooth."""
        return self, 0.0


def _summed(pieces: Pieces) -> float:
    total = 0.0
    for piece in pieces:
        total += dot(piece, piece)
    return total
