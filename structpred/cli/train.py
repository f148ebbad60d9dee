"""`structpred train`: one command for each kind of model, made from its description."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from structpred.cli.kinds.kind import Kind
from structpred.cli.model_command import kinds_of
from structpred.cli.options import SuggestingGroup
from structpred.cli.session import Session
from structpred.cli.training_options import resolved_passes, shared_params


def _kinds(ctx: click.Context) -> dict[str, Callable[[], click.Command]]:
    """A command for each kind of model."""
    return {kind.name: partial(train_command, kind) for kind in kinds_of(ctx.ensure_object(Session))}


@click.group(cls=SuggestingGroup, makers=_kinds, short_help="Train a model.")
def train() -> None:
    """Train a model of one kind; Ctrl-C keeps the state of the run, and --resume continues it."""


def train_command(kind: Kind) -> click.Command:
    """`structpred train NAME`: the options that all share, those of the kind, and its docstring as help."""

    @click.pass_obj
    def run(session: Session, /, **values: Any) -> None:
        from structpred.cli.training import run_training

        if "max_iter" in values:
            values["max_iter"] = resolved_passes(values, kind.defaults, kind.lacks)
        values = dict(kind.completed(values))
        run_training(kind.training(values), values, session)

    refused = kind.refuses.get("train", ())
    shared = [param for param in shared_params(kind.defaults, kind.lacks) if param.name not in refused]
    params = [*shared[:2], *kind.options.get("train", ()), *shared[2:]]
    return click.Command(kind.name, callback=run, params=params, help=inspect.getdoc(kind), short_help=kind.summary)
