"""Processes that each hold one object and answer calls of it: started when first asked, ended with the program that did so."""

import multiprocessing
import os
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from structpred.errors import ParameterError, StructpredError
from structpred.runtime.interrupts import abandon_if_asked, leave_to_parent


class Processes:
    """n_jobs processes with a copy of `thing`, of which `call(thing, *piece)` is asked.

    `call` is a function at the top level of a module. Where a batch of pieces is broken off the processes end, and the next
    batch starts new ones. Copies, and processes forked from this one, start their own. seconds: after a SIGTERM one may take so
    long to end, then it is killed; None: as long as it likes, to write a checkpoint for instance.

    Raises ParameterError, once processes are asked for, where the thing cannot be pickled.
    """

    def __init__(self, thing: Any, call: Callable[..., Any], n_jobs: int, seconds: float | None = 5.0) -> None:
        self.thing, self.call, self.n_jobs, self.seconds = thing, call, n_jobs, seconds
        self._begin()

    def _begin(self) -> None:
        self._owner, self._lock, self._processes = os.getpid(), threading.Lock(), dict[Any, Any]()
        self._finalizer = weakref.finalize(self, _end, self._owner, self._processes, self.seconds)

    def __getstate__(self) -> dict[str, Any]:
        return {"thing": self.thing, "call": self.call, "n_jobs": self.n_jobs, "seconds": self.seconds}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def run(self, pieces: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The answer for each piece, in order. Raises the error of the first piece that fails."""
        answers = dict(self.answers(pieces))
        for k in sorted(answers):
            if isinstance(answers[k], BaseException):
                raise answers[k]
        return [answers[k] for k in range(len(pieces))]

    def answers(self, pieces: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """The number of a piece and its answer, as they come. An error is an answer, too; pieces that have not begun by then are
        left out.
        """
        if self._owner != os.getpid():
            self._begin()
        with self._lock:
            try:
                self._start()
                busy, idle, left = dict[Any, int](), list(self._processes), list(range(len(pieces)))[::-1]
                while busy or left:
                    while idle and left:
                        busy[idle[-1]] = left[-1]
                        try:
                            idle.pop().send(pieces[left.pop()])
                        except OSError:
                            raise _ended() from None
                    for connection in wait(list(busy)):
                        answer = _answer(connection)
                        idle.append(connection)
                        left = [] if isinstance(answer, BaseException) else left
                        yield busy.pop(connection), answer
                    abandon_if_asked()
            except BaseException:  # answers that are under way would be taken for those of the next batch
                self.close()
                raise

    def close(self) -> None:
        """End the processes; the next batch starts new ones."""
        _end(self._owner, self._processes, self.seconds)

    def _start(self) -> None:
        if self._processes:
            return
        name = type(self.thing).__name__
        try:
            packed = pickle.dumps(self.thing)
        except Exception as error:
            raise ParameterError(
                f"{name} cannot be sent to other processes: {error}; it needs attributes that pickle takes (no open files, no "
                "lambdas), and a class at the top level of a module"
            ) from error
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of threads
        for _ in range(self.n_jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self.call), daemon=self.seconds is not None)
            process.start()
            theirs.close()
            self._processes[ours] = process
            ours.send_bytes(packed)
        for connection in self._processes:
            if (refused := _answer(connection)) is not None:
                raise ParameterError(
                    f"{name} cannot be read in another process: {refused}; put its class into a module that can be imported, "
                    "not into a notebook or at a prompt"
                )


def _answer(connection: Any) -> Any:
    try:
        return connection.recv()
    except (EOFError, OSError):
        raise _ended() from None


def _ended() -> StructpredError:
    return StructpredError(
        "a worker process ended: was it killed, was there too little memory, or did it fail to start? A program must keep what "
        "it runs behind if __name__ == '__main__', because worker processes import its file"
    )


def _end(owner: int, processes: dict[Any, Any], seconds: float | None) -> None:
    """End the processes that this one started; those of a process that it was forked from are left alone."""
    if owner == os.getpid():
        for connection, process in processes.items():
            connection.close()
            process.terminate()
        for process in processes.values():
            process.join(seconds)
            if process.is_alive():
                process.kill()
                process.join()
    processes.clear()


def _serve(connection: Connection, call: Callable[..., Any]) -> None:
    """What a process does."""
    leave_to_parent()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        packed = connection.recv_bytes()
        try:
            thing = pickle.loads(packed)
        except Exception as error:
            connection.send(f"{type(error).__name__}: {error}")
            return
        connection.send(None)
        while True:
            piece = connection.recv()
            try:
                answer = call(thing, *piece)
            except Exception as error:
                answer = _sendable(error)
            connection.send(answer)
    except (EOFError, OSError, KeyboardInterrupt):
        pass


def _end_with_parent() -> None:
    """Wait for the end of the process that started this one, and end: also where that was killed, none is left behind."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _sendable(error: Exception) -> Exception:
    """The error, or, where it cannot be pickled, one of ours with its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return StructpredError(f"{type(error).__name__}: {error}")
    return error
