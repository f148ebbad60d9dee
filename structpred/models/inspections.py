"""What the weights of a model say: what the inspections of all kinds of models share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.errors import ParameterError
from structpred.models.base import StructuredEstimator
from structpred.models.signs import name_of
from structpred.text.markup import preformatted
from structpred.text.tables import columns, cut


class Shown(ABC):
    """A dataclass that can be shown: as plain data, as text, and in a notebook."""

    @abstractmethod
    def table(self) -> str:
        """Plain text."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    def __str__(self) -> str:
        """The table."""
        return self.table()

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return preformatted(self.table())


@dataclass(frozen=True)
class WeightGroup:
    """A set of weights: how many, how many are not zero, and their Euclidean norm."""

    name: str
    n_weights: int
    n_nonzero: int
    norm: float


@dataclass(frozen=True)
class WeightInspection(Shown):
    """The weights of a model whose features have names.

    groups: how the weights are spread. positive, negative: (name, weight), the strongest first, zeros left out.
    """

    groups: list[WeightGroup]
    positive: list[tuple[str, float]]
    negative: list[tuple[str, float]]

    def table(self) -> str:
        """The groups, then the strongest weights side by side."""
        return "\n".join([*group_lines("weights", self.groups), "", *columns(self.positive, self.negative)])


def top_weights(model: StructuredEstimator, top: int) -> WeightInspection:
    """The `top` strongest positive and negative weights by name. Raises ParameterError for top < 1."""
    checked_top(top)
    model._check_fitted()
    blocks = np.split(model.coef_, model.groups_[1:-1])
    groups = [weight_group(name, block) for name, block in zip(model.group_names_, blocks, strict=True)]
    tables = model._name_tables()
    sides = [[(name_of(k, tables)[0], weight) for k, weight in side] for side in extremes(model.coef_, top)]
    return WeightInspection(groups, *sides)


def checked_top(top: Any) -> None:
    """Raise ParameterError unless it is a whole number >= 1."""
    if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
        raise ParameterError(f"top: expected a whole number >= 1, got {top!r}")


def extremes(values: npt.NDArray[Any], top: int) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """Places and values of the largest positive and the smallest negative entries; ties in order of place."""
    sides: list[list[tuple[int, float]]] = []
    for sign in (1.0, -1.0):
        signed = values * sign
        size = min(top, int(np.count_nonzero(signed > 0)))
        if not size:
            sides.append([])
            continue
        limit = np.partition(signed, -size)[-size]
        places = np.flatnonzero(signed >= limit)
        best = places[np.argsort(-signed[places], kind="stable")][:size]
        sides.append([(int(k), float(values[k])) for k in best])
    return sides[0], sides[1]


def weight_group(name: str, weights: npt.NDArray[Any]) -> WeightGroup:
    """How many weights there are, how many are not zero, and their norm."""
    norm = float(np.linalg.norm(weights.astype(np.float64)))
    return WeightGroup(name, weights.size, int(np.count_nonzero(weights)), norm)


def group_lines(heading: str, groups: Sequence[WeightGroup]) -> list[str]:
    """Groups of weights as a table."""
    lines = [f"{heading:<32} {'number':>10} {'not zero':>10} {'norm':>10}"]
    return lines + [f"{cut(g.name, 32):<32} {g.n_weights:>10} {g.n_nonzero:>10} {g.norm:>10.4g}" for g in groups]
