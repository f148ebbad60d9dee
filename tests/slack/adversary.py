"""The adversary of Theorem 3 (Choi, Meshi & Srebro 2016, appendix H): it decides what the outputs are while it is being asked."""

from math import sqrt

import numpy as np
from point_sets import Points

from structpred.slack.problem import Candidate


class Adversary(Points):
    """Points that come into being when a query leaves no other answer; `room` is where one more may still lie.

    Every place in the room, an open rectangle (h from, h to, g from, g to), has a larger Phi than any point so far, and all
    answers so far are right if a point is there. A query that misses a part of the room, or that
    a point answers, costs the adversary a part of its room and no point; any other costs one.
    """

    def __init__(self) -> None:
        super().__init__([1.0], [0.0])
        self.room = 1.0, 2.0, 1.0, 2.0

    def settled(self) -> Points:
        """The points with one more, in the middle of the room: nobody has seen it."""
        a, b, c, d = self.room
        return Points([*self.h, (a + b) / 2], [*self.g, (c + d) / 2])

    def plain(self, lam: float) -> Candidate:
        self._answer(lam, np.arange(len(self.h)))
        return super().plain(lam)

    def constrained(self, lam: float, alpha: float, beta: float, inclusive: bool) -> Candidate | None:
        a, b, c, d = self.room
        above = (d - alpha * a) / (d - c + alpha * (b - a)) if alpha < np.inf else 0.0
        below = (beta * b - c) / (d - c + beta * (b - a))
        share = min(0.9 * max(above, below), 1.0)
        if share >= 0.2:  # beside the angle
            h, g = share * (b - a), share * (d - c)
            self.room = (a, a + h, d - g, d) if above >= below else (b - h, b, c, c + g)
        else:  # within it
            up, down = 1.1 * max(above, 0.0), 1.1 * max(below, 0.0)
            self.room = a + up * (b - a), b - down * (b - a), c + down * (d - c), d - up * (d - c)
            self._answer(lam, self.inside(alpha, beta, inclusive))
        return super().constrained(lam, alpha, beta, inclusive)

    def _answer(self, lam: float, inside: np.ndarray) -> None:
        """Room below the line of the best point inside; where there is little, above it, and a new point."""
        a, b, c, d = self.room
        best = float((self.h + lam * self.g)[inside].max(initial=-np.inf))
        share = min(max((best - a - lam * c) / (b - a + lam * (d - c)), 0.0), 1.0)
        if share >= 0.2:
            self.room = a, a + 0.9 * share * (b - a), c, c + 0.9 * share * (d - c)
            return
        a, c = a + 1.1 * share * (b - a), c + 1.1 * share * (d - c)
        # a corner from which Phi grows along the line of the query, and the place on it where it is largest
        left = lam * (c + d) > a + b
        h, g = (a + 0.05 * (b - a), d - 0.05 * (d - c)) if left else (b - 0.05 * (b - a), c + 0.05 * (d - c))
        side = 1.0 if left else -1.0
        step = min(0.8 * (b - a) / lam, 0.8 * (d - c), abs(g - h / lam) / 2)
        top = h + side * lam * step, g - side * step
        low = sqrt(h * g / (top[0] * top[1]))  # on the way to zero, here the hyperbola of the new point is met
        high = max(low ** (1 / 3), 1.0 - 0.02 * min((b - a) / b, (d - c) / d))
        low = low ** (2 / 3)
        self.room = max(a, low * top[0]), high * top[0], max(c, low * top[1]), high * top[1]
        assert self.room[0] < self.room[1]
        assert self.room[2] < self.room[3]
        self.h, self.g = np.append(self.h, h), np.append(self.g, g)
