"""Signs of weights by their names: the setting `signs` of estimators, and which of these constraints bind."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.regulariser import capabilities
from structpred.core.result import Result
from structpred.core.types import Integers
from structpred.errors import ParameterError
from structpred.objectives.regularisers.l2 import SignConstraints, checked_signs
from structpred.text.suggestions import did_you_mean
from structpred.trainers.problem import Problem

Signs = npt.NDArray[np.int8]

#: what users give: a sign for each weight of coef_, or signs by names, in which * stands for any text
SignSetting = Mapping[str, int] | npt.ArrayLike

#: between the two parts of a name: what is seen, and the label that it speaks for
ARROW = " -> "
#: how many names are looked at for one that may have been meant
_LOOKED_AT = 20_000
#: a relative gap that leaves no doubt of weights that are all zero
CLOSED = 0.01


@dataclass(frozen=True)
class NameTable:
    """Weights called "ROW -> COLUMN": that of row i and column j is number start + i * row_step + j * column_step.

    columns: empty where names have no such part. parts: what a name stands for, as pairs (offset, factor): weights at these
    distances from its number, whose sign is factor times that of the name. span: how many weights in a row each of them is.
    """

    rows: Sequence[str]
    columns: Sequence[str] = ()
    start: int = 0
    row_step: int = 1
    column_step: int = 0
    parts: tuple[tuple[int, int], ...] = ((0, 1),)
    span: int = 1

    def places(self, pattern: str) -> Iterator[tuple[Integers, int]]:
        """(weights, factor) of the names that a pattern matches. Without an arrow it is about all columns."""
        left, arrow, right = pattern.rpartition(ARROW)
        ways = [(pattern, "*"), (left, right)] if arrow and self.columns else [(pattern, "*")]
        for row, column in ways:
            i = _matching(row, self.rows, self._places[0])
            j = _matching(column, self.columns, self._places[1]) if self.columns else np.zeros(1, np.int64)
            at = (self.start + i[:, None] * self.row_step + j * self.column_step).ravel()
            if len(at):
                for offset, factor in self.parts:
                    yield ((at + offset)[:, None] + np.arange(self.span)).ravel(), factor

    def name(self, weight: int) -> tuple[str, int] | None:
        """(name, factor) of a weight; None for one of another table."""
        for offset, factor in self.parts:
            rest = weight - self.start - offset
            steps = (self.row_step, self.column_step)
            first, rest = divmod(rest, max(steps)) if self.span == 1 else (0, rest)
            second, rest = divmod(rest, min(steps)) if min(steps) and self.span == 1 else (0, rest)
            i, j = (first, second) if self.row_step >= self.column_step else (second, first)
            if 0 <= rest < self.span and 0 <= i < len(self.rows) and 0 <= j < max(len(self.columns), 1):
                return (f"{self.rows[i]}{ARROW}{self.columns[j]}" if self.columns else self.rows[i]), factor
        return None

    @cached_property
    def _places(self) -> list[dict[str, int]]:
        """The numbers of rows, and of columns, by their names."""
        return [{name: k for k, name in enumerate(names)} for names in (self.rows, self.columns)]


#: the names of all weights that have one; asked for only where there are signs
Names = Callable[[], Sequence[NameTable]]


class BindingSign(NamedTuple):
    """A constraint that binds. name, sign: of the weight. weight: its value, 0 at the optimum.

    pull: what its value would be if the dual point were not projected: of the other sign, and large where the data contradict.
    """

    name: str
    sign: int
    weight: float
    pull: float


def group_names(groups: npt.NDArray[np.int64], names: Sequence[str]) -> list[NameTable]:
    """All weights of a group, such as those of a template, under the name of the group."""
    bounds = np.asarray(groups).tolist()
    return [NameTable([name], start=a, span=b - a) for name, a, b in zip(names, bounds[:-1], bounds[1:], strict=True)]


def name_of(weight: int, tables: Sequence[NameTable]) -> tuple[str, int]:
    """(name, factor) of a weight; its number where it has no name.

    >>> name_of(3, [NameTable(["a", "b"], ["x", "y"], row_step=2, column_step=1)])
    ('b -> y', 1)
    """
    return next((found for table in tables if (found := table.name(weight)) is not None), (f"#{weight}", 1))


def resolve_signs(signs: SignSetting, tables: Sequence[NameTable], dim: int) -> Signs:
    """The sign of each weight, 0 where it is free, from an array or from a dict {pattern: sign}.

    Raises ParameterError for a pattern that matches no name, with the nearest one; for patterns of different signs that match
    the same weight; for other signs than -1 and 1 (in arrays also 0), and for arrays of another length.

    >>> resolve_signs({"a -> *": 1, "* -> y": -1}, [NameTable(["b", "c"], ["x", "y"], row_step=2, column_step=1)], 4)
    Traceback (most recent call last):
    ...
    structpred.errors.ParameterError: signs: no weight is called 'a -> *'; there are 'b -> x' to 'c -> y'
    """
    if isinstance(signs, str):
        raise ParameterError(f"signs: expected a dict of names and signs, or an array with a sign for each weight, got {signs!r}")
    if not isinstance(signs, Mapping):
        found = checked_signs(signs)
        if found.shape != (dim,):
            raise ParameterError(
                f"signs: expected one for each of {dim} weights, got {found.size}; a dict of names and signs needs no counting"
            )
        return found
    out, claimed = np.zeros(dim, np.int8), list[str]()
    for pattern, sign in signs.items():
        if not isinstance(pattern, str):
            raise ParameterError(f"signs: expected names of weights, or patterns, as keys, got {pattern!r}")
        if isinstance(sign, bool) or sign not in (-1, 1):
            raise ParameterError(f"signs: {pattern!r}: expected 1 (not negative) or -1 (not positive), got {sign!r}")
        places = [pair for table in tables for pair in table.places(pattern)]
        if not places:
            raise _unknown(pattern, tables)
        for at, factor in places:
            clash = at[out[at] == -sign * factor]
            if len(clash):
                raise _conflict(int(clash[0]), [*claimed, pattern], signs, tables)
            out[at] = sign * factor
        claimed.append(pattern)
    return out


def with_signs(problem: Problem, result: Result) -> Result:
    """The result without its dual point; under signs with report["signs"] and, if there was one, report["binding"].

    signs: a row of where runs of equal signs end, and a row of these signs. binding: a row of the weights that the dual point
    pulls against their sign, the strongest first, and a row of these pulls. Raises ParameterError where no weight could move:
    all are zero, without the signs the dual point would give others, and either the gap is closed or every pull is against its
    sign. Zero weights of an unfinished run prove nothing.
    """
    report = dict(result.report)
    point = report.pop("dual_point", None)
    regulariser = problem.regulariser
    if isinstance(regulariser, SignConstraints) and regulariser.signs.ndim:
        signs = regulariser.signs
        if not result.weights.any() and result.passes and point is not None and _forced_to_zero(problem, result, signs, point):
            raise ParameterError(
                "signs: they force all weights to zero: whatever the training data say of a weight, its sign forbids. +1 means "
                "that a weight must not be negative, -1 that it must not be positive: are some the wrong way round?"
            )
        ends = np.flatnonzero(np.append(signs[1:] != signs[:-1], True))
        report["signs"] = np.array([ends + 1, signs[ends]], np.float64)
        if point is not None:
            at = np.flatnonzero(signs * point < 0.0)
            at = at[np.argsort(-np.abs(point[at]), kind="stable")]
            report["binding"] = np.array([at, point[at]], np.float64)
    return replace(result, report=report)


def _forced_to_zero(problem: Problem, result: Result, signs: Signs, point: Any) -> bool:
    gap, against = result.certificate.relative_gap, signs * point < 0.0
    if not against.any() or not ((gap is not None and gap <= CLOSED) or (against | (point == 0.0)).all()):
        return False
    free = getattr(problem.regulariser, "of", None)  # None: 1/2 |w|^2, where weights without signs are the point itself
    return free is None or "dual_map" not in capabilities(free) or bool(free.dual_map().weights(point).any())


def signs_from(report: Mapping[str, npt.NDArray[np.float64]], dim: int) -> Signs:
    """The signs that `with_signs` has reported; all zero where there were none."""
    out = np.zeros(dim, np.int8)
    if "signs" in report:
        ends, signs = report["signs"]
        found = np.repeat(signs.astype(np.int8), np.diff(ends.astype(np.int64), prepend=0))
        out[: len(found)] = found
    return out


def check_report(report: Mapping[str, npt.NDArray[np.float64]], dim: int) -> None:
    """Raise ValueError where what a file says of signs does not fit this number of weights."""
    for name in ("signs", "binding"):
        if name in report:
            rows = report[name]
            if rows.ndim != 2 or len(rows) != 2 or not np.isfinite(rows).all() or (rows[0] != np.rint(rows[0])).any():
                raise ValueError(f"report.{name}: expected a row of whole numbers, and a row of numbers")
            if ((rows[0] < 0) | (rows[0] > dim - (name == "binding"))).any():
                raise ValueError(f"report.{name}: expected numbers of {dim} weights")
    if "signs" in report and ((np.diff(report["signs"][0]) < 0).any() or not np.isin(report["signs"][1], (-1, 0, 1)).all()):
        raise ValueError("report.signs: expected ascending ends, and -1, 0 or 1")


def binding_from(report: Mapping[str, npt.NDArray[np.float64]], weights: Any, tables: Sequence[NameTable]) -> list[BindingSign]:
    """The constraints that bind by name, the strongest pull first; of a name that stands for several weights one entry each."""
    found = []
    for weight, pull in report.get("binding", np.empty((2, 0))).T.tolist():
        name, factor = name_of(int(weight), tables)
        found.append(BindingSign(name, -factor * int(np.sign(pull)), factor * float(weights[int(weight)]) + 0.0, factor * pull))
    return found


def saved_signs(signs: SignSetting) -> dict[str, int] | str:
    """The setting for the header of a model file; of an array only a text that a second fit refuses."""
    if isinstance(signs, Mapping):
        return {str(pattern): int(sign) for pattern, sign in signs.items()}
    return "an array (that model files do not hold; give it again)"


def _matching(pattern: str, names: Sequence[str], place_of: Mapping[str, int]) -> Integers:
    """The places of the names that a pattern matches. Only * is special: names may contain brackets and question marks."""
    if pattern == "*":
        return np.arange(len(names))
    if "*" not in pattern:
        return np.array([place_of[pattern]] if pattern in place_of else [], np.int64)
    form = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
    return np.array([k for k, name in enumerate(names) if form.fullmatch(name)], np.int64)


def _unknown(pattern: str, tables: Sequence[NameTable]) -> ParameterError:
    """What there is, and what may have been meant."""
    if not tables:
        return ParameterError(f"signs: these weights have no names, so that {_shown(pattern)} means none; give an array")
    left, arrow, right = pattern.rpartition(ARROW)
    known = next((table for table in tables if arrow and next(table.places(left), None) is not None), None)
    if known is not None:
        hint = did_you_mean(right, known.columns) or f"; labels are {', '.join(map(repr, known.columns[:10]))}"
        return ParameterError(f"signs: no weight is called {_shown(pattern)}{hint}")
    rows = [name for table in tables for name in table.rows[:_LOOKED_AT]][:_LOOKED_AT]
    hint = did_you_mean((left if arrow else pattern).replace("*", ""), rows)
    last = tables[-1]
    names = [tables[0].name(tables[0].start + tables[0].parts[0][0])]
    ends = last.start + (len(last.rows) - 1) * last.row_step + (max(len(last.columns), 1) - 1) * last.column_step
    names.append(last.name(ends + last.parts[0][0]))
    listed = " to ".join(repr(found[0]) for found in names if found is not None)
    return ParameterError(f"signs: no weight is called {_shown(pattern)}; there are {listed}{hint}")


def _shown(pattern: str) -> str:
    """A pattern in a message, with the line of the file that it is from."""
    where = getattr(pattern, "where", "")
    return f"{pattern!r} ({where})" if where else repr(pattern)


def _conflict(weight: int, claimed: Sequence[str], signs: Mapping[str, int], tables: Sequence[NameTable]) -> ParameterError:
    """Which weight, and the first and the last of the patterns that say something of it."""
    name, _ = name_of(weight, tables)
    about = [pattern for pattern in claimed if any(weight in at for table in tables for at, _ in table.places(pattern))]
    rules = " and ".join(f"{_shown(pattern)}: {signs[pattern]:+d}" for pattern in (about[0], about[-1]))
    return ParameterError(f"signs: {name!r} would have to be zero: it is matched by {rules}; make one of the patterns narrower")
