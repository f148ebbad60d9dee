"""Checkpoints bent in one place, or in several, with right checksums, and what resuming from them does.

    python bent_checkpoints.py each CASE FOLDER          bend every array in turn, in some cases every number, too
    python bent_checkpoints.py random FOLDER COUNT SEED  bend at random, over all cases

A process of its own, so that signals are seen: it prints what happened as one line of JSON, and writes the bend that it is at
into FOLDER/at. Memory beyond 200 MB more than before the first bend is refused by the system.
"""

import collections
import copy
import json
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from kill_server import MISTAKE_DRIVEN, tail_of
from training_cases import BULK, SMOOTH, TRAINERS, chain_task, multiclass_task

from structpred.errors import CheckpointError, StructpredError
from structpred.models import DependencyParser, GraphLabeler, LinearClassifier, MultiLabelMRF
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.scalar.classes import Softmax, TopK
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.storage.bundles import Bundle, read_bundle, write_bundle
from structpred.trainers import loop
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.owlqn import OWLQN
from structpred.trainers.problem import Problem
from structpred.trainers.projected_ascent import ProjectedAscent
from structpred.trainers.running import stream
from structpred.trainers.running.stream import StreamProblem, train_stream

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))

Settings = dict[str, Any]
MEMORY = 200 << 20
PASSES = 4


class StopAt:
    """Stands in for the handler of signals: the flag goes up after so many steps."""

    def __init__(self, after: int) -> None:
        self.left = after

    @property
    def raised(self) -> signal.Signals | None:
        self.left -= 1
        return signal.SIGINT if self.left < 0 else None

    def asked(self) -> bool:
        """A look."""
        return self.raised is not None

    def held(self) -> AbstractContextManager[None]:
        """There is no second signal."""
        return nullcontext()

    def __enter__(self) -> "StopAt":
        return self

    def __exit__(self, *args: object) -> None:
        pass


def chain(name: str) -> Callable[[Settings], Any]:
    """A run of a trainer on six short sequences."""
    task = chain_task(n=6, longest=4, weighted=True)

    def run(settings: Settings) -> Any:
        options = RunSettings(check_every=2, seed=1, **settings)
        if name == "stream":
            return train_stream(StreamProblem(task, MarginRescaling(), 0.5), TRAINERS["mira"](), tail_of(task), options)
        if name == "ascent":
            return train(Problem(multiclass_task(n=6), MarginRescaling(), 0.1), ProjectedAscent(), options)
        if name in MISTAKE_DRIVEN:
            return train(Problem(task, MarginRescaling(0.0), 0.1), MISTAKE_DRIVEN[name](), options)
        if name == "owlqn" or name in SMOOTH:
            trainer = OWLQN(l1=0.01) if name == "owlqn" else SMOOTH[name]()
            return train(Problem(task, LogLoss(), 0.05), trainer, options)
        return train(Problem(task, MarginRescaling(), 0.1), {**TRAINERS, **BULK}[name](), options)

    return run


def parser(**options: Any) -> Callable[[Settings], Any]:
    """A parser without relations on eight short sentences."""
    from parser_cases import corpus

    X, Y = corpus(8, 0, 0.3)
    return lambda settings: DependencyParser(labelled=False, max_bits=6, **options, **settings).fit(X, Y)


def labels(**options: Any) -> Callable[[Settings], Any]:
    """Label sets of twelve samples."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 3)), rng.integers(0, 2, (12, 4))
    return lambda settings: MultiLabelMRF(**options, **settings).fit(X, Y)


def graph(**options: Any) -> Callable[[Settings], Any]:
    """Eight graphs of four nodes."""
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(4, 3)), np.array([(0, 1), (1, 2), (2, 3), (3, 0)])) for _ in range(8)]
    Y = [rng.integers(0, 3, 4) for _ in range(8)]
    return lambda settings: GraphLabeler(**options, **settings).fit(X, Y)


def rows(trainer: str, n_classes: int, **options: Any) -> Callable[[Settings], Any]:
    """Linear classifiers of thirty rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.arange(30) % n_classes
    return lambda settings: LinearClassifier(trainer, **options, **settings).fit(X, y)


#: case -> what makes its run; (settings) -> the result
CASES: dict[str, Callable[[], Callable[[Settings], Any]]] = {
    **{name: (lambda name=name: chain(name)) for name in (*TRAINERS, *SMOOTH, *BULK, *MISTAKE_DRIVEN)},  # type: ignore[misc]
    **{name: (lambda name=name: chain(name)) for name in ("owlqn", "ascent", "stream")},  # type: ignore[misc]
    "rows sdca": lambda: rows("sdca", 2),
    "labels sdca": lambda: rows("sdca", 3),
    "columns sdca": lambda: rows("sdca", 4, surrogate=TopK(2)),
    "rows pegasos": lambda: rows("pegasos", 2),
    "labels pegasos": lambda: rows("pegasos", 3, surrogate=Softmax()),
    "rows pragam_b": lambda: rows("pragam_b", 2),
    "parser bcfw": lambda: parser(trainer="bcfw"),
    "parser mira": lambda: parser(trainer="mira"),
    "parser oeg": lambda: parser(trainer="oeg"),
    "labels slack": lambda: labels(trainer="bcfw", surrogate="slack"),
    "labels n_slack": lambda: labels(trainer="n_slack"),
    "graph bcfw": lambda: graph(trainer="bcfw"),
    "graph lbfgs": lambda: graph(trainer="lbfgs", oracle=EnumerationMRF()),
}


def checkpoint_of(run: Callable[[Settings], Any], file: Path, steps: int) -> Bundle:
    """The checkpoint of a run that is stopped after so many steps."""
    loop.Interrupts = stream.Interrupts = lambda: StopAt(steps)  # type: ignore[misc,assignment]
    try:
        run({"max_iter": PASSES, "checkpoint": file})
    except KeyboardInterrupt:
        pass
    finally:
        loop.Interrupts = stream.Interrupts = lambda: StopAt(10**9)  # type: ignore[misc,assignment]
    return read_bundle(file, kind="checkpoint")


#: cases whose headers are bent, too: they are read in one place for all
WITH_HEADER = ("corrective", "stream")
NUMBERS = ("x", "", None, True, -1, -(10**9), 10**9, 2**62, 2**63, 2**1000, 0.5, 1e308, -1e308, [], {}, [1, 2])


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values in a header, containers included."""
    if at:
        yield at
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*at, key))
    elif isinstance(value, list):
        for k, item in enumerate(value[:2]):
            yield from places(item, (*at, k))


def bent_header(header: dict[str, Any], at: tuple[Any, ...], value: Any, remove: bool = False) -> dict[str, Any]:
    """A copy with another value at a place, or without it."""
    changed = copy.deepcopy(header)
    inner: Any = changed
    for key in at[:-1]:
        inner = inner[key]
    if remove:
        del inner[at[-1]]
    else:
        inner[at[-1]] = value
    return changed


def bent_arrays(array: np.ndarray) -> Iterator[tuple[str, np.ndarray | None]]:
    """An array cut, lengthened, of another type, with foreign values, or gone."""
    yield "removed", None
    yield "empty", array[:0] if array.ndim else array
    yield "one", array.reshape(-1)[:1].copy()
    rows = np.atleast_1d(array)
    yield "cut", array[: len(array) // 2] if array.ndim else array
    yield "longer", np.concatenate([rows, rows[-1:], rows[-1:]])
    yield "much longer", np.concatenate([array.reshape(-1), np.zeros(1000, array.dtype)])
    yield "deeper", array[None]
    yield "reversed", rows[::-1].reshape(array.shape).copy()
    yield "other type", array.astype(np.int32 if array.dtype.kind == "f" else np.float64)
    yield "narrower", array.astype(np.float32 if array.dtype == np.float64 else np.int32)
    yield "truth values", array.astype(np.bool_)
    values: list[float] = [-1, 0, 1, 2**30, -(2**30)]
    values += [np.nan, np.inf, -np.inf, 1e300, 1e-300] if array.dtype.kind == "f" else [2**62, -(2**62), len(rows)]
    with np.errstate(over="ignore"):
        for value in np.array(values).astype(array.dtype):
            yield f"all {value}", np.full_like(array, value)
            if array.size > 1:
                one = array.copy()
                one.reshape(-1)[array.size // 2] = value
                yield f"one {value}", one


def each(bundle: Bundle, header: bool) -> Iterator[tuple[str, Bundle]]:
    """Every array, and every value of the header, bent in turn."""
    for name, array in bundle.arrays.items():
        for what, changed in bent_arrays(array):
            arrays = {**bundle.arrays, name: changed} if changed is not None else dict(bundle.arrays)
            if changed is None:
                del arrays[name]
            yield f"{name}: {what}", Bundle(bundle.header, arrays)
    yield "one array more", Bundle(bundle.header, {**bundle.arrays, "state.more": np.zeros(3)})
    for at in places(bundle.header) if header else ():
        yield f"{at}: removed", Bundle(bent_header(bundle.header, at, None, remove=True), bundle.arrays)
        for value in NUMBERS:
            yield f"{at}: {value!r:.20}", Bundle(bent_header(bundle.header, at, value), bundle.arrays)


def at_random(bundle: Bundle, rng: np.random.Generator) -> tuple[str, Bundle]:
    """One to three bends at random, with random values."""
    said, header, arrays = [], bundle.header, dict(bundle.arrays)
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.2:
            found = list(places(header))
            at, value = found[rng.integers(len(found))], NUMBERS[rng.integers(len(NUMBERS))]
            header = bent_header(header, at, value if rng.random() < 0.7 else int(rng.integers(0, 60)))
            said.append(f"{at}")
            continue
        name = str(rng.choice(sorted(arrays)))
        array = arrays[name]
        how = rng.random()
        if how < 0.2:
            bends = list(bent_arrays(array)) if array.size else []
            changed = bends[rng.integers(1, len(bends))][1] if bends else np.zeros(int(rng.integers(0, 50)), array.dtype)
        elif how < 0.3:
            changed = arrays[str(rng.choice(sorted(arrays)))]
        else:
            changed = array.copy()
            flat = changed.reshape(-1)
            for _ in range(int(rng.integers(1, 5)) if flat.size else 0):
                k = rng.integers(flat.size)
                if flat.dtype.kind == "f":
                    flat[k] = rng.choice([0.0, -1.0, rng.normal(), rng.normal() * 10.0 ** rng.integers(-30, 30), np.nan, -np.inf])
                else:
                    flat[k] = np.int64(
                        rng.choice([rng.integers(-3, 80), flat[k] + rng.integers(-2, 3), 2 ** rng.integers(0, 62)])
                    ).astype(flat.dtype)
        if changed is not None:
            arrays[name] = changed
            said.append(name)
    return " + ".join(said), Bundle(header, arrays)


class Seen:
    """What resuming did, counted."""

    def __init__(self) -> None:
        self.kinds: collections.Counter[str] = collections.Counter()
        self.foreign: list[str] = []
        self.slowest = 0.0

    def resume(self, name: str, run: Callable[[Settings], Any], file: Path, bundle: Bundle) -> None:
        """Write the bent checkpoint, go on from it, and note how that ended."""
        try:
            write_bundle(file, bundle, kind="checkpoint")
        except StructpredError:
            self.kinds["cannot be stored"] += 1
            return
        start = time.process_time()
        try:
            with np.errstate(all="ignore"):
                run({"max_iter": PASSES, "checkpoint": file, "resume": True})
            self.kinds["finished"] += 1
        except CheckpointError:
            self.kinds["CheckpointError"] += 1
        except StructpredError as error:
            self.kinds[type(error).__name__] += 1
        except BaseException as error:
            self.kinds["foreign"] += 1
            self.foreign.append(
                f"{name}: {type(error).__name__}: {error} {''.join(traceback.format_tb(error.__traceback__)[-1:])}"
            )
        self.slowest = max(self.slowest, time.process_time() - start)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**self.kinds, "examples": self.foreign[:10], "slowest": round(self.slowest, 3)}


def limit_memory() -> None:
    """No more than MEMORY beyond what there is now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)


def prepared(case: str, folder: Path) -> tuple[Callable[[Settings], Any], list[Bundle]]:
    """The run of a case, with all that it needs loaded and compiled, and its checkpoints inside a pass and between passes."""
    run = CASES[case]()
    file = folder / f"{case.replace(' ', '_')}.ckpt"
    bundles = [checkpoint_of(run, file, steps) for steps in (2, 9)]
    run({"max_iter": PASSES, "checkpoint": file, "resume": True})
    return run, bundles


def main() -> None:
    """The command line."""
    warnings.simplefilter("ignore")
    os.fsync = lambda handle: None  # type: ignore[assignment]
    what, *rest = sys.argv[1:]
    seen = Seen()
    if what == "each":
        case, folder = rest[0], Path(rest[1])
        run, (bundle, _) = prepared(case, folder)
        limit_memory()
        for name, bent in each(bundle, case in WITH_HEADER):
            (folder / "at").write_text(name)
            seen.resume(name, run, folder / "bent.ckpt", bent)
    else:
        folder, rng = Path(rest[0]), np.random.default_rng(int(rest[2]))
        ready = {case: prepared(case, folder) for case in CASES}
        limit_memory()
        for k in range(int(rest[1])):
            case = sorted(ready)[k % len(ready)]
            run, bundles = ready[case]
            name, bent = at_random(bundles[rng.integers(2)], rng)
            (folder / "at").write_text(f"{k} {case}: {name}")
            seen.resume(f"{case}: {name}", run, folder / "bent.ckpt", bent)
    print(json.dumps(seen.as_dict()))


if __name__ == "__main__":
    main()
