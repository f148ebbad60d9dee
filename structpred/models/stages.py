"""Training in stages: other estimators are fitted for a model, and each has a checkpoint next to that of the model."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from structpred.models.base import as_callbacks
from structpred.trainers.running.checkpoints import begun, claimed, remove_checkpoint


def stage_checkpoint(path: str | os.PathLike[str], name: str = "relations", part: int = 0) -> Path:
    """Where another stage keeps its checkpoint, next to that of the model at `path`. part: of the data; 0: all of them."""
    path = Path(path)
    return path.with_name(f"{path.name}.{name.replace(' ', '-')}{f'-{part}' if part else ''}")


def forget_stages(model: Any, name: str = "relations", parts: int = 0) -> None:
    """Remove checkpoints of a stage of an earlier run, and of its parts, which a run from zero must not continue later."""
    if model.checkpoint is None or model.resume:
        return
    own = Path(model.checkpoint)
    with claimed(own):  # of an earlier run, not of one that is still in some stage
        for path in (stage_checkpoint(own, name, part) for part in range(parts + 1)):
            with claimed(path):
                remove_checkpoint(path)
        if model._comes_last:
            remove_checkpoint(own)


@contextmanager
def stage_of(model: Any, other: Any, name: str, number: int, part: int = 0, of: int = 0, first: bool = False) -> Iterator[None]:
    """In here another estimator is fitted for `model`, with its callbacks, which are told the number of the stage.

    part: of the data, 1 to `of`; 0: all of them. first: a run that is resumed must have its checkpoint. Raises KeyboardInterrupt,
    saying how to go on, where it is interrupted.
    """
    path = None if model.checkpoint is None else stage_checkpoint(model.checkpoint, name, part)
    other.callbacks = [lambda row, tell=tell: tell({**row, "stage": number}) for tell in as_callbacks(model.callbacks)]
    other.checkpoint, other._stage = path, f"{name}, part {part} of {of}" if part else name
    other.resume = model.resume and (first or path is None or begun(path))
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing is kept" if path is None else f"continue with resume=True from {model.checkpoint}"
        raise KeyboardInterrupt(f"training was interrupted while the {name} was trained; {kept}") from None
    finally:  # the user's own, which pickle may know
        other.callbacks, other.checkpoint, other.resume = model.callbacks, None, False
