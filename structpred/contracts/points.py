"""What the checks of projections and proximal operators share: the points that are tried, and what any such function gives."""

from typing import Any

import numpy as np

from structpred.contracts.engine import Examiner, kind_of
from structpred.core.types import Floats
from structpred.errors import StructpredError

#: how large the points are
SCALES = (0.01, 0.3, 1.0, 10.0, 1000.0)


class Points:
    """Points of one shape for the methods of `examiner.oracle`."""

    def __init__(self, examiner: Examiner, where: str) -> None:
        self.examiner, self.where = examiner, where

    def drawn(self, shape: tuple[int, ...], n_random: int) -> list[Floats]:
        """Random points, three with ties, and zero."""
        rng = self.examiner.rng
        points = [SCALES[k % len(SCALES)] * rng.normal(size=shape) for k in range(n_random)]
        return points + [rng.integers(-1, 2, shape).astype(np.float64) for _ in range(3)] + [np.zeros(shape)]

    def answer(self, method: str, x: Floats, *step: float) -> Floats:
        """What a method gives: a new array like x, of finite numbers, the same when asked again."""
        found = self.examiner.call(method, self.where, x, *step)
        told, cause = f"a new float64 array of shape {x.shape}", "a reduction over the entries, or a result of another type"
        right = isinstance(found, np.ndarray) and found.shape == x.shape and found.dtype == np.float64
        self.examiner.insist("answer", right, self.where, told, kind_of(found), cause)
        self.examiner.finite(found, self.where, method)
        again = self.examiner.call(method, self.where, x, *step)
        cause = "state kept between calls, or a random number"
        self.examiner.expect("nondeterminism", np.array_equal(found, again), self.where, "twice the same point", again, cause)
        return np.asarray(found)

    def refuses(self, told: str, cause: str, method: str, *args: Any) -> None:
        """An error of structpred, `told`, for arguments that are no point or no step."""
        try:
            found: object = getattr(self.examiner.oracle, method)(*args)
        except StructpredError:
            self.examiner.checked["bad points"] += 1
            return
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        self.examiner.expect("bad points", False, self.where, told, found, cause)
