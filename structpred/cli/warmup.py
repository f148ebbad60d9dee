"""`structpred warmup`: the kernels that a kind of model needs, compiled now."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click

from structpred.cli.kinds.kind import Kind
from structpred.cli.model_command import kinds_of
from structpred.cli.options import general_options
from structpred.cli.session import Session


@click.command(short_help="Compile what training and prediction need.")
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@click.option("--trainer", "trainers", multiple=True, metavar="NAME", help="As of `train`; default: that of the kind.")
@general_options
@click.pass_obj
def warmup(session: Session, kinds: tuple[str, ...], trainers: tuple[str, ...]) -> None:
    """Train and apply a tiny model of each KIND (chain, parser, multilabel; default: all), so that its kernels are compiled.

    \b
    structpred warmup
    structpred warmup chain --trainer sgd --trainer bcfw

    Compiled kernels are kept, so that this is needed once per installation, in the image of a container for example. Without it
    the first training or prediction waits for them.
    """
    known = {kind.name: kind for kind in kinds_of(session) if kind.sample is not None}
    if unknown := [name for name in kinds if name not in known]:
        raise click.UsageError(f"there are no kernels of {unknown[0]!r}; say which: {', '.join(known)}")
    for name in kinds or known:
        click.echo(f"{name}: {_warm(known[name], trainers)}")


def _warm(kind: Kind, trainers: Sequence[str]) -> str:
    """Train, predict, and say how long it took."""
    from structpred.runtime.compiled import compiled_kernels

    before, start = compiled_kernels(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for trainer in trainers or (None,):
            _run(kind, Path(folder), trainer)
    if not (n := compiled_kernels() - before):
        return "all kernels are there"
    return f"{n} kernels compiled in {time.perf_counter() - start:.1f} s"


def _run(kind: Kind, folder: Path, trainer: str | None) -> None:
    """The commands that a user would give, on the sample of the kind."""
    from structpred.cli.predict import predict
    from structpred.cli.train import train_command

    assert kind.sample is not None
    name, text, options = kind.sample
    (folder / name).write_text(text, encoding="utf-8")
    data, model = str(folder / name), str(folder / "model.spz")
    chosen = [] if trainer is None else ["--trainer", trainer]
    session = Session(kind=kind)
    for command, arguments in (
        (train_command(kind), [data, "-o", model, "--max-iter", "2", "--quiet", *chosen, *options]),
        (predict.of_kinds([kind]), [model, data, "-o", str(folder / "predicted"), "--quiet"]),
    ):
        command.main(arguments, command.name, standalone_mode=False, obj=session)
