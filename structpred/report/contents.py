"""What a report page shows of a model and how it does: plain figures and texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from structpred.core.result import Certificate
from structpred.core.types import AnyArray, Floats, Integers
from structpred.evaluation import Calibration, Evaluation


@dataclass(frozen=True)
class Weights:
    """The strongest features of a label: (name, weight), for it and against it."""

    label: str
    positive: Sequence[tuple[str, float]]
    negative: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Example:
    """One labelled sequence. where: its place in the data. sure: how sure each decision was, see Contents.sureness.

    tokens: what to show of each token. images: letter images (T, height, width) instead. candidates: for each position
    its best labels with their probabilities, best first.
    """

    where: str
    tokens: Sequence[str]
    gold: Sequence[str]
    predicted: Sequence[str]
    sure: Sequence[float] = ()
    images: AnyArray | None = None
    candidates: Sequence[Sequence[tuple[str, float]]] = ()


@dataclass(frozen=True)
class Stage:
    """One stage of training, as the heads or the relations of a parser: its certificate, and the history of its run."""

    certificate: Certificate
    history: Sequence[Mapping[str, Any]] = ()
    name: str = ""


@dataclass(frozen=True)
class About:
    """What the page of every model shows. facts: (name, text). stages: of training, one or more."""

    title: str
    facts: Sequence[tuple[str, str]]
    stages: Sequence[Stage]


@dataclass(frozen=True)
class Contents(About):
    """All that a page shows; what is None or empty is left out.

    labels, transitions (n, n), start (n), stop (n): the weights of the chain; -inf is forbidden. templates: where features
    are pixels, the weights of each label as a picture (height, width), instead of `weights`. data: the name of the data.
    confusion: labels and counts (n, n), rows gold. sureness: "probability" or "score gap", what `Example.sure` is.
    """

    labels: Sequence[str]
    transitions: Floats
    start: Floats
    stop: Floats
    weights: Sequence[Weights]
    templates: Sequence[tuple[str, Floats]] = ()
    data: str | None = None
    evaluation: Evaluation | None = None
    calibration: Calibration | None = None
    confusion: tuple[Sequence[str], Integers] | None = None
    examples: Sequence[Example] = field(default_factory=tuple)
    sureness: str = "score gap"
