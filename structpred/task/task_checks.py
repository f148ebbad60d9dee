"""What a task checks: its weights, whether labels are outputs, and whether an oracle visibly contradicts itself."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.own_code import asked_parts, blamed, own_code
from structpred.core.types import AnyArray, ArrayLike, Floats, Integers
from structpred.errors import DataError, InfeasibleError, OracleError, ParameterError

#: outputs listed in all, to see whether true labels are outputs: few enough to cost nothing compared with a pass
LISTED_OUTPUTS = 20_000
#: shapes, and outputs of them in all, with which an argmax from outside the package is compared at three score vectors each
COMPARED_SHAPES, COMPARED_OUTPUTS = 10, 2_000
#: by how much, relative to the sizes of the terms, a score may be wrong by rounding (solvers work to about 1e-8)
TOLERANCE = 1e-7
#: misses that are all smaller, relative to the score, are taken for a solver's gap
GAP = 0.05
_INTEGER = np.dtype(np.int64)
#: the best output of an instance at given scores, and the bound where there is one
Best = Callable[[Scores, int], tuple[Labels, float | None]]


def check_outputs(
    oracle: Oracle, labels: Sequence[Labels], shapes: Sequence[Shape], parts: Sequence[Integers], best: Best
) -> None:
    """Where the outputs of a shape can be listed, the true labels must be among them: `parts` may accept anything.

    So must be what `best` finds, the argmax of an instance, where that is code from outside the package.
    Shapes count as small where they have no more parts than the largest of the oracle's own example shapes.
    """
    if not callable(getattr(oracle, "enumerate", None)):
        return
    small = max((oracle.n_parts(shape) for shape in oracle.example_shapes()), default=0)
    known: dict[Shape, _Outputs | None] = {}
    left = LISTED_OUTPUTS
    to_compare = COMPARED_OUTPUTS if own_code(oracle) else 0
    for i, shape in enumerate(shapes):
        try:
            if shape not in known:
                known[shape] = _Outputs.of(oracle, shape, left) if oracle.n_parts(shape) <= small else None
                left -= len(known[shape] or ())
                if (new := known[shape]) and len(known) <= COMPARED_SHAPES and (to_compare := to_compare - len(new)) >= 0:
                    new.compare(best, i)
            if (outputs := known[shape]) is None or outputs.have(labels[i], parts[i]):
                continue
        except Exception as error:
            raise blamed(error, i, oracle, "enumerate") from error
        raise DataError(
            f"sample {i}: the true labels {np.array2string(labels[i], threshold=8)} are not among the "
            f"{len(outputs)} outputs that {type(oracle).__name__}.enumerate lists for the shape {shape}"
        )


class _Outputs:
    """What an oracle lists for a shape. Labels are compared first, which is quick: most are written as they are listed."""

    def __init__(self, oracle: Oracle, shape: Shape, listed: Sequence[Labels]) -> None:
        self.oracle, self.shape, self.listed = oracle, shape, listed
        self.written = {np.asarray(y, dtype=np.int64).tobytes() for y in listed}

    @staticmethod
    def of(oracle: Any, shape: Shape, most: int) -> "_Outputs | None":
        """Those of a shape; None where there are more than `most`."""
        listed = list(islice(oracle.enumerate(shape), most + 1))
        return None if len(listed) > most else _Outputs(oracle, shape, listed)

    def __len__(self) -> int:
        """How many they are."""
        return len(self.listed)

    @cached_property
    def keys(self) -> set[bytes]:
        """The parts of each."""
        return {_key(self.oracle.parts(y, self.shape)) for y in self.listed}

    def have(self, labels: Labels, parts: AnyArray) -> bool:
        """Whether these labels are among them, or others with the same parts."""
        return labels.tobytes() in self.written or _key(parts) in self.keys

    def compare(self, best: Best, i: int) -> None:
        """OracleError where the argmax of instance i misses the best listed output, or finds one that scores more than all."""
        n, name, rng = int(self.oracle.n_parts(self.shape)), type(self.oracle).__name__, np.random.default_rng(0)
        counts = np.array([np.bincount(asked_parts(self.oracle, i, y, self.shape), minlength=n)[:n] for y in self.listed])
        for theta in (rng.normal(size=n), rng.exponential(size=n), -rng.exponential(size=n)):
            labels, bound = best(theta, i)
            found, top = float(theta[asked_parts(self.oracle, i, labels, self.shape)].sum()), float((counts @ theta).max())
            room = TOLERANCE * (1.0 + float((counts @ np.abs(theta)).max()))
            claimed = bound if bound is not None else found if self.oracle.exact else np.inf
            if found > top + room or not top <= claimed + room:
                also = "" if bound is None else f" and the bound {bound:.9g}"
                raise OracleError(
                    f"sample {i}: {name}.argmax gave an output with the score {found:.9g}{also}, and the best of {len(self)} "
                    f"that enumerate lists for the shape {self.shape} has {top:.9g}: does it find what is no output, or minimise "
                    "(scores taken for costs)? If it is a heuristic, set exact = False; run check_oracle on it"
                )


def _key(parts: AnyArray) -> bytes:
    """Equal for equal multisets of parts."""
    return np.sort(parts).astype(np.int64).tobytes()


def doubtful(margin: Any) -> Any:
    """A violation below this looks like a contradiction; rounding may still explain it."""
    return -TOLERANCE * (1.0 + margin)


def gap_advice(error: float) -> str:
    """What to do where an exact oracle misses the maximum by this small share of it."""
    return (
        f"a solver that stops at a gap: relative error {error:.3g} at most here. Let it search on (HiGHS: mip_rel_gap=0), "
        "declare tolerance = its gap, or exact = False with its bound as argmax_bound"
    )


def refuse_contradiction(
    oracle: Oracle, i: int, scores: Scores, truth: Integers, found: Integers, bound: float | None = None,
    known: str = "the true output",
) -> None:  # fmt: skip
    """OracleError where the parts `found`, or `bound`, are said to be best at `scores`, but the parts `truth` score more.

    An inexact argmax without a bound says nothing of the kind. known: what messages call the output of the parts `truth`.
    """
    if bound is None and not oracle.exact:
        return
    name, least = type(oracle).__name__, float(scores[truth].sum())
    if bound is not None:
        own = callable(getattr(oracle, "argmax_bound", None))
        claim = f"{name}.argmax_bound gave the bound" if own else f"{name} with tolerance={oracle.tolerance} has the bound"
        claimed, cause = bound, "no output may score above it" if own else "its gap is larger than that"
    else:
        claimed, claim = float(scores[found].sum()), f"{name}.argmax gave an output with the score"
        cause = (
            "does it minimise (scores taken for costs)? If it is a heuristic, set exact = False; a solver that stops at a gap "
        )
        cause += "declares tolerance = its gap"
        if least - claimed <= GAP * (1.0 + abs(claimed)):
            cause = gap_advice((least - claimed) / (1.0 + abs(claimed)))
    size = float(np.abs(scores[found]).sum() + np.abs(scores[truth]).sum())
    if least - claimed > TOLERANCE * (1.0 + size):
        raise OracleError(
            f"sample {i}: {claim} {claimed:.9g}, but {known} has {least:.9g} at the same scores: {cause}; run check_oracle on it"
        )


def checked_bound(oracle: object, method: str, i: int, bound: float, found: Scores) -> float:
    """The bound that came with an output whose parts score `found`; OracleError unless it is finite and not below that."""
    score = float(found.sum())
    if score - TOLERANCE * (1.0 + float(np.abs(found).sum())) <= bound < np.inf:
        return bound
    raise OracleError(
        f"sample {i}: {type(oracle).__name__}.{method} gave the bound {bound:.9g} with an output that scores {score:.9g}: "
        "expected a finite number that no output exceeds, also from a solver that ran out of time; run check_oracle on it"
    )


def refuse_marginals(oracle: Oracle, i: int, log_z: float, truth: Scores) -> None:
    """OracleError where log_z is below the score of the true output, whose parts have the scores `truth`."""
    score = float(truth.sum())
    if log_z - score > -TOLERANCE * (1.0 + abs(log_z) + float(np.abs(truth).sum())):
        return
    if score <= 0.5 * FORBIDDEN:
        raise InfeasibleError(f"sample {i}: the true output is forbidden by the fixed scores")
    raise OracleError(
        f"sample {i}: {type(oracle).__name__}.marginals gave log_z = {log_z:.9g}, but the true output alone scores "
        f"{score:.9g}; run check_oracle on it"
    )


def true_parts(oracle: Oracle, labels: Sequence[Labels], shapes: Sequence[Shape], sizes: Integers) -> list[Integers]:
    """The parts of every true output; DataError where the oracle refuses one or gives parts outside [0, its size)."""
    known: dict[Any, Integers] = {}  # of rows of labels, which are often alike
    found = [_parts_of(oracle, i, y, shape, known) for i, (y, shape) in enumerate(zip(labels, shapes, strict=True))]
    flat, owners = np.concatenate([*found, np.empty(0, np.int64)]), np.repeat(np.arange(len(found)), [len(own) for own in found])
    if (wrong := np.flatnonzero((flat < 0) | (flat >= sizes[owners]))).size:
        i = int(owners[wrong[0]])
        raise DataError(f"sample {i}: the true labels have parts outside [0, {sizes[i]}); is a label out of range?")
    return found


def _parts_of(oracle: Oracle, i: int, labels: Labels, shape: Shape, known: dict[Any, Integers]) -> Integers:
    try:
        key = (id(shape), labels.dtype, labels.shape, labels.tobytes()) if type(labels) is np.ndarray else i
        if key not in known:
            known[key] = np.array(oracle.parts(labels, shape)).astype(np.int64, copy=False)
        return known[key]
    except (IndexError, ValueError, TypeError) as error:
        raise DataError(f"sample {i}: the true labels do not fit the shape {shape}: {error}") from error
    except Exception as error:
        raise blamed(error, i, oracle, "parts") from error


def checked_weights(sample_weight: ArrayLike | None, n: int) -> Floats:
    """n finite weights >= 0 with a positive sum (ones if there are none given), else ParameterError."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ParameterError(f"sample_weight must have one number per sample, shape ({n},), got shape {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum() > 0:
        raise ParameterError("sample_weight must be finite and >= 0 with a positive sum")
    return weights


def checked_token_weights(given: Sequence[ArrayLike], oracle: Oracle, shapes: Sequence[Shape]) -> list[Floats]:
    """One finite weight >= 0 for each position of each instance, else DataError, naming the sample."""
    weights, grid = [np.asarray(t, dtype=np.float64) for t in given], getattr(oracle, "label_grid", None)
    if len(weights) != len(shapes):
        raise DataError(f"{len(shapes)} samples but token weights for {len(weights)}")
    for i, t in enumerate(weights):
        n = t.size if grid is None else grid(shapes[i])[0]
        if t.shape != (n,):
            raise DataError(f"sample {i}: expected {n} token weights, one per position, got an array of shape {t.shape}")
        if not np.isfinite(t).all() or (t < 0).any():
            raise DataError(f"sample {i}: token weights must be finite and >= 0")
    return weights
