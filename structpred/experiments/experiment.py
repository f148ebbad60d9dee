"""What an experiment is to the shell: its name, its tables, and how it is run.

A new experiment is a subclass of Experiment in a file of this package: `structpred bench` then has a command of its name.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from structpred.errors import DataError
from structpred.experiments.claims import PRINTED, Claim, claim_lines, without_printed
from structpred.runtime.discovery import public_subclasses
from structpred.storage.atomic import write_atomic

#: the first line of a quick run
QUICK = "--quick: a run on small parts of the data, to see that everything works; its figures mean nothing"


class Wanted(NamedTuple):
    """How much is run. quick: on small parts of the data. only: one of the tables. switches: those that are on, by name. numbers:
    what was given for each of them. output: where a run that can be stopped keeps what is done; None: nowhere.
    """

    quick: bool = False
    only: str | None = None
    switches: frozenset[str] = frozenset()
    numbers: Mapping[str, int] = MappingProxyType({})
    output: Path | None = None

    def chosen(self, tables: Iterable[str]) -> list[str]:
        """The one table that is wanted, else all."""
        return [self.only] if self.only else list(tables)


class Experiment(ABC):
    """One experiment of a paper. The docstring of a child is the help page of `structpred bench NAME`.

    Attributes
    ----------
    name : the word after `structpred bench`.
    summary : what is compared, in a few words.
    tables : what `--only` may name.
    switches : further flags and their help texts.
    numbers : further options that take a whole number: the default, and the help text.
    needs_data : whether it reads data sets; else `run` gets the present folder.
    draws : whether the shell can draw the figures.
    resumes : whether a run that was stopped goes on from what it kept in `--output`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    tables: ClassVar[tuple[str, ...]]
    switches: ClassVar[Mapping[str, str]] = {}
    numbers: ClassVar[Mapping[str, tuple[int, str]]] = {}
    needs_data: ClassVar[bool] = True
    draws: ClassVar[bool] = False
    resumes: ClassVar[bool] = False

    @abstractmethod
    def run(self, folder: Path, wanted: Wanted) -> Any:
        """All figures, as a dataclass, or a list of them, that `--json` prints. Raises DataError for missing data sets.

        Ctrl-C ends it within a second: every step of an experiment is short, or a `fit`, which stops after its step.
        """

    @abstractmethod
    def text(self, figures: Any) -> str:
        """The same as tables for people, the paper's figures at the end of lines, after the mark `PRINTED`."""

    def claims(self, figures: Any) -> Sequence[Claim]:
        """What the paper claims of these figures, and whether it was met; of a full run alone."""
        return ()

    def shown(self, figures: Any, *, as_json: bool, quick: bool = False) -> str:
        """The figures as one JSON object or as text. Those of a quick run mean nothing: nothing of a paper stands beside them."""
        claims = [] if quick else self.claims(figures)
        if as_json:
            found = plain(figures)
            whole = {**(found if isinstance(found, dict) else {"tables": found}), "claims": [asdict(one) for one in claims]}
            return json.dumps({"quick": QUICK, **without_papers(whole)} if quick else whole)
        text = "\n".join([self.text(figures), *claim_lines(claims)])
        return f"{QUICK}\n{without_printed(text)}" if quick else text.replace(PRINTED, "")


def plain(figures: Any) -> Any:
    """Dataclasses as mappings, alone or in a list."""
    return [asdict(one) for one in figures] if isinstance(figures, list) else asdict(figures)


def without_papers(found: Any) -> Any:
    """Without all that is named after a paper: fields `paper` and `paper_...`, at any depth."""
    if isinstance(found, list):
        return [without_papers(one) for one in found]
    if not isinstance(found, dict):
        return found
    return {key: without_papers(one) for key, one in found.items() if key != "paper" and not key.startswith("paper_")}


@cache
def experiments() -> dict[str, Experiment]:
    """The experiments of this package by their names."""
    found = public_subclasses("structpred.experiments", Experiment)  # type: ignore[type-abstract]
    return {kind.name: kind() for kind in found}


def keep_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Make the folder that a run keeps its results in, and write its settings there; DataError if it holds a run with others."""
    folder.mkdir(parents=True, exist_ok=True)
    path, wanted = folder / "settings.json", json.dumps(settings)
    if path.exists() and (there := path.read_text()) != wanted:
        raise DataError(f"{folder}: expected a run with {wanted}, it holds one with {there}; give another --output")
    write_atomic(path, wanted.encode())


def once(folder: Path | None, name: str, compute: Callable[[], Any]) -> Any:
    """What the folder of a run has under this name, as JSON; else what is computed, which is then kept. None: nothing is."""
    path = None if folder is None else folder / f"{name}.json"
    if path is not None and path.exists():
        return json.loads(path.read_text())
    found = compute()
    if path is not None:
        write_atomic(path, json.dumps(found).encode())
    return found


def data_folder(given: str | None) -> Path:
    """The folder of data sets: as given, else STRUCTPRED_DATA, else ../shared/data next to the project.

    Raises DataError, saying where it looked, if that is not a folder.
    """
    root = Path(__file__).resolve().parents[2]
    if given is not None:
        folder, why = Path(given), "--data"
    elif named := os.environ.get("STRUCTPRED_DATA"):
        folder, why = Path(named), "STRUCTPRED_DATA"
    else:
        folder, why = root.parent / "shared" / "data", "neither --data nor STRUCTPRED_DATA is given; looked"
    if not folder.is_dir():
        raise DataError(f"no data sets: {why} {folder}: there is no such folder; expected the one with multilabel_yeast in it")
    return folder


def data_file(folder: Path, name: str) -> Path:
    """The file of that name in the folder, packed or not; DataError where there is neither."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            return path
    raise DataError(f"{folder / name}.gz: there is no such file, nor one that is not packed; the data sets are incomplete")
