"""What the shell knows of a kind of model: how it is trained, applied, scored, inspected and shown on a page.

A new kind is a subclass of Kind in a file of structpred/cli/kinds, where the commands find it by walking; or in a module of a
user's own: `structpred --kind MODULE:CLASS COMMAND ...`. No command knows a kind by name.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import click

from structpred.cli.options import Reading
from structpred.errors import ParameterError
from structpred.runtime.discovery import public_subclasses

if TYPE_CHECKING:
    from structpred.cli.training import Training
    from structpred.distributed import Shards
    from structpred.models.explanations import Explanation
    from structpred.text.markup import Html

#: in place of an alternative, as of the estimators' `explain`
RUNNER_UP = "runner-up"


@dataclass(frozen=True)
class Asked:
    """What was typed; a command gives the values of those options that it has.

    data: empty where none are given. reading: how DATA is read. own: the values of all options by name, also of those that the
    kind itself brought. confusion: the file of a picture. top: how many weights or addends. label: the only one to show.
    sample: which of the data, from 0. examples: how many of them to show.
    """

    model: str
    data: str
    reading: Reading
    own: Mapping[str, Any]
    output: str = "-"
    as_json: bool = False
    kbest: int | None = None
    marginals: bool = False
    n_jobs: int | None = None
    confusion: str | None = None
    per_type: bool = False
    top: int = 20
    label: str | None = None
    sample: int = 0
    against: str | None = None
    title: str | None = None
    examples: int = 12

    @classmethod
    def of(cls, model: str, data: str, values: Mapping[str, Any]) -> Self:
        """From the values of a command's options."""
        shared = {field.name: values[field.name] for field in fields(cls) if field.name in values}
        reading = Reading(**{name: values[name] for name in Reading._fields if name in values})
        return cls(model=model, data=data, reading=reading, own=values, **shared)

    def chosen(self, n: int) -> int:
        """The number of the sample; ParameterError where there is none of that number."""
        if self.sample >= n:
            raise ParameterError(f"--sample {self.sample}: {self.data} has {n} samples, numbered from 0")
        return self.sample

    def runner_up(self, instead: str) -> str | None:
        """What --against names, if it is "runner-up" or nothing. instead: what says what to compare with."""
        if self.against not in (None, RUNNER_UP):
            raise click.UsageError(f"--against {self.against}: expected {RUNNER_UP} {instead}")
        return self.against


class Scored(NamedTuple):
    """How good a model is on data. figures: by name, for programs. text: the same for people. main: those that matter most."""

    figures: Mapping[str, Any]
    text: str
    main: Sequence[tuple[str, str]] = ()

    def shown(self, asked: Asked) -> str:
        """What `structpred evaluate` prints."""
        return json.dumps(self.figures) if asked.as_json else self.text


class Explained(NamedTuple):
    """title: the sample on a line. pictures: of outputs, each with a line about it, for a page (Asked.output)."""

    title: str
    explanation: "Explanation"
    pictures: "Sequence[tuple[str, Html]]" = ()


class Kind(ABC):
    """One kind of model. The docstring of a child is the help page of `structpred train NAME`.

    Attributes
    ----------
    name : the word after `structpred train`.
    summary : what that trains, in a few words.
    plural : what error messages call such models.
    estimators : the classes that model files of this kind name.
    options : for each command the options that only this kind has; of another kind's model they are refused.
    refuses : for each command the shared options, by the names of their values, that this kind does not take.
    defaults : the defaults of shared training options, where they differ from those of training_options.py.
    lacks : what trainers may need that no data of this kind have, of `core.requirements.OF_ROWS`.
    one_value : the training options of which `structpred tune` takes one value, beside shared ones: what is read and scored.
    in_tuning : the values that `structpred tune` sets training options to.
    sample : name and text of a tiny data file, and the options of `train` to read it; `structpred warmup` trains on it.
    place : the option of `explain` that picks one place of an output, and how places are counted.
    instead : the option of `evaluate`, by the name of its value, that replaces MODEL; see evaluate_files.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    plural: ClassVar[str]
    estimators: ClassVar[tuple[str, ...]]
    options: ClassVar[Mapping[str, Sequence[click.Option]]] = {}
    refuses: ClassVar[Mapping[str, Sequence[str]]] = {}
    defaults: ClassVar[Mapping[str, Any]] = {}
    lacks: ClassVar[Sequence[str]] = ("rows", "signed_rows", "label_rows", "label_sets")
    one_value: ClassVar[Sequence[str]] = ()
    in_tuning: ClassVar[Mapping[str, Any]] = {}
    sample: ClassVar[tuple[str, str, Sequence[str]] | None] = None
    place: ClassVar[str | None] = None
    instead: ClassVar[str | None] = None

    def completed(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values of all options of `structpred train NAME`, with those found in the data that were left to be found there."""
        return values

    @abstractmethod
    def training(self, values: Mapping[str, Any]) -> "Training[Any]":
        """One run of training, from the values of all options of `structpred train NAME`."""

    def load(self, path: str) -> Any:
        """The fitted estimator of a model file."""
        from structpred.models.files import load_estimator

        return load_estimator(path, *self.estimators)

    @abstractmethod
    def predict(self, model: Any, asked: Asked) -> None:
        """Write what the model predicts for the data."""

    def shards(self, model: Any, asked: Asked, n: int) -> "Shards":
        """The data in n pieces, for `predict --shards`."""
        raise click.UsageError(f"--shards: {self.plural} predict all data at once; leave --shards out")

    def words_as_data(self, model: Any, asked: Asked, sentences: Sequence[Sequence[str]]) -> str:
        """Sentences of words as the data file that `predict` reads for this model. Raises DataError where it needs more."""
        raise click.UsageError(f"--text is for sequence labellers and parsers, not for {self.plural}")

    @abstractmethod
    def evaluate(self, model: Any, asked: Asked) -> str:
        """The scores of the model on labelled data, as text or as one JSON object."""

    def evaluate_files(self, ctx: click.Context, model: str | None, asked: Asked) -> str:
        """The scores of files with predictions, where the option `instead` was given. asked.data is empty where it is missing."""
        raise click.UsageError(f"{self.plural} are evaluated with MODEL and DATA only", ctx)

    def explain(self, model: Any, asked: Asked) -> Explained:
        """Why the model gives one sample its output."""
        raise click.UsageError(f"{self.plural} cannot be explained")

    @abstractmethod
    def inspect(self, model: Any, asked: Asked) -> str:
        """What the model has learnt, as text or as one JSON object."""

    @abstractmethod
    def page(self, model: Any, asked: Asked) -> str:
        """The HTML page about the model, and about its errors on the data where there are any."""


@cache
def found_kinds() -> tuple[Kind, ...]:
    """The kinds of this package, in the order of their names."""
    return tuple(sorted((kind() for kind in public_subclasses(__package__, Kind)), key=lambda kind: kind.name))  # type: ignore[type-abstract]
