"""Search problems given by their points, the table of small sets, random sets, and oracles that are inexact on purpose."""

from typing import Any

import numpy as np

from structpred.errors import MissingCapabilityError
from structpred.slack.problem import NEEDS, Candidate, Levels

ALL = frozenset(("constrained", "levels", "slack_argmax", "kbest"))


class Points:
    """Outputs 0..M as points (h, g); 0 is the truth. Ties go to the first. `asked` lists what was found, None for nothing.

    compare: "product" tests g < r h, "slope" tests g / h < r: each is complementary at a ray.
    """

    relaxed = closed = False

    def __init__(self, h: Any, g: Any, offers: Any = ("constrained",), compare: str = "product", loss_unit: float = 0.0) -> None:
        self.loss_unit = loss_unit
        self.h, self.g = np.array(h, dtype=np.float64), np.array(g, dtype=np.float64)
        self.offers, self.compare = frozenset(offers), compare
        self.truth = Candidate(float(self.h[0]), float(self.g[0]), 0)
        self.asked: list[int | None] = []

    @property
    def phi(self) -> np.ndarray:
        """Phi of every output."""
        return np.maximum(self.h, 0.0) * self.g

    @property
    def n_positive(self) -> int:
        """M: outputs with h, g > 0."""
        return int(((self.h > 0) & (self.g > 0)).sum())

    def _found(self, k: int, bound: float) -> Candidate:
        self.asked.append(k)
        return Candidate(float(self.h[k]), float(self.g[k]), k, bound)

    def plain(self, lam: float) -> Candidate:
        values = self.h + lam * self.g
        return self._found(int(values.argmax()), float(values.max()))

    def inside(self, alpha: float, beta: float, inclusive: bool) -> np.ndarray:
        """The outputs of an angle."""
        positive = np.flatnonzero((self.h > 0) & (self.g > 0))
        h, g = self.h[positive], self.g[positive]
        s, low, high = (g / h, beta, alpha) if self.compare == "slope" else (g, beta * h, alpha * h)
        return positive[(s < high) & ((s >= low) if inclusive else (s > low))]

    def constrained(self, lam: float, alpha: float, beta: float, inclusive: bool) -> Candidate | None:
        inside = self.inside(alpha, beta, inclusive)
        if not len(inside):
            self.asked.append(None)
            return None
        values = (self.h + lam * self.g)[inside]
        return self._found(int(inside[values.argmax()]), float(values.max()))

    def levels(self) -> Levels:
        g = np.unique(self.g)
        best = [max(np.flatnonzero(self.g == one), key=lambda k: self.h[k]) for one in g]
        return Levels(g, self.h[best], [int(k) for k in best])

    def slack_argmax(self) -> Candidate:
        k = int(self.phi.argmax())
        return self._found(k, float(self.phi[k]))

    def kbest(self, lam: float, k: int) -> list[Candidate]:
        best = np.argsort(-(self.h + lam * self.g), kind="stable")[:k]
        return [self.rescore(int(one)) for one in best]

    def rescore(self, label: int) -> Candidate:
        return Candidate(float(self.h[label]), float(self.g[label]), label)

    def mix(self, t: float, first: Any, second: Any) -> Any:
        raise AssertionError("whole outputs are not mixed")

    def require(self, method: str) -> None:
        if method in NEEDS and not self.offers.intersection(NEEDS[method]):
            raise MissingCapabilityError(f"slack search {method!r} needs {' or '.join(NEEDS[method])}")


class Sloppy(Points):
    """Answers that may be any output in question, with bounds that hold: up to twice as far from zero as they need be."""

    def __init__(self, *args: Any, rng: np.random.Generator, **options: Any) -> None:
        super().__init__(*args, **options)
        self.rng = rng

    def _some(self, which: np.ndarray, lam: float) -> Candidate:
        values = (self.h + lam * self.g)[which]
        bound = float(values.max()) + abs(float(values.max())) * float(self.rng.choice([0.0, 0.01, 1.0]))
        k = int(which[values.argmax()]) if self.rng.random() < 0.5 else int(self.rng.choice(which))
        return self._found(k, bound)

    def plain(self, lam: float) -> Candidate:
        return self._some(np.arange(len(self.h)), lam)

    def constrained(self, lam: float, alpha: float, beta: float, inclusive: bool) -> Candidate | None:
        inside = self.inside(alpha, beta, inclusive)
        if not len(inside):
            return None
        found = self._some(inside, lam)
        return found if self.rng.random() < 0.8 else Candidate(1.0, 0.0, None, found.bound)


#: name -> (h, g, the largest Phi, the outputs that have it)
TABLE: dict[str, tuple[list[float], list[float], float, tuple[int, ...]]] = {
    "A label on split ray": ([1, 4, 2.2], [0, 1, 2.2], 4.84, (2,)),
    "B theorem 1": ([1, 4, 0.001, 1.9], [0, 0.001, 4, 1.9], 3.61, (3,)),
    "C tie on line": ([1, 4, 1, 2.5], [0, 1, 4, 2.5], 6.25, (3,)),
    "D same ray": ([1, 1, 2, 3], [0, 1, 2, 3], 9.0, (3,)),
    "E h < 0 wins plain": ([1, -1, 2, 0.5], [0, 10, 2, 3], 4.0, (2,)),
    "F truth only": ([1], [0], 0.0, (0,)),
    "G all h <= 0": ([1, -0.5, -2, 0], [0, 1, 3, 5], 0.0, (0,)),
    "H zero loss": ([1, 9, 2], [0, 0, 3], 6.0, (2,)),
    "I Hamming levels": ([1, 3, 2.4, 2, 1.2, 0.2], [0, 1, 2, 3, 4, 5], 6.0, (3,)),
    "J tangent in sub-angle": ([1, 1, 3, 0.5, 2.5], [0, 4, 1, 1, 2], 5.0, (4,)),
    "K kills both strict": ([1, 2.5, 3, 1.5, 0.5, 2.5], [0, 2.5, 1, 4, 2, 0.5], 6.25, (1,)),
    "L kills wrong z' and K/2": ([1, 5.5, 1, 0.5, 1.5, 2.5], [0, 1, 3, 3, 5.5, 4.5], 11.25, (5,)),
    "M kills K^2/4 without lam": ([1, 4, 5, 2, 1.5, 1.5], [0, 1, 0.5, 2, 1, 3.5], 5.25, (5,)),
    "N kills non-strict": ([1, 3, 4.5, 2], [0, 3, 2, 4.5], 9.0, (1, 2, 3)),
    "P kills upper child only": ([1, 0.5, 3.5, 2], [0, 5, 2, 1], 7.0, (2,)),
}

#: best Phi and upper bound after one query at lam = 1
AFTER_ONE = {"A": (4, 6.25), "B": (0.004, 4.00200025), "C": (4, 6.25), "D": (9, 9), "E": (4, 4), "F": (0, 0), "G": (0, 0)}
AFTER_ONE |= {"H": (6, 6.25), "I": (4.8, 6.76), "J": (4, 6.25), "K": (6, 7.5625), "L": (8.25, 12.25), "M": (2.5, 7.5625)}
AFTER_ONE |= {"N": (9, 10.5625), "P": (2.5, 7.5625)}


def unit_of(g: Any) -> float:
    """The unit of a set of losses that are few multiples of one number, else 0.

    >>> unit_of([0.0, 200.0, 300.0])
    100.0
    """
    values = np.unique(np.asarray(g, dtype=np.float64))
    values = values[values > 0]
    if not len(values):
        return 1.0
    scale = 10.0 ** np.floor(np.log10(values[0]))
    ratios = values / scale
    if not np.allclose(ratios, np.rint(ratios), rtol=0, atol=1e-9) or ratios.max() > 1000:
        return 0.0
    return float(scale)


def hyperbola(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Set Q: m outputs with the same Phi = 1, spread over slopes; the worst case of angular search."""
    t = np.linspace(-2.0, 2.0, m)
    return np.append(1.0, np.exp(t)), np.append(0.0, np.exp(-t))


def random_points(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One of many kinds of sets: spread, tied, on a circle or near a hyperbola, with h < 0 and g = 0, at any scale."""
    m = int(rng.integers(0, 25))
    kind = int(rng.integers(7))
    if kind == 0:
        h, g = rng.normal(size=m), rng.random(m)
    elif kind == 1:
        h, g = rng.integers(-2, 6, m).astype(float), rng.integers(0, 6, m).astype(float)
    elif kind == 2:
        t = rng.random(m) * np.pi / 2
        h, g = np.cos(t), np.sin(t)
    elif kind == 3:
        t = rng.normal(size=m) * 2
        h, g = np.exp(t), np.exp(-t) * (1.0 + 1e-3 * rng.normal(size=m) * rng.integers(0, 2))
    elif kind == 4:
        h, g = 3.0 * rng.normal(size=m) - 1.0, rng.integers(0, 15, m).astype(float)
    elif kind == 5:
        s = 2.0 ** rng.integers(-3, 4, m)  # few rays
        h = rng.random(m) + 0.1
        g = s * h
    else:
        h, g = np.exp(3 * rng.normal(size=m)), np.exp(3 * rng.normal(size=m))
    h, g = h * 10.0 ** rng.integers(-6, 7) if kind in (0, 6) else h, np.abs(g) * 10.0 ** rng.integers(-6, 7)
    return np.append(1.0, h), np.append(0.0, g)
