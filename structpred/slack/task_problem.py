"""The search problem of one instance of a core Task: h and g are affine in the part counts mu, so a query is an oracle call."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.group_scales import Scale
from structpred.core.oracle import Labels, Shape, capabilities
from structpred.core.own_code import asked, blamed, own_code
from structpred.core.packing import checked_labels
from structpred.core.requirements import require
from structpred.core.sparse import SparseVector
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.errors import OracleError
from structpred.slack.problem import NEEDS, Candidate, Levels, SlackProblem
from structpred.task.score_consistency import checked_product, kernels
from structpred.task.steps import running_sum
from structpred.task.task import PROBED, Task
from structpred.task.task_checks import TOLERANCE, checked_bound

#: the most outputs of one shape
MAX_OUTPUTS = 4096
#: the most labels and parts, in all outputs of all shapes of a task together
MAX_ENTRIES = 1 << 22


class Listing(NamedTuple):
    """All outputs of one shape. counts: CSR (n_outputs, n_parts), mu(y) in its rows. flat: the labels of all, cut at offsets."""

    counts: Any
    flat: Labels
    offsets: npt.NDArray[np.int64]

    def labels(self, k: int) -> Labels:
        """Output number k."""
        return self.flat[self.offsets[k] : self.offsets[k + 1]].copy()


_LISTINGS: WeakKeyDictionary[Task, Mapping[Shape, Listing]] = WeakKeyDictionary()


def listings(task: Task) -> Mapping[Shape, Listing]:
    """The listings of a task, made at the first call. What is listed depends on the task alone, not on what is asked first.

    `enumerate` may build all outputs before it returns the first: it is asked for shapes with no more parts than the largest of
    the oracle's example_shapes.

    Raises OracleError where `enumerate` fails, or gives what `parts` refuses.
    """
    if task not in _LISTINGS:
        _LISTINGS[task] = _list_shapes(task) if "enumerate" in capabilities(task.oracle) else {}
    return _LISTINGS[task]


def _list_shapes(task: Task) -> dict[Shape, Listing]:
    from scipy import sparse

    oracle = task.oracle
    largest = max((oracle.n_parts(shape) for shape in oracle.example_shapes()), default=0)
    first: dict[Shape, int] = {}
    for i, shape in enumerate(task.shapes):
        first.setdefault(shape, i)
    found: dict[Shape, Listing] = {}
    left = MAX_ENTRIES
    for shape, i in first.items():
        outputs = _outputs(task, i) if oracle.n_parts(shape) <= largest else None
        if outputs is None:
            continue
        parts = [task.parts_found(i, y) for y in outputs]
        ends, indptr = (np.cumsum([0, *map(len, rows)], dtype=np.int64) for rows in (outputs, parts))
        indices = np.concatenate([*parts, np.empty(0, np.int64)])
        counts = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(parts), task.features.n_parts(i)))
        flat = np.concatenate([*outputs, np.empty(0, np.int64)])
        left -= len(flat) + int(counts.nnz)
        if left < 0:
            break
        found[shape] = Listing(counts, flat, ends)
    return found


def _outputs(task: Task, i: int) -> list[Labels] | None:
    """The outputs of sample i's shape; None if there are more than MAX_OUTPUTS."""
    oracle: Any = task.oracle
    try:
        outputs = [np.array(y) for y in islice(oracle.enumerate(task.shapes[i]), MAX_OUTPUTS + 1)]
    except Exception as error:
        raise blamed(error, i, oracle, "enumerate") from error
    return None if len(outputs) > MAX_OUTPUTS else [checked_labels(y, oracle) for y in outputs]


#: what a problem offers -> the oracle methods that give it, for outputs and for points of a relaxation
_GIVEN_BY = {
    "constrained": ("argmax_constrained", "argmax_constrained_bound", "argmax_per_loss"),
    "levels": ("argmax_per_loss",),
    "slack_argmax": ("argmax_product",),
    "kbest": ("kbest",),
}
_GIVEN_BY_RELAXED: dict[str, tuple[str, ...]] = {
    "constrained": ("argmax_relaxed_constrained",),
    "levels": (),
    "slack_argmax": (),
    "kbest": (),
}


def oracle_needs(method: str, relaxed: bool) -> tuple[str | tuple[str, ...], ...]:
    """The oracle methods that a search needs, as `require` takes them.

    >>> oracle_needs("direct", False)
    ('argmax', ('argmax_product', 'argmax_per_loss'))
    """
    given_by = _GIVEN_BY_RELAXED if relaxed else _GIVEN_BY
    more = tuple(dict.fromkeys(name for offer in NEEDS.get(method, ()) for name in given_by[offer]))
    first = "argmax_relaxed" if relaxed else "argmax"
    return (first, more) if method in NEEDS else (first,)


class TaskProblem(SlackProblem):
    """Instance i at the weights scale * w: h(y) = 1 + theta . (mu(y) - mu(y_i)), g(y) = c + ell . mu(y).

    | query | oracle method |
    |---|---|
    | plain(lam) | argmax(theta + lam ell), or argmax_bound; relaxed: argmax_relaxed |
    | constrained | argmax_constrained_bound with two rows, or argmax_constrained; relaxed: argmax_relaxed_constrained |
    | levels | argmax_per_loss, where all costs are whole numbers |
    | slack_argmax | argmax_product, or a look at all outputs of a shape that has few (slack/task_problem.py) |
    | kbest | kbest, where argmax is exact |

    An oracle with argmax_per_loss alone still serves `constrained`, by choosing among the best outputs of each loss: an output
    with the same loss and a smaller h may lie inside the angle where the best one does not, but Phi of the best one is larger, so
    searches stay exact. relaxed=True works on the polytope of argmax_relaxed; labels are then points mu.
    An inexact argmax without argmax_bound has no bound at all: candidates have bound inf.
    """

    def __init__(self, task: Task, w: Vector, i: int, scale: Scale = 1.0, *, relaxed: bool = False) -> None:
        self.task, self.i, self.shape = task, i, task.shapes[i]
        self.relaxed = self.closed = relaxed
        self.oracle: Any = task.oracle
        self.has = capabilities(task.oracle)
        self.weights = w, scale
        self.theta = np.ascontiguousarray(task.scores(w, i, scale), dtype=np.float64)
        self.c, self.ell = task.costs(i)
        parts = task.parts[i]
        self.h0 = 1.0 - running_sum(self.theta[parts])
        # forbidden parts count as nothing in rows and mixtures: the scores alone keep them out
        self.allowed = np.where(self.theta <= 0.5 * FORBIDDEN, 0.0, self.theta)
        unit = task.cost_unit(i)
        self.whole = unit > 0
        #: losses are multiples of this number, if they are whole numbers
        self.unit = max(unit, 1)
        self.loss_unit = float(self.unit) if self.whole and not relaxed else 0.0
        # argmax_per_loss counts whole numbers, kbest is believed where argmax is exact
        unfit = ({"argmax_per_loss"} if not self.whole else set()) | ({"kbest"} if not self.oracle.exact else set())
        self.serving = self.has - unfit
        quick = relaxed or self.serving & {"argmax_product", "argmax_per_loss"}
        self.listing = None if quick else listings(task).get(self.shape)
        given_by = _GIVEN_BY_RELAXED if relaxed else _GIVEN_BY
        offers = {name for name, methods in given_by.items() if self.serving.intersection(methods)}
        self.offers = frozenset(offers if self.listing is None else offers | {"slack_argmax"})
        label = np.bincount(parts, minlength=len(self.theta)).astype(np.float64) if relaxed else task.labels[i]
        self.truth = Candidate(1.0, 0.0, label)
        self._levels: Levels | None = None

    @property
    def bounded(self) -> bool:
        """Whether plain queries come with a bound."""
        return self.relaxed or self.task.certified

    def require(self, method: str) -> None:
        """Raise MissingCapabilityError where the oracle lacks what the search `method` needs."""
        if self.offers.intersection(NEEDS.get(method, ())):
            return
        who = f"slack search {method!r}{' over the relaxation' if self.relaxed else ''}"
        if not self.whole and "argmax_per_loss" in self.has:
            who += " (whose argmax_per_loss serves only losses of whole numbers, and this one is not)"
        if not self.oracle.exact and "kbest" in self.has:
            who += " (whose kbest serves only where argmax is exact)"
        require(oracle_needs(method, self.relaxed), self.oracle, who, self.serving)

    def rescore(self, label: Any) -> Candidate:
        """The point of labels, or of a mu."""
        return self._relaxed_candidate(label) if self.relaxed else self._candidate(label)

    def _candidate(self, labels: Labels, bound: float = np.inf) -> Candidate:
        parts = self.task.parts_found(self.i, labels)
        loss = self.c + running_sum(self.ell[parts])
        if loss < 0.0:
            self.task.refuse_negative(self.i, loss, parts)
        return Candidate(self.h0 + running_sum(self.theta[parts]), loss, labels, bound)

    def _relaxed_candidate(self, mu: Floats, bound: float = np.inf) -> Candidate:
        return Candidate(self.h0 + float(self.allowed @ mu), self.c + float(self.ell @ mu), mu, bound)

    def plain(self, lam: float) -> Candidate:
        """argmax at theta + lam ell."""
        scores = self.theta + lam * self.ell
        if self.relaxed:
            found = self._relaxed_candidate(self._mu(self._ask("argmax_relaxed", scores, self.shape), "argmax_relaxed"))
            return found._replace(bound=found.value(lam))
        labels, bound = self.task.infer(scores, self.i)
        found = self._candidate(labels)
        if bound is not None:
            checked_bound(self.oracle, "argmax_bound", self.i, bound, scores[self.task.parts_found(self.i, labels)])
            bound = max(self.h0 + lam * self.c + bound, found.value(lam))
            if bound < self.truth.value(lam):
                self.task.refuse_contradiction(self.i, scores, self.task.parts_found(self.i, labels), bound)
            return found._replace(bound=bound)
        if found.value(lam) < self.truth.value(lam):
            self.task.refuse_contradiction(self.i, scores, self.task.parts_found(self.i, found.label))
        return found._replace(bound=found.value(lam) if self.oracle.exact else np.inf)

    def _ask(self, method: str, *args: Any) -> Any:
        """An optional method of the oracle; what it raises names the sample."""
        return asked(self.i, self.oracle, method, *args)

    def _mu(self, found: Any, method: str) -> Floats:
        mu = np.asarray(found, dtype=np.float64)
        if mu.shape != self.theta.shape or not np.isfinite(mu).all():
            raise OracleError(
                f"sample {self.i}: {type(self.oracle).__name__}.{method} must give {len(self.theta)} finite numbers, one per "
                f"part, got an array of shape {mu.shape}; run check_oracle on it"
            )
        return mu

    def constrained(self, lam: float, alpha: float, beta: float, beta_inclusive: bool) -> Candidate | None:
        """argmax_constrained with the two ends of the angle as rows."""
        if not self.relaxed and not self.has & {"argmax_constrained", "argmax_constrained_bound"}:
            g, h, outputs = self.levels()
            with np.errstate(invalid="ignore"):
                above = g >= beta * h if beta_inclusive else g > beta * h
                inside = np.flatnonzero((h > 0.0) & (g > 0.0) & (g < alpha * h) & above)
            if not len(inside):
                return None
            k = int(inside[(h + lam * g)[inside].argmax()])
            return Candidate(float(h[k]), float(g[k]), outputs[k], float(h[k] + lam * g[k]))
        scores, (rows, limits) = self.theta + lam * self.ell, self.angle_rows(alpha, beta, beta_inclusive)
        if self.relaxed:
            mu = self._ask("argmax_relaxed_constrained", scores, self.shape, rows, limits)
            found = None if mu is None else self._relaxed_candidate(self._mu(mu, "argmax_relaxed_constrained"))
            return found if found is None else found._replace(bound=found.value(lam))
        if "argmax_constrained_bound" not in self.has:
            labels = self._ask("argmax_constrained", scores, self.shape, rows, limits)
            if labels is None:
                return None
            found = self._candidate(checked_labels(labels, self.oracle))
            # what is best but forbidden says that nothing else is left
            return found._replace(bound=found.value(lam)) if found.h > 0.5 * FORBIDDEN else None
        labels, told = self._ask("argmax_constrained_bound", scores, self.shape, rows, limits)
        if told <= 0.5 * FORBIDDEN:
            return None
        bound = self.h0 + lam * self.c + float(told)
        own = np.full(1, -np.inf) if labels is None else scores[self.task.parts_found(self.i, labels)]
        if told != np.inf:  # by its contract: nothing is known
            checked_bound(self.oracle, "argmax_constrained_bound", self.i, float(told), own)
        if labels is None:
            return Candidate(1.0, 0.0, None, bound)
        found = self._candidate(checked_labels(labels, self.oracle))
        return found._replace(bound=max(bound, found.value(lam)))

    def angle_rows(self, alpha: float, beta: float, beta_inclusive: bool) -> tuple[Floats, Floats]:
        """(A, b) with A mu <= b for the angle. Two rows do: 0 <= beta h < g < alpha h says that h and g are positive.

        A strict end is b less one unit in the last place, so that the rows of two angles with a common end are complementary as
        float64 computes them. At alpha = inf the upper row is h > 0, at beta = 0 the lower one g > 0. Relaxations are closed.
        """
        upper, above = self._ray(alpha)
        lower, below = self._ray(beta)
        limits = np.array([above, -below])
        if self.closed:
            return np.vstack((upper, -lower)), limits
        limits[0] = np.nextafter(above, -np.inf)
        if not beta_inclusive:
            limits[1] = np.nextafter(-below, -np.inf)
        if self.whole and beta == 0.0:
            limits[1] = -below - 0.5 * self.unit  # g > 0 says g >= unit: a margin that solvers can see
        return np.vstack((upper, -lower)), limits

    def _ray(self, slope: float) -> tuple[Floats, float]:
        """(row, limit): row . mu < limit iff g < slope * h, scaled so that no coefficient is large."""
        if np.isinf(slope):
            return -self.allowed, self.h0
        size = max(1.0, slope)
        return (self.ell - slope * self.allowed) / size, (slope * self.h0 - self.c) / size

    def levels(self) -> Levels:
        """The best output of each loss, once per instance. Costs with a common divisor are divided by it first."""
        if self._levels is None:
            values, best, labels = self._ask("argmax_per_loss", self.theta, np.rint(self.ell / self.unit), self.shape)
            g = self.c + self.unit * np.asarray(values, np.float64)
            self._levels = Levels(g, self.h0 + np.asarray(best, np.float64), labels)
            k = int((np.maximum(self._levels.h, 0.0) * g).argmax())
            self._confirmed("argmax_per_loss", Candidate(float(self._levels.h[k]), float(g[k]), labels[k]))
        return self._levels

    def slack_argmax(self) -> Candidate:
        """argmax_product, or the best of all outputs listed."""
        if (listing := self.listing) is not None:
            products = np.maximum(self.h0 + listing.counts @ self.theta, 0.0) * (self.c + listing.counts @ self.ell)
            k = int(products.argmax())
            found = self._candidate(listing.labels(k))
            return found._replace(bound=max(found.phi, float(products[k])))
        labels = self._ask("argmax_product", self.theta, self.ell, np.array([self.h0, self.c]), self.shape)
        found = self._candidate(checked_labels(labels, self.oracle))
        return self._confirmed("argmax_product", found)._replace(bound=found.phi)

    def _confirmed(self, method: str, found: Candidate) -> Candidate:
        """What code of a user's own says has the largest Phi; for the first instances argmax may know no more."""
        if self.i >= PROBED or not own_code(self.oracle):
            return found
        truly, other = self._candidate(found.label), self.plain(max(found.h, 0.0) / found.g if found.g > 0.0 else 1.0)
        size = TOLERANCE * (1.0 + abs(self.h0) + abs(other.h)) * (1.0 + abs(self.c) + other.g)
        if abs(truly.phi - found.phi) > size or other.phi > found.phi + size:
            raise OracleError(
                f"sample {self.i}: the best output by {type(self.oracle).__name__}.{method} has loss times margin violation "
                f"{found.phi:.9g}, by its parts {truly.phi:.9g}, and one that argmax gives has {other.phi:.9g}; run check_oracle"
            )
        return found

    def kbest(self, lam: float, k: int) -> list[Candidate]:
        """kbest at theta + lam ell. OracleError for what cannot be that: a better one comes later, or the truth is left out."""
        listed = self._ask("kbest", self.theta + lam * self.ell, self.shape, k)
        found = [self._candidate(checked_labels(labels, self.oracle)) for labels in listed]
        values = np.array([one.value(lam) for one in found])
        size = TOLERANCE * (1.0 + abs(self.h0) + lam * abs(self.c) + np.abs(values))
        truth = any(abs(one.h - 1.0) + abs(one.g) <= tolerance for one, tolerance in zip(found, size, strict=True))
        if (values[1:] > values[:-1] + size[:-1]).any():
            fault = "an output that scores above the one before it"
        elif not truth and (len(found) < k or values[-1] < 1.0 - size[-1]):
            fault = "outputs that score below the true one, which is missing"
        else:
            return found
        raise OracleError(f"sample {self.i}: {type(self.oracle).__name__}.kbest gave {fault}; run check_oracle on it")

    def mix(self, t: float, first: Any, second: Any) -> Any:
        """t * first + (1 - t) * second."""
        return t * first + (1.0 - t) * second

    def difference(self, label: Any) -> SparseVector:
        """psi = phi(x_i, y_i) - phi(x_i, y), sorted and unique."""
        task, i = self.task, self.i
        if self.relaxed:
            error = self.truth.label - label
            at = np.flatnonzero(error)
            counts = error[at]
            gap, size = kernels().weigh(self.theta, at, counts)
        else:
            _, _, gap, size, at, counts = kernels().compare(task.parts[i], task.parts_found(i, label), 0.0, self.ell, self.theta)
        psi = task.adjoint(i, at, counts)
        checked_product(task.features, i, (at, counts), (gap, size), psi, *self.weights)
        return psi
