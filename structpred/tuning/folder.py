"""The folder of a search: what is known of each run, written after each of them, and the checkpoints of those that may go on."""

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from structpred.errors import CheckpointError, DataError
from structpred.storage import strict_json
from structpred.storage.atomic import remove_leftovers, storage_error, write_atomic
from structpred.storage.locks import exclusive

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
