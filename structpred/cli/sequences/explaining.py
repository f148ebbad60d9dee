"""What `structpred explain` does for sequence labellers."""

from typing import Any

import click

from structpred.cli.kinds.kind import RUNNER_UP, Explained, Explaining
from structpred.cli.sequences.data import tokens_of
from structpred.cli.sequences.results import read_for
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.evaluation.selection import select_sequences
from structpred.models import ChainLabeler


def explained(model: ChainLabeler, asked: Explaining) -> Explained:
    """Why one sequence gets its labels; with --position against the best labels in which that token has another one."""
    data, position = read_for(model, asked), asked.own["position"]
    i = asked.chosen(data.n_sequences)
    x, tokens = select_sequences(data.corpus, [i]), tokens_of(data)[i]
    other: Any = asked.runner_up("here, or a label with --position N") if position is None else None
    if position is not None:
        if position >= len(tokens):
            raise ParameterError(f"--position {position}: sample {i} has {len(tokens)} tokens, numbered from 0")
        other = _with_another_label(model, x, len(tokens), position, asked.against)
    return Explained(" ".join(tokens), model.explain(x, against=other))


def _with_another_label(model: ChainLabeler, x: Any, n: int, position: int, against: str | None) -> list[Any]:
    """The best labels in which the token has the label `against`, or any but its own."""
    classes, own = model.classes_.tolist(), model.predict(x)[0][position]
    wanted = [label for label in classes if (label != own if against in (None, RUNNER_UP) else str(label) == against)]
    if own in wanted:
        raise click.UsageError(f"--against {against}: this is the label that token {position} has")
    if not wanted:
        known = ", ".join(map(str, classes[:20]))
        raise ParameterError(f"--against {against}: the model does not know this label; it has {known}")
    allowed: list[Any] = [None] * n
    allowed[position] = wanted
    try:
        labels: list[Any] = model.predict(x, allowed=[allowed])[0].tolist()
    except InfeasibleError:
        raise DataError(f"the constraints of the model leave token {position} no other label") from None
    return labels
