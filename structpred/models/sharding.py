"""How estimators are trained, on one machine or on shards: what must be known of all data, and the problem of each shard.

A shard's problem has only the weights that occur in it. The weights of a model are a table, a row for each feature, and a
tail that all shards have. `Columns` says which rows a shard has, and so where its weights stand among those of all shards
together (the whole), and where those of the whole stand among the model's.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from structpred.core.result import Result
from structpred.core.types import AnyArray, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.models.signs import Names
from structpred.task.task import Task
from structpred.trainers.shards.rounds import IndexMap

_SAMPLE = re.compile(r"\bsample (\d+)(?:, position (\d+))?")


class Columns(NamedTuple):
    """The weights of a model that occur in a shard, or in some shards: rows of its table, then the tail.

    rows: ascending row numbers; None: all. n_rows: those of the model's table. width: weights a row. tail: weights after the
    table. groups, group_names: those of the model's weights, as in `Task`.
    """

    rows: Integers | None
    n_rows: int
    width: int
    tail: int
    groups: Integers
    group_names: tuple[str, ...]

    @property
    def dim(self) -> int:
        """The number of weights."""
        return (self.n_rows if self.rows is None else len(self.rows)) * self.width + self.tail

    @property
    def own_groups(self) -> Integers:
        """The groups in the numbering of these weights."""
        if self.rows is None:
            return self.groups
        inside = np.searchsorted(self.rows, np.minimum(self.groups // self.width, self.n_rows)) * self.width
        return (inside + np.maximum(self.groups - self.n_rows * self.width, 0)).astype(np.int64)

    def at(self, whole: "Columns") -> IndexMap | None:
        """Where these weights are in the whole, which has all of them; None: both are the same."""
        if self.rows is None or (whole.rows is not None and np.array_equal(self.rows, whole.rows)):
            return None
        places = self.rows if whole.rows is None else np.searchsorted(whole.rows, self.rows)
        return IndexMap(places.astype(np.int64), self.width, self.tail, whole.dim)

    def spread(self, w: AnyArray) -> AnyArray:
        """The flat weights of the model that are `w` at these places, and zero at all others."""
        if self.rows is None:
            return w
        full = np.zeros(self.n_rows * self.width + self.tail, w.dtype)
        own = len(self.rows) * self.width
        full[: self.n_rows * self.width].reshape(-1, self.width)[self.rows] = w[:own].reshape(-1, self.width)
        full[self.n_rows * self.width :] = w[own:]
        return full

    def spread_result(self, result: Result) -> Result:
        """The result of training with these weights as one about all weights of the model."""
        report = {name: self.spread(x) if x.shape == (self.dim,) else x for name, x in result.report.items()}
        groups, names = self.groups, list(self.group_names)
        return replace(result, weights=self.spread(result.weights), report=report, groups=groups, group_names=names)


def whole_of(shards: Sequence[Columns]) -> Columns:
    """The weights that occur in some shard."""
    if not shards:
        raise ParameterError("expected at least one shard, got none")
    if any(columns.rows is None for columns in shards):
        return shards[0]._replace(rows=None)
    rows = np.unique(np.concatenate([columns.rows for columns in shards if columns.rows is not None]))
    return shards[0]._replace(rows=rows)


def holders_of(shards: Sequence[Columns], whole: Columns) -> Integers:
    """How many of the shards have each weight of the whole."""
    counts = np.zeros(whole.dim, np.int64)
    for columns in shards:
        at = columns.at(whole)
        if at is None:
            counts += 1
        else:
            at.add_to(counts, np.ones(columns.dim, np.int64))
    return counts


class Sharding(ABC):
    """How an estimator is trained: what all its data must agree on, then the problem of each shard.

    `fit` is this over one shard, in this process. A cluster runs `scan` and `task` where the shards are. A scan, a plan and a
    task pickle. A plan is small, unless it holds names of features or vectors of words, and does not depend on how the data are
    cut, but for last digits of scales. What it decides is decided here alone, for both.
    """

    #: whether the positions of a shard's samples may have weights
    weighs_tokens = False

    @abstractmethod
    def read(self, model: Any, X: Any, y: Any, *, whole: bool) -> Any:
        """The data, checked as far as a shard can be. whole: whether these are all there will be.

        X: as `fit` takes it; of a model of several stages also what was read for an earlier one. Raises ParameterError for
        settings, and DataError, naming the sample.
        """

    @abstractmethod
    def scanned(self, model: Any, data: Any) -> Any:
        """What all shards must agree on, of data that were read."""

    @abstractmethod
    def plan(self, model: Any, scans: Sequence[Any], classes: Sequence[Any] | None) -> Any:
        """What all shards agree on. Raises DataError where they cannot, and ParameterError for the settings."""

    @abstractmethod
    def built(self, model: Any, plan: Any, data: Any, *, sample_weight: Any = None, **given: Any) -> Task:
        """The problem of data that were read: of a shard in its `own` weights, else in all. given: what else `fit` takes."""

    @abstractmethod
    def keep(self, model: Any, plan: Any, result: Result, further: "Further") -> None:
        """Leave the model fitted. further: trains another estimator on the same data, for a model of two stages."""

    def prepared(self, model: Any, further: "Further") -> "Sharding":
        """The sharding that knows another estimator, trained on the same data, where one must be known before all else."""
        return self

    def shared(self, model: Any) -> "Sharding":
        """The sharding that goes to the shards, with what it is to read once for all of them."""
        return self

    def own(self, plan: Any, data: Any) -> tuple[Any, Columns | None]:
        """The data of a shard in the weights that occur in it, and which these are; None: all weights of the model."""
        return data, None

    def dev_scorer(self, model: Any, plan: Any, dev: Any) -> Callable[[Vector], float]:
        """The score on held-out data, as a function of all weights of the model."""
        return model._dev_scorer(plan, dev)

    def names(self, plan: Any) -> Names | None:
        """What the weights are called; None: as their groups are."""
        return None

    def scan(self, model: Any, X: Any, y: Any) -> Any:
        """What all shards must agree on, of one of them. Raises DataError, naming file and line where the data have them."""
        with placed(X):
            return self.scanned(model, self.read(model, X, y, whole=False))

    def task(
        self, model: Any, plan: Any, X: Any, y: Any, sample_weight: Any = None, token_weight: Any = None
    ) -> tuple[Task, Columns]:
        """The problem of one shard in its own weights. Raises as `scan` does.

        sample_weight: as `fit` takes it, a number for each sample of the shard. token_weight: the same for each position.
        """
        given = {} if token_weight is None else {"token_weight": token_weight}
        if given and not self.weighs_tokens:
            raise ParameterError(f"token_weight: {type(model).__name__} weighs whole samples alone; leave token_weight out")
        with placed(X):
            data, columns = self.own(plan, self.read(model, X, y, whole=False))
            task = self.built(model, plan, data, sample_weight=sample_weight, **given)
        groups = np.asarray(task.groups, dtype=np.int64), tuple(task.group_names)
        return task, Columns(None, task.dim, 1, 0, *groups) if columns is None else columns

    def fit(self, model: Any, X: Any, y: Any, *, dev: Any = None, **given: Any) -> None:
        """Train on one shard that has all data, in this process. They are read once, for all stages."""
        data = self.read(model, X, y, whole=True)

        def further(other: Any, how: Sharding) -> None:
            how.fit(other, data, None, **given)

        how = self.prepared(model, further)
        data = data if how is self else how.read(model, data, None, whole=True)
        plan = how.plan(model, [how.scanned(model, data)], None)
        task = how.built(model, plan, data, **given)
        scorer = None if dev is None else how.dev_scorer(model, plan, dev)
        how.keep(model, plan, model._train(task, scorer, how.names(plan)), further)


#: fits an estimator to the data, in this way
Further = Callable[[Any, Sharding], None]


def sharding_of(model: Any) -> Sharding:
    """How the estimator is trained on shards. Raises ParameterError for one that cannot be, and for settings that do not fit.

    >>> from structpred.models import ChainLabeler
    >>> sharding_of(ChainLabeler()) is not None
    True
    """
    found: Sharding | None = getattr(type(model), "_sharding", None)
    name = type(model).__name__
    if found is None:
        raise ParameterError(
            f"{name} cannot be trained on shards: use fit. Sequence labellers without a kernel, parsers, label sets, "
            "GraphLabeler and StructuredPredictor can"
        )
    for setting in ("signs", "warm_start", "kernel"):
        if getattr(model, setting, None):
            raise ParameterError(f"{setting}: training on shards does not take it; use fit")
    if getattr(model, "stages", 1) != 1:
        raise ParameterError("stages: training on shards has one; use fit")
    return found


def refuse_classes(model: Any, classes: Any) -> None:
    """Raise ParameterError where `classes` are given to an estimator that has none."""
    if classes is not None:
        raise ParameterError(f"classes: {type(model).__name__} has no list of labels; leave classes out")


@contextmanager
def placed(X: Any) -> Iterator[None]:
    """Errors that name a sample of a corpus name its file and line as well."""
    try:
        yield
    except (DataError, InfeasibleError) as error:
        found = _SAMPLE.search(str(error))
        if found is None or not (hasattr(X, "where") and hasattr(X, "offsets")):
            raise
        place = str(X.where(int(X.offsets[int(found[1])]) + int(found[2] or 0)))
        if place.startswith("sample "):  # it came from no file
            raise
        raise type(error)(f"{place}: {error}") from error
