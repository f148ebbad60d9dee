"""The update rule of an online trainer as numbers, for compiled calls over many instances.

The trainer's `update` says the same in Python, and is what counts: both give the same bits.
"""

from typing import NamedTuple

import numpy as np

from structpred.core.types import AnyArray, Floats, Integers
from structpred.core.weights import Weights

#: formulas of the coefficient of a difference psi, where limit_i is the number that the trainer has for the instance
#: limit_i, wherever psi is not zero
CONSTANT = 0
#: min(limit_i, violation / |psi|^2), wherever there is a violation
MARGIN = 1
#: cost / |psi|^2, min(limit_i, cost / |psi|^2) and cost / (|psi|^2 + 1 / (2 limit_i)), wherever there is a loss, with
#: cost = violation + 1, or violation + sqrt(loss)
PASSIVE, PASSIVE_CAPPED, PASSIVE_SOFT = 2, 3, 4
#: cost / (psi . variance psi + softness / limit_i), which multiplies variance * psi; then the variances shrink
CONFIDENT = 5


class UpdateRule(NamedTuple):
    """The update of an online trainer, made in place.

    formula: one of those above, with `limits` (one number an instance), `roots` (whether the cost takes the root of the loss)
    and `softness`. After each step the weights enter their average with the weight average[0] + average[1] k, unless that is 0.
    variance: of each weight, for CONFIDENT alone.

    Where lam is not 0, the scale of the weights becomes 1 / (lam k) after step number k; `steps` and `offsets` are k and the sum
    of limit_i loss_weight loss_i, single numbers. Without lam they stay, and k is 0.
    """

    formula: int
    limits: Floats
    weights: Weights
    lam: float = 0.0
    average: tuple[float, float] = (1.0, 0.0)
    roots: bool = False
    softness: float = 0.0
    variance: Floats = np.empty(0)
    steps: Integers = np.array(0)
    offsets: Floats = np.array(0.0)

    @property
    def fixed(self) -> tuple[int, float, float, float, bool, float]:
        """What does not change, as kernels take it."""
        return self.formula, self.lam, *self.average, self.roots, self.softness

    @property
    def state(self) -> tuple[AnyArray, ...]:
        """What changes, as kernels take it."""
        w = self.weights
        return w.v, w.u, self.variance, w.factor, w.mass, w.scaled_mass, self.steps, self.offsets
