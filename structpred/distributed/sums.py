"""Sums over the shards, as tasks on workers: losses, gradients, planes and pieces at the weights that the client asks about."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from structpred.core.sparse import SparseVector
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.distributed.store import read_once
from structpred.distributed.tasks import Job, ReportNumbers, part_of, place_of
from structpred.task.steps import running_sum
from structpred.trainers.lbfgs import random_features, squared_gradients
from structpred.trainers.shards import rounds
from structpred.trainers.shards.rounds import Part, Report, losses_of


def losses(job: Job, k: int, n: str) -> float:
    """sum_i p_i H_i of shard k at the weights of `weights.n`."""
    with part_of(job, k) as (_, part):
        return losses_of(part, _weights(job, part, n))


def add_losses(job: Job, *values: float) -> float:
    """Their sum, in the order of the shards."""
    return running_sum(np.array(values))


def gradient(job: Job, k: int, n: str) -> Report:
    """sum_i p_i H_i of shard k at the weights of `weights.n`, and its gradient in the weights of the shard."""
    with part_of(job, k) as (_, part):
        problem, w = part.problem, _weights(job, part, n)
        values, slope = cast(Any, problem.surrogate).gradient(problem.task, w, problem.p)
        return Report((slope,), np.array([running_sum(problem.p * values)]))


def start(job: Job, k: int, n: str) -> Report:
    """Random features of shard k, of which L-BFGS makes its first weights where the problem is not convex."""
    with part_of(job, k) as (_, part):
        return Report((random_features(cast(Any, part.problem.task), k),), np.zeros(0))


def squares(job: Job, k: int, n: str) -> Report:
    """What each instance of shard k adds to the squared gradients at the weights of `weights.n`, in the weights of the shard."""
    with part_of(job, k) as (_, part):
        return Report((squared_gradients(part.problem, _weights(job, part, n)),), np.zeros(0))


def plane(job: Job, k: int, n: str) -> Report:
    """The linear pieces of shard k at the weights of `weights.n`, summed up: their slope, and as numbers value and constant."""
    with part_of(job, k) as (_, part):
        problem = part.problem
        w = cast(Vector, _weights(job, part, n).astype(problem.task.dtype))
        terms = cast(Any, problem.surrogate).terms(problem.task, w, np.arange(len(problem.task)), problem.p)
        return Report((terms.difference,), np.array([running_sum(problem.p * np.maximum(terms.bounds, 0.0)), terms.offset]))


def pieces(job: Job, k: int, n: str) -> None:
    """The linear piece of each instance of shard k at the weights of `weights.n`, in the numbering of the whole: `pieces.n.k`."""
    with part_of(job, k) as (_, part):
        problem = part.problem
        w = cast(Vector, _weights(job, part, n).astype(problem.task.dtype))
        steps = (problem.surrogate.term(problem.task, w, i) for i in range(len(problem.task)))
        # apart from buffers that the next step may use
        found = [(step.difference.indices.copy(), step.difference.values.copy(), *step[1:]) for step in steps]
        indices, values, *numbers = zip(*found, strict=True)
        flat = np.concatenate(indices)
        arrays = {
            "indices": flat if part.at is None else part.at.among(flat), "values": np.concatenate(values),
            "ends": np.cumsum([len(one) for one in indices]), "numbers": np.array(numbers, dtype=np.float64),
        }  # fmt: skip
        job.store.write(f"pieces.{n}.{k}", arrays)


def _weights(job: Job, part: Part, n: str) -> Floats:
    """Those of `weights.n` that occur in the shard. Nobody writes to them: all shards of a process may share them."""
    found = read_once(job.folder, f"weights.{n}")
    return found if part.at is None else part.at.of(found)


def sums_of(job: Job, n: str, ends: Sequence[int], *kept: ReportNumbers) -> tuple[list[float], str, Sequence[int]]:
    """The sums of the numbers, and where those of the vectors are in the store."""
    return [running_sum(column) for column in kept[0].numbers.T], n, ends


def cut(job: Job, k: int, start: int, stop: int, report: Report) -> Report:
    """What shard k says of the weights from start to stop of the whole."""
    at = place_of(job.folder, k)
    return Report(tuple(rounds.cut(change, at, start, stop) for change in report.changes), report.numbers)


def add(job: Job, first: int, start: int, stop: int, before: Report | None, *reports: Report) -> Report:
    """The sum `before` of earlier shards and what was cut for those from `first` on, in their order; numbers are put together."""
    totals = tuple(np.zeros(stop - start) for _ in reports[0].changes) if before is None else before.changes
    changes = []
    for j, sum_ in enumerate(totals):
        total = cast(Floats, sum_).copy()
        for k, report in enumerate(reports, first):
            change, at = report.changes[j], place_of(job.folder, k)  # pairs are in the numbering of the slice already
            rounds.add(total, change, None if at is None or isinstance(change, SparseVector) else at.cut(start, stop)[1])
        changes.append(total)
    numbers = np.array([report.numbers for report in reports])
    return Report(tuple(changes), numbers if before is None else np.concatenate([before.numbers, numbers]))


def keep(job: Job, n: str, start: int, total: Report) -> ReportNumbers:
    """Write the sums, vector j as `sum.n.j.start`."""
    for j, change in enumerate(total.changes):
        job.store.write(f"sum.{n}.{j}.{start}", {"vector": cast(Floats, change)})
    return ReportNumbers(len(total.changes), total.numbers)
