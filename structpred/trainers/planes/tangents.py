"""Lower bounds of a smooth, strongly convex objective by means of its tangents, the best of which costs one vector to keep.

With f(x) - c/2 |x|^2 convex, the gradient g at w says  f(x) >= c/2 |x|^2 + <a, x> + b  for all x, where a = g - c w and
b = f(w) - c/2 |w|^2 - <a, w>. The least value of the right side, b - |a|^2 / (2 c), is f(w) - |g|^2 / (2 c). Means of such pairs
(a, b) are as good, and where gradients point to and fro their mean is short: its bound is far better, and never falls.
"""

from typing import NamedTuple

import numpy as np

from structpred.core.products import dot
from structpred.core.types import Floats


class Tangent(NamedTuple):
    """slope: a, empty where there is none. height: b, a single number."""

    slope: Floats
    height: Floats

    @staticmethod
    def at(w: Floats, value: float, gradient: Floats, strength: float) -> "Tangent":
        """Of f at w. strength: c; 0 where no bound is known."""
        if strength == 0.0:
            return Tangent(np.empty(0), np.array(0.0))
        slope = gradient - strength * w
        return Tangent(slope, np.array(value - 0.5 * strength * dot(w, w) - dot(slope, w)))

    def bound(self, strength: float) -> float:
        """The lower bound of f."""
        return float(self.height) - dot(self.slope, self.slope) / (2.0 * strength)

    def mixed(self, w: Floats, value: float, gradient: Floats, strength: float) -> "Tangent":
        """The mean of this and of the tangent at w with the largest bound, a concave parabola in the share of the new one.

        It takes the place of this.
        """
        if not len(self.slope):
            return self
        from structpred.trainers.planes import _tangent_kernels

        square, rest, along, length = _tangent_kernels.products(self.slope, w, gradient, strength)
        height = value - 0.5 * strength * square - rest
        rise, bend = height - float(self.height) - along / strength, length / strength
        share = 0.0 if rise <= 0.0 else 1.0 if rise >= bend else rise / bend
        _tangent_kernels.move(self.slope, w, gradient, strength, share)
        return Tangent(self.slope, np.array((1.0 - share) * self.height + share * height))
