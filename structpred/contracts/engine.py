"""What the contract checks share: guarded calls of an oracle, a list of broken rules, and the known outputs of a shape.

A check ends in a report where everything held, else in an error that lists the broken rules.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape, capabilities
from structpred.core.types import AnyArray, ArrayLike, Floats
from structpred.errors import OracleError, StructpredError
from structpred.text.markup import join, preformatted, tag

#: enumerations longer than this are not walked to the end: the shape then counts as one without `enumerate`
MAX_OUTPUTS = 20_000


#: arrays of an answer that are compared after the next call
N_HELD = 3
#: methods that search nothing, whose calls are not counted
_LIGHT = frozenset({"n_parts", "parts", "enumerate", "label_grid", "example_shapes"})


@dataclass
class Broken:
    """The first case in which a rule was broken, and how often it was broken in all."""

    where: str
    expected: str
    came: str
    cause: str
    times: int = 1


@dataclass
class Space:
    """The outputs of a shape that are known: all of them (`complete`), or those that argmax gave for many scores.

    counts has a row mu(y) for each of `labels`.
    """

    shape: Shape
    n_parts: int
    labels: list[Labels]
    counts: Floats
    complete: bool
    index: dict[bytes, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.index = {y.tobytes(): k for k, y in enumerate(self.labels)}

    def scores(self, theta: Scores) -> Floats:
        """The score of each known output."""
        return self.counts @ theta

    def outside_hull(self, mu: Floats) -> float | None:
        """About how far mu is from the hull of all outputs; None where they are not all known, or too many."""
        if not self.complete or self.counts.size > 100_000:
            return None
        from scipy.optimize import nnls

        return float(nnls(np.vstack((self.counts.T, np.ones(len(self.labels)))), np.append(mu, 1.0))[1])


class Examiner:
    """Calls an oracle's methods, watches what they do to their arguments, and collects the rules that are broken.

    A method that raises, or answers with something that cannot be checked further, ends the case: OracleError. So does a call
    after `max_calls` of them: what is left is not checked.
    """

    def __init__(self, oracle: Any, rng: np.random.Generator, max_calls: int | None = None) -> None:
        self.oracle, self.rng, self.name = oracle, rng, getattr(oracle, "__name__", type(oracle).__name__)
        self.calls, self.max_calls = 0, max_calls
        self.has = capabilities(oracle)
        self.broken: dict[str, Broken] = {}
        self.checked: Counter[str] = Counter()
        self.skipped: dict[str, str] = {}
        self.cpu_seconds: list[float] = []  # of each argmax, for the report alone: nothing is decided by it
        self._held: dict[str, list[AnyArray]] = {}

    def expect(self, rule: str, ok: object, where: object, expected: str, came: object, cause: str) -> bool:
        """Count one check of a rule; note it as broken unless `ok`. Returns whether it held."""
        self.checked[rule] += 1
        if ok:
            return True
        if rule in self.broken:
            self.broken[rule].times += 1
        else:
            self.broken[rule] = Broken(str(where), expected, brief(came), cause)
        return False

    def insist(self, rule: str, ok: object, where: object, expected: str, came: object, cause: str) -> None:
        """As `expect`, but the case ends where the rule is broken."""
        if not self.expect(rule, ok, where, expected, came, cause):
            raise OracleError(rule)

    def call(self, method: str, where: object, *args: Any, given_by: str | None = None) -> Any:
        """Call a method with copies of the arrays among `args`; they, and earlier answers, must come back unchanged.

        given_by: the method whose answer is among the arguments: it is at fault where they are refused.
        """
        if method not in _LIGHT:
            self.calls += len(args[2]) if method.endswith("_batch") else 1
            if self.max_calls is not None and self.calls > self.max_calls:
                self.skip(f"some answers of {method}", f"more than {self.max_calls} calls of the oracle")
                raise OracleError(method)
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        earlier = [(name, a, a.copy()) for name, held in self._held.items() for a in held]
        start = time.process_time()
        try:
            result = getattr(self.oracle, method)(*given)
        except Exception as error:
            came = f"{type(error).__name__}: {error}"
            if given_by is None:
                cause = "a bug in the method, or a shape that it was not written for"
                self.expect("no exceptions", False, where, f"an answer from {method}", came, cause)
            else:
                cause = f"a constraint that {given_by} forgets, or a {method}() that is too strict"
                self.expect("infeasible output", False, where, f"{given_by} to give an output that {method}() takes", came, cause)
            raise OracleError(method) from error
        if method == "argmax":
            self.cpu_seconds.append(time.process_time() - start)
        self.checked["no exceptions"] += 1
        for name, held, copy in earlier:
            self.left_alone(held, copy, where, name, method)
        self._held[method] = list(islice(_arrays(result), N_HELD))
        for before, after in zip(args, given, strict=True):
            if isinstance(before, np.ndarray):
                same = np.array_equal(before, after)
                cause = "an operation in place (+=, sort, out=...): work on a copy"
                self.expect("mutated input", same, where, f"{method} to leave its arguments as they are", "changed ones", cause)
        return result

    def pair(self, rule: str, method: str, where: object, *args: Any, gives: str) -> Any:
        """What a method gives, if that is a pair: `gives` names its two members; else the case ends."""
        found = self.call(method, where, *args)
        expected, cause = f"{method} to give {gives}", "see the method's signature"
        self.insist(rule, isinstance(found, tuple) and len(found) == 2, where, expected, found, cause)
        return found

    def ask(self, call: Callable[..., Any], where: object, *args: Any, **options: Any) -> Any:
        """What a call gives that may fill its arguments, or an answer again; the case ends where it raises."""
        try:
            found = call(*args, **options)
        except Exception as error:
            name, came = getattr(call, "__name__", "a call"), f"{type(error).__name__}: {error}"
            self.insist("no exceptions", False, where, f"an answer from {name}", came, "a bug in the method")
        self.checked["no exceptions"] += 1
        return found

    def near(self, rule: str, found: Any, wanted: Any, where: object, what: str, cause: str, tol: Any = 1e-9) -> bool:
        """Whether numbers agree, to `tol` times 1 + the wanted ones."""
        found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
        ok = found.shape == wanted.shape and bool((np.abs(found - wanted) <= tol * (1.0 + np.abs(wanted))).all())
        return self.expect(rule, ok, where, f"{what}, {brief(wanted)}", found, cause)

    def left_alone(self, held: AnyArray, copy: AnyArray, where: object, name: str, method: str) -> None:
        """An earlier answer of the method `name` is as it was before a call of `method`."""
        if held.tobytes() == copy.tobytes():
            self.checked["shared buffer"] += 1
            return
        cause = "one array is filled again in every call: return a copy of it"
        expected = f"the answer of {name}, {brief(copy)}, to stay as it is when {method} is called next"
        self.expect("shared buffer", False, where, expected, held, cause)

    def labels(self, found: object, where: object, method: str) -> Labels:
        """`found` if it is a 1-d int64 array, else the case ends."""
        array = np.asarray(found) if not isinstance(found, list | tuple) else None
        if array is not None and array.dtype.kind == "f" and np.isnan(array).any():
            self.insist("NaN", False, where, f"{method} to give labels", found, "a division by zero, or inf - inf")
        ok = isinstance(found, np.ndarray) and found.dtype == np.int64
        cause = "end the method with labels.astype(np.int64), or build the array with dtype=np.int64"
        self.insist("wrong dtype", ok, where, f"{method} to give a NumPy array of int64", kind_of(found), cause)
        assert isinstance(found, np.ndarray)
        cause = "a row or a column of a matrix, or a single number: use labels.ravel() or np.array([label])"
        self.insist("wrong dimension", found.ndim == 1, where, f"{method} to give a 1-d array", kind_of(found), cause)
        return found

    def numbers(self, found: object, length: int, where: object, method: str) -> Floats:
        """`found` if it is a 1-d float64 array of that length without NaN, else the case ends."""
        ok = isinstance(found, np.ndarray) and found.dtype == np.float64
        self.insist(
            "wrong dtype", ok, where, f"{method} to give a NumPy array of float64", kind_of(found), "see the method's signature"
        )
        assert isinstance(found, np.ndarray)
        right = found.shape == (length,)
        self.insist(
            "wrong dimension", right, where, f"{method} to give {length} numbers, one per part", kind_of(found), "a wrong shape"
        )
        self.finite(found, where, method)
        return found

    def finite(self, found: Any, where: object, method: str) -> None:
        """The case ends where a number is NaN or infinite."""
        cause = "exp or log without taking the largest score out first, or inf - inf"
        self.insist("NaN", np.isfinite(found).all(), where, f"{method} to give finite numbers", found, cause)

    def parts(self, labels: Labels, shape: Shape, n_parts: int, *, twice: bool = True, given_by: str | None = None) -> Floats:
        """mu(labels), after checking what `parts` returns; what `point` gives, where outputs are points."""
        where = place(shape)
        if "point" in self.has:
            return self.numbers(self.call("point", where, labels, shape, given_by=given_by), n_parts, where, "point").copy()
        found = self.call("parts", where, labels, shape, given_by=given_by)
        ok = isinstance(found, np.ndarray) and found.dtype == np.int64 and found.ndim == 1
        cause = "float arithmetic in an index (use //), or a list: np.array(..., dtype=np.int64)"
        self.insist("parts dtype", ok, where, "parts to give a 1-d int64 array", kind_of(found), cause)
        inside = not found.size or (found.min() >= 0 and found.max() < n_parts)
        cause = "n_parts and parts number the parts differently, or these labels are not a valid output"
        self.insist("parts range", inside, where, f"parts in [0, {n_parts}) for labels {brief(labels)}", found, cause)
        if twice:
            again = self.call("parts", where, labels, shape)
            cause = "state kept between calls, a random number, or the order of a set"
            same = np.array_equal(found, again)
            self.insist("parts change", same, where, f"twice the same parts: {brief(found)}", again, cause)
        return np.bincount(found, minlength=n_parts).astype(np.float64)

    def skip(self, rule: str, reason: str) -> None:
        """Say in the report why a rule was not checked."""
        self.skipped.setdefault(rule, reason)


def enumerated(examiner: Examiner, shape: Shape, n_parts: int, most: int = MAX_OUTPUTS) -> Space | None:
    """All outputs of a shape by the oracle's own `enumerate`; None if it has none or there are too many."""
    if "enumerate" not in examiner.has:
        return None
    where = place(shape)
    found = examiner.call("enumerate", where, shape)
    most = min(most, examiner.max_calls or most)
    labels = list(islice(_walk(examiner, found, where), most + 1))
    if len(labels) > most:
        examiner.skip(f"{where} against all outputs", f"more than {most} outputs: give smaller shapes")
        return None
    cause = "the same output reached in two ways: keep a set, or enumerate in a canonical order"
    n_unique = len({y.tobytes() for y in labels})
    examiner.insist("duplicates", n_unique == len(labels), where, f"{len(labels)} different outputs", f"{n_unique}", cause)
    cause = "an empty loop or a spent iterator"
    examiner.insist("duplicates", labels, where, "enumerate to give at least one output", "none", cause)
    counts = [examiner.parts(y, shape, n_parts, twice=k < 100) for k, y in enumerate(labels)]
    return Space(shape, n_parts, labels, np.array(counts).reshape(len(labels), n_parts), True)


def _walk(examiner: Examiner, found: Any, where: str) -> Iterator[Labels]:
    """Copies of the outputs, each of which must still be what it was when the next one comes."""
    held = copy = np.empty(0, np.int64)
    try:
        for y in found:
            examiner.left_alone(held, copy, where, "enumerate", "the next step of enumerate")
            held = examiner.labels(y, where, "enumerate")
            copy = held.copy()
            yield copy
    except OracleError:
        raise
    except Exception as error:
        came = f"{type(error).__name__}: {error}"
        cause = "a bug in the method, or not an iterable of labels"
        examiner.insist("no exceptions", False, where, "outputs from enumerate", came, cause)


def pooled(shape: Shape, n_parts: int, found: Sequence[tuple[Labels, Floats]]) -> Space:
    """The outputs met so far, each once."""
    unique = {y.tobytes(): (y, mu) for y, mu in found}
    labels, counts = [y for y, _ in unique.values()], [mu for _, mu in unique.values()]
    return Space(shape, n_parts, labels, np.array(counts).reshape(len(labels), n_parts), False)


def tolerance(values: ArrayLike) -> float:
    """1e-9, relative to the largest value: what correct ways of adding differ by; float32 does not reach it."""
    return 1e-9 * max(1.0, float(np.abs(values).max(initial=0.0)))


def place(shape: Shape) -> str:
    """A shape as the place where a rule was tried."""
    return f"shape {brief(shape) if not isinstance(shape, str) else repr(shape)}"


def _arrays(found: object) -> Iterator[AnyArray]:
    """The arrays in an answer, also those in its tuples and lists."""
    if isinstance(found, np.ndarray):
        yield found
    elif isinstance(found, tuple | list):
        for one in found:
            yield from _arrays(one)


def kind_of(found: object) -> str:
    """Type, dtype and dimensions in words."""
    if isinstance(found, np.ndarray):
        return _kind_of_array(found.dtype, found.shape)
    return f"{type(found).__name__}: {brief(found)}"


@lru_cache(maxsize=256)  # asked for at every check, read only where one fails
def _kind_of_array(dtype: np.dtype[Any], dimensions: tuple[int, ...]) -> str:
    return f"a {len(dimensions)}-d array of {dtype} with shape {dimensions}"


def brief(found: object) -> str:
    """At most 80 characters of anything."""
    if isinstance(found, str):
        return found
    text = repr(found.tolist() if isinstance(found, np.ndarray) and found.size <= 40 else found).replace("\n", " ")
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass(frozen=True)
class Report:
    """What was checked and held. checked: rule -> number of checks. skipped: rule -> the reason why it was not checked."""

    name: str
    shapes: tuple[Shape, ...]
    checked: dict[str, int]
    skipped: dict[str, str]

    def __str__(self) -> str:
        """One line a rule."""
        lines = [f"{self.name} satisfies its contract on {len(self.shapes)} shapes: {brief(list(self.shapes))}"]
        lines += [f"  held      {rule} ({n} checks)" for rule, n in sorted(self.checked.items())]
        lines += [f"  unchecked {rule}: {reason}" for rule, reason in sorted(self.skipped.items())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The outcome for notebooks; the rules unfold."""
        first, *rules = str(self).splitlines()
        count = f"{len(self.checked)} rules held, {len(self.skipped)} were not checked"
        return join(tag("p", first), tag("details", tag("summary", count), preformatted("\n".join(rules))))


@dataclass(frozen=True)
class OracleReport(Report):
    """The report of an oracle.

    argmax_seconds is the median CPU time of one argmax on these (small) shapes, for information: nothing depends on it.
    """

    argmax_seconds: float

    def __str__(self) -> str:
        """One line a rule, and the time of one argmax."""
        return f"{super().__str__()}\n  argmax takes {1e6 * self.argmax_seconds:.0f} CPU microseconds on these shapes (median)"


def reported(examiner: Examiner, error: type[StructpredError], shapes: Iterable[Shape] = ()) -> Report:
    """The report of what was examined on these shapes.

    Raises `error` if a rule is broken: one line a rule, with the place, what was expected, what came, and the likely cause.
    """
    if not examiner.broken:
        return Report(examiner.name, tuple(shapes), dict(examiner.checked), examiner.skipped)
    lines = [f"{examiner.name} breaks {len(examiner.broken)} of the rules of its contract:"]
    for rule, case in examiner.broken.items():
        often = f" ({case.times} times in all)" if case.times > 1 else ""
        lines.append(f"- {rule}, at {case.where}{often}: expected {case.expected}; got {case.came}. Likely cause: {case.cause}.")
    raise error("\n".join(lines))


def examined(
    thing: object, examine: Callable[..., object], error: type[StructpredError], seed: int, shapes: Iterable[Shape] | None = None
) -> Report:
    """The report of an examination, which may end where a case ends: examine(examiner), or (examiner, shape) for each shape."""
    examiner, tried = Examiner(thing, np.random.default_rng(seed)), None if shapes is None else list(shapes)
    for args in [()] if tried is None else [(shape,) for shape in tried]:
        with suppress(OracleError):
            examine(examiner, *args)
    return reported(examiner, error, tried or ())
