"""The part scores of a batch, and what an oracle finds in them: what all losses and layers of this package work on."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.instances import Shapes
from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.own_code import asked, blamed, renumbered
from structpred.core.packing import argmax_batch, argmax_bound_batch, has_points, marginals_batch, parts_batch, points_batch
from structpred.core.scores import all_finite
from structpred.core.stand_ins import stand_in
from structpred.core.types import Floats, Integers
from structpred.errors import DataError, InfeasibleError, OracleError
from structpred.runtime.interrupts import abandon_if_asked
from structpred.runtime.lazy_names import later
from structpred.runtime.ranges import ends_of, spans
from structpred.runtime.threads import checked_jobs
from structpred.task.regret import packed_labels
from structpred.task.task_checks import true_parts

_kernels = later("structpred.layers._record_kernels")

T = TypeVar("T", bound=np.generic)
A = TypeVar("A")
#: errors that a sample causes
_OF_SAMPLES = (OracleError, InfeasibleError, DataError)
#: one output an instance, or a flat array of part counts: points of the hulls, mixtures of outputs for example
Gold = Sequence[npt.ArrayLike] | Floats


class Outputs(Sequence[Labels]):
    """The outputs of a batch in one flat array: outputs[i] is a view of the labels of instance i.

    >>> Outputs(np.array([3, 1, 2]), np.array([0, 1, 3]))[1].tolist()
    [1, 2]
    """

    def __init__(self, labels: Labels, ends: Integers) -> None:
        self.labels, self.ends = labels, ends

    def __len__(self) -> int:
        """The number of instances."""
        return len(self.ends) - 1

    @overload
    def __getitem__(self, i: int) -> Labels: ...
    @overload
    def __getitem__(self, i: slice) -> list[Labels]: ...
    def __getitem__(self, i: int | slice) -> Labels | list[Labels]:
        """The labels of one instance, or a list of some."""
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        k = range(len(self))[i]
        return self.labels[self.ends[k] : self.ends[k + 1]]

    def __iter__(self) -> Iterator[Labels]:
        """One after the other."""
        return (self.labels[a:b] for a, b in pairwise(self.ends.tolist()))


class Best(NamedTuple):
    """What an oracle found at some scores.

    outputs: one an instance. parts, part_ends: their parts, flat. values: (n,) their scores. gaps: (n,) no output scores above
    values + gaps: 0 where the oracle is exact, infinite where it is not and gives no bound. points: where outputs are points,
    their amounts, flat as the scores; there are no parts then. None where outputs are sets of parts.
    """

    outputs: Outputs
    parts: Integers
    part_ends: Integers
    values: Floats
    gaps: Floats
    points: Floats | None = None


class Scores:
    """Where the part scores of each instance of a batch lie in one flat array: ragged shapes one after the other, no padding.

    Instance i has the scores ``theta[offsets[i]:offsets[i + 1]]``. Losses and layers are called with such a batch and with theta.

    Attributes
    ----------
    oracle, shapes, n_jobs
        As given to `of`; the shapes as a tuple.
    offsets : int64 array (n + 1,)
    mask : bool array (size,) or None
        Which parts have fixed scores.
    """

    def __init__(
        self, oracle: Oracle, shapes: Sequence[Shape], offsets: Integers, fixed: tuple[npt.NDArray[np.bool_], Floats] | None,
        n_jobs: int,
    ) -> None:  # fmt: skip
        self.oracle, self.shapes, self.offsets, self.n_jobs = oracle, Shapes(shapes), offsets, n_jobs
        self.mask: npt.NDArray[np.bool_] | None = None if fixed is None else fixed[0]
        self.fixed: Floats | None = None if fixed is None else fixed[1]
        self._forbidden = np.empty(0, np.int64) if fixed is None else np.flatnonzero(fixed[0] & (fixed[1] <= 0.5 * FORBIDDEN))
        self._copies: dict[int, Scores] = {}

    @classmethod
    def of(
        cls, oracle: Oracle, shapes: Sequence[Shape], *, fixed: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        n_jobs: int | None = None,
    ) -> "Scores":  # fmt: skip
        """The batch of these shapes.

        Parameters
        ----------
        oracle : Oracle
        shapes : sequence of shapes
            One an instance.
        fixed : (mask, scores), optional
            Two flat arrays as long as all scores: where mask is true the scores are not predicted but these (-1e30 forbids a
            part). Such parts get no noise and their gradients are 0. So some parts may be known, and an objective
            ``theta . g(y) + h(y)`` be predicted in part.
        n_jobs : int, optional
            Threads for oracles with `argmax_batch`, -1 for all processors. Results do not depend on it.

        Raises
        ------
        DataError
            Where the oracle refuses a shape, naming the sample, and for fixed scores that do not fit.

        Examples
        --------
        >>> from structpred.oracles.chain import ChainOracle
        >>> Scores.of(ChainOracle(), [(3, 2), (1, 2)]).offsets.tolist()
        [0, 10, 16]
        """
        shapes = list(shapes)
        known: dict[Shape, int] = {}  # asked once for each different shape
        for i, shape in enumerate(shapes):
            if shape not in known:
                try:
                    known[shape] = int(oracle.n_parts(shape))
                except Exception as error:
                    raise DataError(
                        f"sample {i}: {type(oracle).__name__}.n_parts refuses the shape {shape!r}: {error}"
                    ) from error
        offsets = ends_of(np.array([known[shape] for shape in shapes], dtype=np.int64))
        plain = cls(oracle, shapes, offsets, None, checked_jobs(n_jobs))
        if fixed is None:
            return plain
        mask, scores = np.ravel(np.asarray(fixed[0])), plain.flat(fixed[1], "fixed score")
        if mask.dtype != np.bool_ or mask.shape != scores.shape:
            raise DataError(f"fixed: expected a mask of {len(scores)} truth values, got {mask.dtype} of shape {mask.shape}")
        return cls(oracle, shapes, offsets, (mask, scores), plain.n_jobs)

    def __len__(self) -> int:
        """The number of instances."""
        return len(self.shapes)

    @property
    def size(self) -> int:
        """The number of all part scores."""
        return int(self.offsets[-1])

    @cached_property
    def sizes(self) -> Integers:
        """The number of part scores of each instance, (n,)."""
        return np.diff(self.offsets)

    @cached_property
    def width(self) -> int | None:
        """p where all instances have p parts; -1 where they differ; None without instances."""
        if not len(self):
            return None
        return int(self.sizes[0]) if (self.sizes == self.sizes[0]).all() else -1

    def flat(self, numbers: npt.ArrayLike, what: str) -> Floats:
        """A copy in float64 of one finite number a part: flat, or (n, p) where all instances have p parts.

        Raises DataError for another number of them, and, naming sample and part, where one is NaN or infinite.
        """
        try:
            found = np.array(numbers, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"expected one {what} a part, {self.size} numbers in a flat array: {error}") from error
        rows = found.ndim == 2 and len(found) == len(self) and self.width in (found.shape[1], None)
        if not (rows or found.shape == (self.size,)):
            raise DataError(
                f"expected one {what} a part, {self.size} in a flat array for these {len(self)} shapes, got an array of shape "
                f"{found.shape}"
            )
        found = found.reshape(-1)
        if not all_finite(found):
            at = int(np.isfinite(found).argmin())
            i = int(np.searchsorted(self.offsets, at, side="right")) - 1
            raise DataError(
                f"sample {i}: part {at - int(self.offsets[i])} has the {what} {found[at]}; it must be finite "
                "(did training diverge, or is an input not a number?)"
            )
        return found

    def full(self, theta: npt.ArrayLike) -> Floats:
        """The scores theta, checked as `flat` checks them, with the fixed scores in their places; a new array."""
        scores = self.flat(theta, "score")
        if self.mask is not None and self.fixed is not None:
            np.copyto(scores, self.fixed, where=self.mask)
        return scores

    def masked(self, gradient: Floats) -> Floats:
        """The gradient with zeros where scores are fixed; it is changed in place."""
        if self.mask is not None:
            gradient[self.mask] = 0.0
        return gradient

    def decide(self, theta: npt.ArrayLike) -> Outputs:
        """The best output of each instance at the scores theta."""
        return self.best(self.full(theta)).outputs

    def best(self, scores: Floats) -> Best:
        """The best output of each instance at full scores: those of `full`, or changed ones; parts that are forbidden stay so.

        Raises InfeasibleError, naming the sample, where an output has a forbidden part, OracleError for parts that do not exist.
        """
        scores = self._forbidding(scores)
        outputs, bounds = self._named(Scores._argmax, scores)
        if has_points(self.oracle):
            amounts = points_batch(self.oracle, outputs.labels, outputs.ends, self.shapes, self.sizes)
            if (blocked := self.forbidden(amounts)) is not None:
                raise InfeasibleError(f"sample {blocked}: no {self.oracle.output} is feasible: the best one has a forbidden part")
            values, none = self.dots(scores, amounts), np.zeros(len(self) + 1, dtype=np.int64)
            return Best(outputs, none[:0], none, values, self._gaps(values, bounds), amounts)
        parts, part_ends = parts_batch(self.oracle, outputs.labels, outputs.ends, self.shapes)
        values = np.empty(len(self))
        if (fault := _kernels().add_up(scores, self.offsets, parts, part_ends, values)) >= 0:
            i, out_of_range = divmod(fault, 2)
            if out_of_range:
                name = type(self.oracle).__name__
                raise OracleError(f"sample {i}: {name}.parts gave a part that does not exist; run check_oracle on it")
            raise InfeasibleError(f"sample {i}: no {self.oracle.output} is feasible: the best one has a forbidden part")
        return Best(outputs, parts, part_ends, values, self._gaps(values, bounds))

    def _gaps(self, values: Floats, bounds: Floats | None) -> Floats:
        unknown = self.oracle.tolerance * (1.0 + np.abs(values)) if self.oracle.exact else np.full(len(self), np.inf)
        return unknown if bounds is None else np.maximum(bounds - values, 0.0)

    def _forbidding(self, scores: Floats) -> Floats:
        """The scores, with those of forbidden parts as they must be whatever was done to them."""
        if not len(self._forbidden):
            return scores
        changed = scores.copy()
        changed[self._forbidden] = FORBIDDEN
        return changed

    def _named(self, call: Callable[["Scores", Floats], A], scores: Floats) -> A:
        """call(self, scores); what it raises names the sample."""
        try:
            return call(self, scores)
        except _OF_SAMPLES:
            for i, (own, shape) in enumerate(zip(self.split(scores), self.shapes, strict=True)):  # one by one, to say which
                try:
                    call(Scores(self.oracle, [shape], np.array([0, len(own)]), None, 1), own)
                except _OF_SAMPLES as error:
                    raise renumbered(error, i) from error
            raise

    def _argmax(self, scores: Floats) -> tuple[Outputs, Floats | None]:
        """(outputs, bounds of an inexact oracle that gives them)."""
        if self.oracle.exact or not callable(getattr(self.oracle, "argmax_bound", None)):
            abandon_if_asked()
            return Outputs(*argmax_batch(self.oracle, scores, self.offsets, self.shapes, self.n_jobs)), None
        if stand_in(self.oracle, "argmax_bound_batch", ("argmax", "argmax_bound", "n_parts")) is not None:
            labels, ends, bounds = argmax_bound_batch(self.oracle, scores, self.offsets, self.shapes, self.n_jobs)
            return Outputs(labels, ends), bounds
        pairs = enumerate(zip(self.split(scores), self.shapes, strict=True))
        found = [asked(i, self.oracle, "argmax_bound", own, shape) for i, (own, shape) in pairs]
        outputs = packed_labels([labels for labels, _ in found])
        return Outputs(*outputs), np.array([bound for _, bound in found], dtype=np.float64)

    def marginals(self, scores: Floats) -> tuple[Floats, Floats]:
        """(log partition functions (n,), expected part counts, flat) at full scores; the oracle must have `marginals`."""
        return self._named(Scores._sums, self._forbidding(scores))

    def _sums(self, scores: Floats) -> tuple[Floats, Floats]:
        try:
            return marginals_batch(self.oracle, scores, self.offsets, self.shapes)
        except Exception as error:
            raise blamed(error, 0, self.oracle, "marginals") from error

    def forbidden(self, points: Floats) -> int | None:
        """The first instance whose point has a forbidden part; None if none has."""
        if self._forbidden is None or not (used := points[self._forbidden] > 0).any():
            return None
        return int(np.searchsorted(self.offsets, self._forbidden[used.argmax()], side="right")) - 1

    def counts(self, best: Best) -> Floats:
        """mu(y) of each output, dense and flat as the scores."""
        if best.points is not None:
            return best.points.copy()
        return self._counted(best.parts, best.part_ends)

    def points(self, gold: Gold) -> Floats:
        """Gold as a flat array of part counts: labels an instance are turned into them, a flat array of floats is taken as it is.

        Raises DataError, naming the sample, for labels that are no output of their shape, and for another number of them. That
        a dense point lies in the hull of outputs is not checked here: a loss that comes out negative says so.
        """
        if isinstance(gold, np.ndarray) and gold.dtype.kind == "f":
            return self.flat(gold, "gold count")
        if not isinstance(gold, Outputs):
            if len(gold) != len(self):
                raise DataError(f"expected one gold output an instance, {len(self)}, got {len(gold)}")
            labels = [np.atleast_1d(np.asarray(own)) for own in gold]
            if not has_points(self.oracle):
                return self._counted(*packed_labels(true_parts(self.oracle, labels, self.shapes, self.sizes)))
            gold = Outputs(*packed_labels(labels))
        if has_points(self.oracle):
            return points_batch(self.oracle, gold.labels, gold.ends, self.shapes, self.sizes)
        return self._counted(*parts_batch(self.oracle, gold.labels, gold.ends, self.shapes))

    def _counted(self, parts: Integers, ends: Integers) -> Floats:
        out = np.zeros(self.size)
        _kernels().add_outputs(np.ones(len(self)), self.offsets, parts, ends, np.arange(len(self)), out)
        return out

    def dots(self, a: Floats, b: Floats) -> Floats:
        """a_i . b_i of each instance, (n,), or the mean over a (samples, size): the same to the last bit in any batch."""
        found = np.empty(len(self))
        _kernels().mean_dots(np.atleast_2d(a), b, self.offsets, found)
        return found

    def largest(self, numbers: Floats) -> Floats:
        """The largest absolute value of each instance, (n,); 0 for one without parts."""
        found, some = np.zeros(len(self)), np.flatnonzero(self.sizes)
        found[some] = np.maximum.reduceat(np.abs(numbers), self.offsets[some])
        return found

    def spread(self, numbers: npt.NDArray[T]) -> npt.NDArray[T]:
        """One number an instance, repeated for each of its parts."""
        return np.repeat(numbers, self.sizes)

    def split(self, numbers: Floats) -> list[Floats]:
        """Views of a flat array, one an instance."""
        return [numbers[a:b] for a, b in pairwise(self.offsets.tolist())]

    def take(self, rows: Integers) -> tuple["Scores", Integers]:
        """The batch of some of its instances, and where their scores lie in arrays of this one."""
        places = spans(self.offsets[rows], self.offsets[rows + 1])
        fixed = None if self.mask is None or self.fixed is None else (self.mask[places], self.fixed[places])
        shapes = [self.shapes[i] for i in rows.tolist()]
        return Scores(self.oracle, shapes, ends_of(self.sizes[rows]), fixed, self.n_jobs), places

    def copies(self, m: int) -> "Scores":
        """The batch m times, one copy behind the other."""
        if m not in self._copies:
            starts = self.size * np.arange(m, dtype=np.int64)[:, None]
            offsets = np.append((starts + self.offsets[:-1]).ravel(), m * self.size)
            fixed = None if self.mask is None or self.fixed is None else (np.tile(self.mask, m), np.tile(self.fixed, m))
            self._copies[m] = Scores(self.oracle, self.shapes * m, offsets, fixed, self.n_jobs)
        return self._copies[m]
