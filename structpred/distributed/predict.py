"""Prediction over shards: a part file for each, written where the shard is read as `structpred predict` writes it."""

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import structpred
from structpred.distributed.cluster import check_cluster, cluster_of, without_module
from structpred.distributed.reading import Shard
from structpred.distributed.shards import FileShard, about_shard
from structpred.distributed.store import unpacked
from structpred.errors import ClusterError, DataError, ModelFileError, ParameterError, StructpredError
from structpred.io.columns import ColumnCorpus, format_columns
from structpred.io.multilabel.by_format import Reading, read_rows
from structpred.io.text import HeldBytes, label_lines, label_rows, label_sets
from structpred.io.treebanks.formats import TREEBANK_FORMATS
from structpred.io.treebanks.reader import stream_treebank
from structpred.io.treebanks.treebank import Treebank, write_treebank
from structpred.models.files import load
from structpred.storage.atomic import packing, remove_leftovers, write_atomic
from structpred.storage.locks import exclusive

log = logging.getLogger("structpred.distributed")
#: sentences that are parsed at once: a dense table of arcs for each
_BATCH = 1000


class Part(NamedTuple):
    """A part file that is complete: how many samples it is about, what its file system says of it, and what it cost."""

    samples: int
    bytes: int
    mtime_ns: int
    cpu_seconds: float

    def is_there(self, path: str) -> bool:
        """Whether the file is as it was written."""
        with suppress(OSError):
            found = os.stat(path)
            return (found.st_size, found.st_mtime_ns) == (self.bytes, self.mtime_ns)
        return False


@contextmanager
def _journal(path: Path) -> Iterator[dict[str, Part]]:
    """The complete parts of an earlier run by the digest of what made them: model, shard, version; those that are as they were
    then are kept. ParameterError while another run writes these parts.
    """
    try:
        with exclusive(path.with_name(f"{path.name}.lock")):
            yield dict(_lines(path))
    except BlockingIOError:
        raise ParameterError(
            f"{path.parent}: another run writes these parts; wait until it ends, or give another output"
        ) from None


def _lines(path: Path) -> Iterator[tuple[str, Part]]:
    """The lines that are whole: a kill may have cut the last one."""
    with suppress(FileNotFoundError):
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError, TypeError):
                key, *numbers = json.loads(line)
                yield key, Part(*numbers)


def key_of(digest: str, shard: Any) -> str:
    """A digest of model file, shard, size and time of its data file, and version of this package."""
    import cloudpickle

    found = hashlib.sha256(f"{structpred.__version__} {digest} ".encode())
    found.update(cloudpickle.dumps(shard))
    if (path := getattr(shard, "path", None)) is not None:
        status = os.stat(path)
        found.update(f" {status.st_size} {status.st_mtime_ns}".encode())
    return found.hexdigest()


def outputs_of(model: Any, shard: Shard) -> Iterator[tuple[int, bytes]]:
    """Pieces of the part file, in order, each with the number of its sequences, sentences, examples or instances."""
    if getattr(model, "stages", 1) != 1:
        raise ParameterError("a model of two stages sees whole documents, which shards cut: call its predict on all data")
    for X in _inputs_of(model, shard):
        yield X.shape[0] if hasattr(X, "shape") else len(X), written(model, X)


def _inputs_of(model: Any, shard: Shard) -> Iterator[Any]:
    """The data, read as data to predict: labels may be missing. A treebank comes in batches, so that little memory is used."""
    if not isinstance(shard, FileShard):
        yield shard.load().X
        return
    path, reading = shard.path, shard.reading
    treebank, sets = reading.format in TREEBANK_FORMATS, hasattr(model, "label_names_")
    if not treebank and not sets:
        yield shard.load().X
        return
    with reading.held(path, shard.start, shard.stop) as raw:
        held = HeldBytes(raw, path)
        if treebank:
            format = TREEBANK_FORMATS[reading.format]
            yield from stream_treebank(held, format, batch_size=_BATCH, check_trees=False, encoding=reading.encoding)
        else:
            yield read_rows(Reading.of_model(model), held, reading.format, reading.encoding)


def between(model: Any, end: bytes) -> bytes:
    """What a part that ends so lacks of the blank line between its last sentence and the first of the next part."""
    if hasattr(model, "label_names_") or hasattr(model, "oracle"):
        return b""  # a line an instance
    return b"\n" * max(2 - end[len(end.rstrip()) :].count(b"\n"), 0)


def written(model: Any, X: Any) -> bytes:
    """The predictions for X: column files and treebanks as they were, with the new column or the new trees; otherwise labels."""
    found = model.predict(X)
    if isinstance(X, Treebank):
        stream = BytesIO()
        write_treebank(model._words(X), stream, found)
        return stream.getvalue()
    if hasattr(model, "label_names_"):
        return label_sets(found.tolist(), model.label_names_).encode()
    if hasattr(model, "oracle"):
        return label_rows([labels.tolist() for labels in found]).encode()
    try:
        lists = [[str(label) for label in labels.tolist()] for labels in found]
    except AttributeError:
        raise DataError(
            f"{type(model).__name__}: these predictions have no form as text; call its predict on each shard"
        ) from None
    return (format_columns(X, lists) if isinstance(X, ColumnCorpus) else label_lines(lists)).encode()


def predict(model: Any, shards: Any, output: str | os.PathLike[str], client: Any = None) -> list[Path]:
    """Write what `model` predicts for each shard as a file; returns the files, in the order of the shards.

    A part holds what `structpred predict` writes for the same lines: column files and treebanks with the new column or trees;
    otherwise labels, a line for a token, an example or an instance. The parts, one after the other, are the prediction for all
    data: where blank lines part sentences, each part but the last ends in one. Workers read the model file once a process, and
    their shards themselves.

    A part is written aside and renamed, so that one that is there is whole. If the run is stopped, the same call does what is
    left: a part is kept if model file, shard, version of this package, and size and time of the data file are those by which it
    was made, and it has not been touched since. A hidden file beside the parts lists them, until all are complete. What a
    function reads is not known: a change there needs another output.

    Parameters
    ----------
    model : path or estimator
        A model file that all workers see, or a fitted estimator, which is saved beside the parts for the time of the call.
    shards : Shards
        The data; labels, if there are any, are not used.
    output : path
        With the number of the shard, such as ``"out/{shard:03}.txt"``; packed if it ends in .gz. All workers see the folder,
        which is made if it is not there.
    client : Client or str, optional
        As in `fit`.

    Raises
    ------
    ParameterError
        For an output without ``{shard}``, and while another run writes the same parts.
    DataError
        For anything wrong in a shard: it names the shard, and file and line.
    ClusterError
        Where no scheduler answers, workers differ or do not see the folder, or a shard takes its workers with it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from distributed import Client
    >>> from structpred.distributed import Shards, predict
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler("bcfw", template="pos", max_iter=5).fit([[["the"], ["cat"]]], [["DT", "NN"]])
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "data.txt").write_text("the _\\n\\ncat _\\n")
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     parts = predict(model, Shards.of_file(folder / "data.txt", 2), folder / "{shard}.txt", client)
    >>> print("".join(part.read_text() for part in parts), end="")
    the _ DT
    <BLANKLINE>
    cat _ NN
    """
    read = [model, *(getattr(shard, "path", None) for shard in shards)]
    inputs = {os.path.realpath(path) for path in read if isinstance(path, str | os.PathLike)}
    targets = _targets(os.path.abspath(output), len(shards), inputs)
    for folder in {os.path.dirname(target) for target in targets}:
        os.makedirs(folder, exist_ok=True)
    first = Path(targets[0])
    journal = first.with_name(f".{first.name}.parts")
    with _journal(journal) as parts, _saved(model, first) as job:
        job = job._replace(n=len(shards))
        keys = [key_of(f"{job.digest} {k + 1 < job.n}", shard) for k, shard in enumerate(shards)]
        left = [k for k, key in enumerate(keys) if key not in parts or not parts[key].is_there(targets[k])]
        if len(left) < len(shards):
            log.info("%d of %d parts are there from an earlier run", len(shards) - len(left), len(shards))
        if left:
            with cluster_of(client, len(left)) as own:
                check_cluster(own, first.parent)
                for k, part in _completed(own, job, {k: (shards[k], targets[k]) for k in left}):
                    with open(journal, "a", encoding="utf-8") as file:
                        file.write(json.dumps([keys[k], *part]) + "\n")
        journal.unlink(missing_ok=True)  # all parts are complete: the next run is a new one
    remove_leftovers(*targets)
    return [Path(target) for target in targets]


class Job(NamedTuple):
    """What all tasks share. model: the path of the file, whose bytes have the digest. oracle: of a StructuredPredictor.
    n: how many parts there are.
    """

    model: str
    digest: str
    oracle: Any = None
    n: int = 1


def _targets(output: str, n: int, inputs: set[str]) -> list[str]:
    """The names of the parts; ParameterError where the number of the shard is not in them, or one is among the inputs."""
    targets: list[str] = []
    with suppress(KeyError, IndexError, ValueError):
        targets = [output.format(shard=k) for k in range(n + 1)]
    if len(set(targets)) < n + 1:
        raise ParameterError(f"output: expected a name with {{shard}}, such as 'out/{{shard:03}}.txt', got {output!r}")
    for path in inputs & set(map(os.path.realpath, targets[:n])):
        raise ParameterError(f"output: {path} is one of the files to be read; give another name")
    return targets[:n]


@contextmanager
def _saved(model: Any, beside: Path) -> Iterator[Job]:
    """The model as a file: its own, or one for the time of the call."""
    if isinstance(model, str | os.PathLike):
        path = os.path.abspath(model)
        yield Job(path, _digest(path))
        return
    own = beside.with_name(f".{beside.name}.model")
    model.save(own)
    try:
        yield Job(str(own), _digest(str(own)), getattr(model, "oracle", None))
    finally:
        own.unlink(missing_ok=True)


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelFileError(f"{path}: the model file cannot be read here: {error.strerror or error}") from None


def _completed(client: Any, job: Job, work: dict[int, tuple[Any, str]]) -> Iterator[tuple[int, Part]]:
    """Parts as they are complete. The error of one that fails is raised, with the shard's number; the rest is cancelled."""
    from distributed import as_completed
    from distributed.protocol.pickle import dumps

    run = job.digest[:8]
    futures = {
        client.submit(_write_packed, dumps((job, shard)), k, target, key=f"predict-{run}-{time.time_ns()}-{k}", pure=False): k
        for k, (shard, target) in work.items()
    }
    begun, done = time.perf_counter(), Part(0, 0, 0, 0.0)
    try:
        for number, future in enumerate(as_completed(list(futures), loop=client.loop), 1):
            k = futures.pop(future)
            part = _part_of(future, k, *work[k])
            future.release()  # else the scheduler has it made again where its worker is lost
            yield k, part
            done = Part(done.samples + part.samples, done.bytes + part.bytes, 0, done.cpu_seconds + part.cpu_seconds)
            if number * 10 // len(work) > (number - 1) * 10 // len(work):
                log.info(
                    "%d of %d parts: %d samples, %.1f MB in %.1f s (%.1f CPU s)",
                    number, len(work), done.samples, done.bytes / 1e6, time.perf_counter() - begun, done.cpu_seconds,
                )  # fmt: skip
    finally:
        client.cancel(list(futures), force=True)


def _part_of(future: Any, k: int, shard: Any, target: str) -> Part:
    from distributed import KilledWorker

    try:
        return future.result()
    except StructpredError:
        raise
    except KilledWorker as error:
        raise ClusterError(
            f"shard {k} ({shard}): every worker that took it died, {error.last_worker.address} last; is it too large for their "
            "memory? Cut the data into more shards"
        ) from None
    except ModuleNotFoundError as error:
        raise without_module(f"shard {k} ({shard})", error) from error
    except Exception as error:
        error.add_note(f"in shard {k} ({shard}), for {target}")
        raise


# ------------------------------------------------------------------------------------------------ on a worker

_LOADED: dict[str, Any] = {}
_LOADING = threading.Lock()


def _write_packed(packed: bytes, k: int, target: str) -> Part:
    """`write_part` of a job and a shard that are read here: so the scheduler needs no module of the user's."""
    job, shard = unpacked(packed)
    return write_part(job, shard, k, target)


def write_part(job: Job, shard: Any, k: int, target: str) -> Part:
    """Read, predict and write one shard. Raises our errors with the shard's number."""
    begun, samples = time.thread_time(), 0
    with about_shard(k, shard):
        model = _model(job)

        def produce(stream: Any) -> None:
            nonlocal samples
            piece = b""
            for n, piece in outputs_of(model, shard):
                samples += n
                stream.write(piece)
            if k + 1 < job.n:
                stream.write(between(model, piece[-1000:]))

        write_atomic(target, packing(produce) if target.endswith(".gz") else produce)
        status = os.stat(target)
    return Part(samples, status.st_size, status.st_mtime_ns, time.thread_time() - begun)


def _model(job: Job) -> Any:
    """The model, read once a process. Raises ModelFileError where this worker sees another file than the client."""
    with _LOADING:
        if job.digest not in _LOADED:
            if _digest(job.model) != job.digest:
                raise ModelFileError(
                    f"{job.model}: this worker sees another file than the one the run began with; share one folder"
                )
            model = load(job.model, oracle=job.oracle)
            if hasattr(model, "n_jobs"):
                model.n_jobs = 1  # workers share out the cores
            _LOADED.clear()
            _LOADED[job.digest] = model
        return _LOADED[job.digest]
