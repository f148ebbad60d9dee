"""Model files bent in one place or many, with checksums made right again; and what loading and predicting make of them.

    python tests/models/bending.py KIND... --mutations 10000 --seed 1     (KIND: a name in model_zoo.KINDS, or all)

prints counts as JSON, and each failure, and what takes more than a second of the processor.
It is a program of its own so that a crash or a limit on memory is seen from outside.
"""

import argparse
import copy
import json
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from model_zoo import KINDS, Example

from structpred.errors import DataError, InfeasibleError, ModelFileError, ParameterError
from structpred.models import load
from structpred.storage import bundles as storage
from structpred.storage.bundles import Bundle, read_bundle, write_bundle

REMOVED = object()
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 2**31, 2**33, -(2**63), 2**64, 0.5, 1e308, -1e308, "", "inf", "nan", "x", [], {}, [[]],
    [1, 2], ["x"], {"a": 1}, REMOVED,
)  # fmt: skip
DTYPES = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
MOST_BYTES = 200 << 20
Path_ = tuple[Any, ...]


class Bend(NamedTuple):
    """What was changed, in words, and a function that changes a bundle so."""

    what: str
    apply: Callable[[Bundle], None]


def places(value: Any, at: Path_ = ()) -> Iterator[Path_]:
    """Every place in nested plain data; of lists the first and the last entry."""
    if at:
        yield at
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*at, key))
    elif isinstance(value, list):
        for k in ends(value):
            yield from places(value[k], (*at, k))


def ends(listed: Any) -> list[int]:
    """The first and the last place of a list or a flat array."""
    return sorted({0, len(listed) - 1}) if len(listed) else []


def at(table: Any, place: Path_) -> Any:
    """The value at a place."""
    for key in place:
        table = table[key]
    return table


def put(table: Any, place: Path_, value: Any) -> None:
    """Set, or remove, the value at a place."""
    inside = at(table, place[:-1])
    if value is REMOVED:
        del inside[place[-1]]
    else:
        inside[place[-1]] = copy.deepcopy(value)


def other_values(value: Any) -> Iterator[tuple[str, Any]]:
    """What a value of the header may be bent into."""
    yield from ((f"= {'removed' if v is REMOVED else repr(v)}", v) for v in VALUES)
    if isinstance(value, bool):
        yield "negated", not value
    elif isinstance(value, int | float):
        yield from ((f"= {v!r}", v) for v in (value + 1, value - 1, -value, float(value), str(value)))
    elif isinstance(value, str):
        yield from (("longer", value + "x"), ("with a NUL", value + "\0"), ("shorter", value[:-1]))
    elif isinstance(value, list) and value:
        yield from (
            ("reversed", value[::-1]),
            ("doubled", value + value),
            ("shorter", value[:-1]),
            ("longer", [*value, value[0]]),
        )
    elif isinstance(value, dict) and value:
        yield "without its first", dict(list(value.items())[1:])


def other_arrays(a: Any) -> Iterator[tuple[str, Any]]:
    """What an array may be bent into; REMOVED, too."""
    yield from (("removed", REMOVED), ("empty", a[:0]), ("shorter", a[:-1]), ("longer", np.concatenate((a, a[-1:]))))
    yield from (
        ("reversed", a[::-1].copy()),
        ("in a row", a[None]),
        ("twice", np.concatenate((a, a))),
        *([("a number", a.ravel()[0].reshape(()))] if a.size else []),
    )
    yield from ((f"as {dtype}", a.astype(dtype)) for dtype in DTYPES if a.dtype != dtype)
    if a.ndim == 2:
        yield from (("transposed", a.T.copy()), ("flat", a.ravel()))
    extremes = (np.nan, np.inf, -np.inf, 1e308, -1e300) if a.dtype.kind == "f" else (-1, 2**31 - 1, 2**30, 2**40, -(2**63), 0)
    for value in extremes:
        for k in ends(a.ravel()):
            changed = a.copy()
            with np.errstate(all="ignore"):
                changed.ravel()[k] = np.array(value).astype(a.dtype)
            yield f"[{k}] = {value}", changed


def bends(bundle: Bundle) -> Iterator[Bend]:
    """Every field of the header, every array and every list of texts, changed one at a time in many ways."""
    for place in places(bundle.header):
        for what, value in other_values(at(bundle.header, place)):
            yield Bend(f"header{list(place)} {what}", lambda b, p=place, v=value: put(b.header, p, v))
    for name, array in bundle.arrays.items():
        with np.errstate(all="ignore"):
            for what, changed in other_arrays(array):
                yield Bend(f"array {name} {what}", lambda b, n=name, v=changed: put(b.arrays, (n,), v))
        yield Bend(f"array {name} renamed", lambda b, n=name: b.arrays.update({n + "x": b.arrays.pop(n)}))
    for name, texts in bundle.texts.items():
        some = (
            ("removed", REMOVED),
            ("empty", []),
            ("shorter", texts[:-1]),
            ("reversed", texts[::-1]),
            ("one twice", [*texts[:-1], *texts[:1]]),
        )
        for what, listed in (*some, ("doubled", texts * 2), ("longer", [*texts, "new"])):
            yield Bend(f"texts {name} {what}", lambda b, n=name, v=listed: put(b.texts, (n,), v))


def mutation(bundle: Bundle, rng: np.random.Generator) -> str:
    """Change a bundle in one to three random places, and say how."""
    done = []
    for _ in range(int(rng.integers(1, 4))):
        tables: list[Any] = [table for table in (bundle.header, bundle.arrays, bundle.texts) if table]
        table = tables[int(rng.choice(len(tables), p=[[1.0], [0.6, 0.4], [0.55, 0.3, 0.15]][len(tables) - 1]))]
        every: list[Path_] = list(places(table)) if table is bundle.header else [(name,) for name in table]
        place, other = (every[int(rng.integers(len(every)))] for _ in range(2))
        options = [*changes(at(table, place), rng), (f"= what is at {list(other)}", copy.deepcopy(at(table, other)))]
        what, changed = options[int(rng.integers(len(options)))]
        put(table, place, changed)
        done.append(f"{list(place)} {what}")
    return "; ".join(done)


def changes(value: Any, rng: np.random.Generator) -> list[tuple[str, Any]]:
    """What a mutation may make of a value, an array or a list of texts."""
    if not isinstance(value, np.ndarray):
        numbers = (int(rng.integers(-5, 40)), 2 ** int(rng.integers(5, 40)), float(rng.normal()))
        found = [*other_values(value), *((f"= {v}", v) for v in numbers)]
        if isinstance(value, list) and value:
            found += [("shuffled", [value[k] for k in rng.permutation(len(value))]), ("cut", value[: rng.integers(len(value))])]
        return found
    if not value.ndim or not value.size:
        return [("removed", REMOVED)]
    with np.errstate(all="ignore"):
        found = list(other_arrays(value))
    cut, some = value[: rng.integers(len(value))], value[rng.permutation(len(value))]
    return [*found, ("cut", cut), ("shuffled", some), *[("changed", noisy(value, rng))] * 8]


def noisy(array: Any, rng: np.random.Generator) -> Any:
    """The array with one to three entries changed."""
    changed = array.copy()
    flat = changed.reshape(-1)
    for k in rng.integers(0, flat.size, int(rng.integers(1, 4))).tolist():
        with np.errstate(all="ignore"):
            flat[k] = np.array(
                rng.choice([0.0, -1.0, 1.0, 3.0, 2.0**22, 2.0**31, 2.0**62, float(flat[k]) + 1.0, -float(flat[k])])
            ).astype(array.dtype)
    return changed


FINE = ("refused", "works", "works on other data", "unstorable", "asks for its oracle")


class Verdict(NamedTuple):
    """outcome: one of FINE, or the error that should not be. seconds, grown: what load and predict took. reason: of a refusal."""

    outcome: str
    seconds: float
    grown: int
    reason: str = ""

    @property
    def fine(self) -> bool:
        """Whether a file from a stranger may do this."""
        return self.outcome in FINE and self.grown <= MOST_BYTES


def judge(path: Path, bundle: Bundle, example: Example) -> Verdict:
    """Store the bundle, load it and predict with it."""
    try:
        write_bundle(path, bundle, kind="model")
    except (DataError, ValueError, TypeError):
        return Verdict("unstorable", 0.0, 0)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    outcome, reason, model = "works", "", None
    try:
        model = load(path, oracle=example.oracle)
        example.predict(model)
    except ModelFileError as error:
        outcome, reason = "refused", str(error)
    except (DataError, InfeasibleError) as error:
        outcome = "works on other data" if model is not None else repr(error)
    except ParameterError as error:
        outcome = "asks for its oracle" if re.search("was trained with the (oracle|kernel function)", str(error)) else repr(error)
    except Exception as error:
        outcome = repr(error)
    seconds, after = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Verdict(outcome, seconds, (after - before) * 1024, reason)


def mended(bundle: Bundle, reason: str, rng: np.random.Generator) -> bool:
    """Give a bundle that was refused for its number of weights as many as it lacks, as a forger would; False if it was not."""
    wanted = re.search(r"expected ([0-9]+) weights|'weights': .* of shape \(([0-9]+)\)", reason)
    if wanted is None or (n := int(wanted[1] or wanted[2])) >= 2**36:
        return False
    parts = [name[: -len("weights")] for name in ("weights", "pruner.weights", "relations.weights")]
    own = [part for part in parts if any(name.startswith(f"{part}weights") for name in bundle.arrays)]
    part = own[int(rng.integers(len(own)))] if own else ""
    for name in [name for name in bundle.arrays if name.startswith(f"{part}weights")]:
        del bundle.arrays[name]
    indices = np.unique(rng.integers(0, min(n, 2**32), 50 if n else 0))
    bundle.arrays[f"{part}weights.indices"] = indices.astype(np.uint32)
    bundle.arrays[f"{part}weights.values"] = rng.normal(size=len(indices)).astype(np.float32)
    bundle.arrays[f"{part}weights.length"] = np.array([n])
    return True


def warm(path: Path, example: Example) -> None:
    """Compile what predicts, for weights of either size."""
    model = load(path, oracle=example.oracle)
    for dtype in (np.float64, np.float32):
        model.coef_ = model.coef_.astype(dtype)
        example.predict(model)


def write_plainly(path: Any, write: Any, *, previous: Any = None) -> None:
    """In place of the atomic writer, which waits for the disk."""
    with open(path, "wb") as file:
        write(file)


def main() -> int:
    """Run bends and mutations as the command line says; 1 where any was not fine."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds", nargs="+")
    parser.add_argument("--mutations", type=int, default=0, help="random mutations of each kind")
    parser.add_argument("--bends", type=int, default=0, help="single bends of each kind, chosen at random; -1: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", type=int, help="megabytes of address space beyond what a sound model takes")
    parser.add_argument("--trace", help="a file that always says what is tried now, to be read after a crash")
    given = parser.parse_args()
    storage.write_atomic = write_plainly
    seen = Seen()
    for kind in KINDS if given.kinds == ["all"] else given.kinds:
        example = KINDS[kind]()
        path = Path(tempfile.mkdtemp()) / "bent.spz"
        example.model.save(path)
        warm(path, example)
        if given.room is not None:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (given.room << 20), resource.getrlimit(resource.RLIMIT_AS)[1]))
        rng = np.random.default_rng(given.seed)
        for what, bundle in tries(read_bundle(path, kind="model"), given, rng):
            if given.trace:
                Path(given.trace).write_text(f"{kind}: {what}")
            seen.add(f"{kind}: {what}", forged(path, bundle, example, rng))
    seconds, grown = round(seen.seconds, 3), round(seen.grown / 2**20, 1)
    print(json.dumps({"counts": seen.counts, "worst_seconds": seconds, "most_grown_mb": grown}))
    return int(seen.counts["failed"] > 0)


class Seen:
    """What was seen so far: outcomes counted, the longest time, the largest growth."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.seconds, self.grown = 0.0, 0

    def add(self, what: str, verdicts: list[Verdict]) -> None:
        """Count, and print what is not fine."""
        for verdict in verdicts:
            self.counts[verdict.outcome if verdict.fine else "failed"] += 1
            self.seconds, self.grown = max(self.seconds, verdict.seconds), max(self.grown, verdict.grown)
            if not verdict.fine or verdict.seconds > 1.0:
                print(f"{what}: {verdict}", file=sys.stderr, flush=True)


def forged(path: Path, bundle: Bundle, example: Example, rng: np.random.Generator) -> list[Verdict]:
    """The verdict on a bundle; and on what becomes of it where only the number of weights was wrong."""
    found = [judge(path, bundle, example)]
    while len(found) < 4 and found[-1].outcome == "refused" and mended(bundle, found[-1].reason, rng):
        found.append(judge(path, bundle, example))
    return found


def tries(sound: Bundle, given: argparse.Namespace, rng: np.random.Generator) -> Iterator[tuple[str, Bundle]]:
    """The bends and the mutations that the command line asks for."""
    every = list(bends(sound))
    some = every if given.bends < 0 else [every[k] for k in rng.permutation(len(every))[: given.bends]]
    for what, apply in some:
        bundle = copy.deepcopy(sound)
        apply(bundle)
        yield what, bundle
    for _ in range(given.mutations):
        bundle = copy.deepcopy(sound)
        yield mutation(bundle, rng), bundle


if __name__ == "__main__":
    sys.exit(main())
