"""The search: rung after rung, each decision from what is known, so that an interrupted search comes to the same end."""

import hashlib
import logging
import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from structpred.errors import ConvergenceError
from structpred.runtime.threads import checked_jobs
from structpred.storage import strict_json
from structpred.trainers.running.checkpoints import remove_checkpoint
from structpred.tuning.halving import Rung, Setting, Trial, Tuned, described, plain
from structpred.tuning.runs import Folder, Job, Known, Work, Workers, opened

log = logging.getLogger("structpred.tuning")

__all__ = ["Search", "Work"]


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
        processes = min(checked_jobs(n_jobs), len(self.settings) * self.n_folds)
        with ExitStack() as stack:
            if folder is None:
                folder = Path(stack.enter_context(TemporaryDirectory(prefix="structpred-tune-"))) / "run"
            state = stack.enter_context(opened(folder, self._fingerprint()))
            workers = stack.enter_context(Workers(self.work, processes))
            alive: Sequence[int] = range(len(self.settings))
            for rung in self.rungs:
                self._train(state, alive, rung, workers)
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

    def _train(self, state: Folder, alive: Sequence[int], rung: Rung, workers: Workers) -> None:
        """All that are alive, to the passes of the rung, without those of which this is known."""
        todo = [
            Job(i, dict(self.settings[i]), fold, rung.passes, state.checkpoint(i, fold))
            for i in alive
            for fold in range(self.n_folds)
            if not _is_known(state, i, fold, rung)
        ]
        last = rung == self.rungs[-1]
        for number, (job, done) in enumerate(workers.run(todo), 1):
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
