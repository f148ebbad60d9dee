"""The search, rung after rung, each decision from what is known, so that an interrupted one comes to the same end; and its runs.

They are in processes that end when the program that started them does; what is known of each is in a folder.
"""

import contextlib
import hashlib
import logging
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from structpred.errors import CheckpointError, ConvergenceError, DataError, NoUpdateWarning
from structpred.runtime.processes import Processes
from structpred.runtime.threads import checked_jobs
from structpred.storage import strict_json
from structpred.storage.atomic import remove_leftovers, storage_error, write_atomic
from structpred.storage.locks import exclusive
from structpred.trainers.running.checkpoints import remove_checkpoint
from structpred.tuning.halving import Rung, Setting, Trial, Tuned, described, plain

#: the file of the state
STATE = "tuning.json"


@dataclass
class Known:
    """What is known of one setting on one fold.

    passes: how many were asked for; training may have converged before. scores: after each pass. error: why training failed,
    where the setting is to blame.
    """

    passes: int = 0
    scores: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0
    error: str | None = None


class Folder:
    """The state of a search in a folder. `known` maps (number of the setting, fold) to what is known of it."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path, self.fingerprint = path, fingerprint
        self.known: dict[tuple[int, int], Known] = {}

    def checkpoint(self, setting: int, fold: int) -> Path:
        """Where the state of one run is kept."""
        return self.path / f"{setting:04d}-{fold}.ckpt"

    def save(self) -> None:
        """Write what is known, atomically."""
        runs = [{"setting": setting, "fold": fold, **asdict(known)} for (setting, fold), known in sorted(self.known.items())]
        write_atomic(self.path / STATE, strict_json.dump({"fingerprint": self.fingerprint, "runs": runs}, STATE))

    def load(self) -> None:
        """Read what an earlier search left here. Raises CheckpointError for one of other settings or data, or a damaged file."""
        file = self.path / STATE
        if not file.exists():
            if any(self.path.iterdir()):
                raise DataError(f"{self.path}: expected a new or an empty folder, or that of a search; it has other files")
            return
        try:
            state: Any = strict_json.load(file.read_bytes())
            fingerprint, rows = state["fingerprint"], [dict(row) for row in state["runs"]]
            self.known = {(row.pop("setting"), row.pop("fold")): _checked(Known(**row)) for row in rows}
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{file}: not the state of a search, or damaged: {error}") from error
        if fingerprint != self.fingerprint:
            raise CheckpointError(
                f"{self.path} holds another search: the data, the settings or the version differ; continue with the same ones, "
                "or give another folder"
            )


def _checked(known: Known) -> Known:
    numbers = [known.passes, known.cpu_seconds, *known.scores]
    if not all(type(number) in (int, float) for number in numbers) or not isinstance(known.error, str | None):
        raise ValueError("a run without numbers")
    if known.error is None and not known.scores:
        raise ValueError("a run without scores")
    return known


@contextlib.contextmanager
def opened(path: Path, fingerprint: str) -> Iterator[Folder]:
    """The folder, made if it is missing, with what an earlier search left there; nobody else uses it meanwhile.

    Raises DataError for what is no folder of a search, CheckpointError where another search is running in it.
    """
    folder = Folder(path, fingerprint)
    with contextlib.ExitStack() as stack:
        try:
            path.mkdir(exist_ok=True)
            stack.enter_context(exclusive(path.parent / f".{path.name}.lock"))
        except FileExistsError:
            raise DataError(f"{path}: expected a folder, got a file") from None
        except FileNotFoundError:
            raise DataError(f"{path}: the folder around it does not exist; make it first") from None
        except BlockingIOError as error:
            raise CheckpointError(f"{path}: another search is running in this folder") from error
        except OSError as error:
            raise storage_error(path, error) from error
        remove_leftovers(path / STATE)
        folder.load()
        folder.save()
        yield folder


class Job(NamedTuple):
    """One setting on one fold, to be trained to this number of passes in all. number, fold: of the setting, of the fold."""

    number: int
    setting: dict[str, Any]
    fold: int
    passes: int
    checkpoint: Path


class Work(Protocol):
    """What is tuned. It is pickled where there are several processes."""

    def fit(self, setting: dict[str, Any], fold: int, passes: int, checkpoint: Path) -> Sequence[float]:
        """Train to `passes` passes in all, from the checkpoint if there is one; the score on held-out data after each pass."""


def do(work: Work, job: Job) -> Known:
    """Do one job. A setting whose weights become infinite has failed; other errors are raised."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoUpdateWarning)  # of a first rung nothing else is expected
            scores, error = [float(score) for score in work.fit(job.setting, job.fold, job.passes, job.checkpoint)], None
    except ConvergenceError as failure:
        scores, error = [], str(failure)
    return Known(job.passes, scores, time.process_time() - start, error)


def all_done(processes: Processes, jobs: Sequence[Job]) -> Iterator[tuple[Job, Known]]:
    """Do the jobs, and yield each when it is done; one process is this one. Raises what a job raises.

    What is done does not depend on the number of processes, only the order in which it is done.
    """
    if processes.n_jobs == 1 or not jobs:
        yield from ((job, do(processes.thing, job)) for job in jobs)
        return
    for k, answer in processes.answers([(job,) for job in jobs]):
        if isinstance(answer, BaseException):
            raise answer
        yield jobs[k], answer


log = logging.getLogger("structpred.tuning")


@dataclass(frozen=True)
class Search:
    """Successive halving over settings, for anything that trains.

    Parameters
    ----------
    work : Work
        What trains one setting.
    settings : list of dict
        All settings; of equal ones in score the first continues.
    rungs : tuple of Rung
        As `halving.rungs` makes them.
    n_folds : int
        A setting's score is the mean over this number of folds; 1 for one set of held-out data.
    identity : Any
        Plain data that says what else decides the scores, such as a digest of the data: a folder of another search is refused.

    Examples
    --------
    >>> from structpred.tuning.halving import grid_of, rungs
    >>> class Known:
    ...     def fit(self, setting, fold, passes, checkpoint):
    ...         return [setting["quality"] * (1 - 0.5**p) for p in range(1, passes + 1)]
    >>> Search(Known(), grid_of({"quality": [0.5, 0.9, 0.7]}), rungs(3, 9)).run().best.setting
    {'quality': 0.9}
    """

    work: Work
    settings: Sequence[Setting]
    rungs: tuple[Rung, ...]
    n_folds: int = 1
    identity: Any = None

    def run(self, folder: Path | None = None, n_jobs: int | None = None) -> Tuned:
        """Search, on `n_jobs` processes (-1: all processors), whose number has no part in the result.

        folder: where the state is kept after each run: the same search continues there. None: it is kept nowhere.

        Raises ConvergenceError where every setting fails, CheckpointError for the folder of another search.
        """
        n_jobs = min(checked_jobs(n_jobs), len(self.settings) * self.n_folds)
        with contextlib.ExitStack() as stack:
            if folder is None:
                folder = Path(stack.enter_context(TemporaryDirectory(prefix="structpred-tune-"))) / "run"
            state = stack.enter_context(opened(folder, self._fingerprint()))
            processes = Processes(self.work, do, n_jobs, seconds=None)  # a run that is under way writes its checkpoint
            stack.callback(processes.close)
            alive: Sequence[int] = range(len(self.settings))
            for rung in self.rungs:
                self._train(state, alive, rung, processes)
                left = self._best(state, alive, rung)
                if not left:
                    first = self._tuned(state).trials[alive[0]]
                    raise ConvergenceError(f"training failed with all settings left, first {first.name}: {first.error}")
                for i in set(range(len(self.settings))) - set(left if rung != self.rungs[-1] else []):
                    self._forget(state, i)
                alive = left
            return self._tuned(state)

    def _fingerprint(self) -> str:
        from structpred import __version__

        steps = [[*rung] for rung in self.rungs]
        stated = [[plain(setting) for setting in self.settings], steps, self.n_folds, self.identity, __version__]
        return hashlib.sha256(strict_json.dump(stated, "the search")).hexdigest()

    def _train(self, state: Folder, alive: Sequence[int], rung: Rung, processes: Processes) -> None:
        """All that are alive, to the passes of the rung, without those of which this is known."""
        todo = [
            Job(i, dict(self.settings[i]), fold, rung.passes, state.checkpoint(i, fold))
            for i in alive
            for fold in range(self.n_folds)
            if not _is_known(state, i, fold, rung)
        ]
        last = rung == self.rungs[-1]
        for number, (job, done) in enumerate(all_done(processes, todo), 1):
            before = state.known.get((job.number, job.fold), Known())
            seconds = before.cpu_seconds + done.cpu_seconds
            state.known[job.number, job.fold] = replace(done, scores=done.scores or before.scores, cpu_seconds=seconds)
            state.save()
            finished = [i for i in alive if all(_is_known(state, i, fold, rung) for fold in range(self.n_folds))]
            beaten = set(finished) - set(self._best(state, finished, rung))
            for i in finished if last else beaten:
                self._forget(state, i)
            what = described(job.setting)
            place = f", fold {job.fold + 1}" if self.n_folds > 1 else ""
            result = done.error or f"{100 * max(done.scores):.2f} %"
            log.info("pass %d, %d of %d: %s%s: %s", rung.passes, number, len(todo), what, place, result)

    def _best(self, state: Folder, among: Sequence[int], rung: Rung) -> list[int]:
        """Those that go on, the best first; ties go to the first in the grid, and failed ones never do."""
        scores = {i: max(curve) for i in among if (curve := self._curve(state, i, rung.passes))}
        return sorted(scores, key=lambda i: (-scores[i], i))[: rung.keep]

    def _curve(self, state: Folder, i: int, passes: int) -> list[float]:
        """The mean score after each pass; empty where a fold failed within that many passes."""
        known = [state.known[i, fold] for fold in range(self.n_folds)]
        if any(one.error is not None and one.passes <= passes for one in known):
            return []
        # a run that ended early keeps its last score
        curves = [one.scores for one in known]
        n = min(passes, max(map(len, curves)))
        return [math.fsum(curve[min(p, len(curve) - 1)] for curve in curves) / len(curves) for p in range(n)]

    def _forget(self, state: Folder, i: int) -> None:
        """Remove the checkpoints of a setting that does not go on."""
        for fold in range(self.n_folds):
            remove_checkpoint(state.checkpoint(i, fold))

    def _tuned(self, state: Folder) -> Tuned:
        trials = []
        for i, setting in enumerate(self.settings):
            known = [state.known[i, fold] for fold in range(self.n_folds)]
            error = next((one.error for one in known if one.error is not None), None)
            passes = max(one.passes for one in known)
            curve = self._curve(state, i, passes)
            score = max(curve) if curve else None
            best_pass = None if score is None else curve.index(score) + 1
            dropped = passes < self.rungs[-1].passes
            cost = sum(one.cpu_seconds for one in known)
            trials.append(Trial(dict(setting), curve, best_pass, score, passes, cost, dropped, error))
        return Tuned(trials, self.rungs)


def _is_known(state: Folder, i: int, fold: int, rung: Rung) -> bool:
    known = state.known.get((i, fold))
    return known is not None and (known.error is not None or known.passes >= rung.passes)
