"""Words as strips of letter images, with what each model read under them."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structpred.core.types import ArrayLike, Floats
from structpred.errors import DataError
from structpred.report import figures

_LINE = 0.62  # the height of a line of text, where a letter image is 1 wide
_GAP = 0.55
_UNIT = 0.36  # inches a letter


def word_strips(
    images: Sequence[ArrayLike], gold: Sequence[Sequence[str]], predictions: Mapping[str, Sequence[Sequence[str]]],
    path: str | os.PathLike[str], *, units: tuple[str, str] = ("letters", "words"),
) -> None:  # fmt: skip
    """Draw each word as its letter images, the true letters, and a line for each model; save the picture.

    images: one array (n_letters, height, width) a word, dark ink as large values. gold, and each value of predictions:
    one string (or list of labels) a word. A wrong letter is red, bold and boxed, so that it also shows in grey; a word
    wholly right ends in a tick. The heading counts the errors over the words shown; units: what it calls letters and words.

    Raises DataError with the word's index if lengths do not match or there is nothing to draw, ParameterError for a path
    that ends neither in .png nor in .svg.
    """
    letters = [np.asarray(word, dtype=np.float64) for word in images]
    _check(letters, gold, predictions)
    aspect = max(word.shape[1] / word.shape[2] for word in letters)
    longest = max(len(word) for word in gold)
    columns = 2 if len(letters) > 5 and longest <= 16 else 1
    margin = 0.75 + 0.26 * max(len(name) for name in ("truth", *predictions))
    width, height = margin + longest + 1.4, aspect + _LINE * (1 + len(predictions)) + _GAP
    rows = -(-len(letters) // columns)
    figure = figures.new_figure(_UNIT * width * columns, _UNIT * (height * rows + 0.6 + 0.45 * len(predictions)), path)
    ax = figure.subplots()
    for i, word in enumerate(letters):
        corner = (i // rows * width + margin, i % rows * height)
        _word(ax, corner, word, gold[i], {name: words[i] for name, words in predictions.items()}, aspect)
    ax.set_xlim(0, width * columns)
    ax.set_ylim(height * rows - 0.5 * _GAP, -0.15)
    ax.set_aspect("equal")
    ax.axis("off")
    ax.set_title(
        "\n".join(_heading(gold, name, words, units) for name, words in predictions.items()), fontsize=10, parse_math=False
    )
    figures.save(figure, path)


def _check(images: Sequence[Floats], gold: Sequence[Sequence[str]], predictions: Mapping[str, Sequence[Sequence[str]]]) -> None:
    if not len(images) or not predictions:
        raise DataError("nothing to draw: expected at least one word and one model's predictions")
    for name, words in (("the true words", gold), *predictions.items()):
        if len(words) != len(images):
            raise DataError(f"{name}: {len(words)} words for {len(images)} strips of images")
    for i, word in enumerate(images):
        if word.ndim != 3 or not word.size:
            raise DataError(f"word {i}: expected images of shape (letters, height, width), got {word.shape}")
        for name, words in (("truth", gold), *predictions.items()):
            if len(words[i]) != len(word):
                raise DataError(f"word {i}: {len(word)} images but {len(words[i])} letters ({name})")


def _word(
    ax: figures.Axes, corner: tuple[float, float], images: Floats, truth: Sequence[str], read: Mapping[str, Sequence[str]],
    aspect: float,
) -> None:  # fmt: skip
    left, top = corner
    strip = np.concatenate(list(images), axis=1)
    ax.imshow(strip, cmap="gray_r", extent=(left, left + len(images), top + aspect, top), interpolation="nearest", aspect="auto")
    for k in range(len(images) + 1):
        ax.plot([left + k, left + k], [top, top + aspect], color="#BBBBBB", linewidth=0.5)
    for line, (name, word) in enumerate([("truth", truth), *read.items()]):
        y = top + aspect + (line + 0.6) * _LINE
        ax.text(left - 0.3, y, name, ha="right", va="center_baseline", fontsize=8, color=figures.GREY, parse_math=False)
        wrong = [a != b for a, b in zip(word, truth, strict=True)]
        for k, letter in enumerate(word):
            _letter(ax, left + k + 0.5, y, str(letter), wrong[k])
        if line and not any(wrong):
            ax.text(
                left + len(images) + 0.3, y, "\N{CHECK MARK}", ha="left", va="center_baseline", fontsize=9, color=figures.GREEN
            )


def _letter(ax: figures.Axes, x: float, y: float, letter: str, wrong: bool) -> None:
    box = {"boxstyle": "square,pad=0.12", "facecolor": "none", "edgecolor": figures.WRONG, "linewidth": 0.9} if wrong else None
    colour, weight = (figures.WRONG, "bold") if wrong else ("black", "normal")
    style: dict[str, Any] = {"fontsize": 9, "family": "monospace", "parse_math": False}
    ax.text(x, y, letter, ha="center", va="center_baseline", color=colour, weight=weight, bbox=box, **style)


def _heading(gold: Sequence[Sequence[str]], name: str, words: Sequence[Sequence[str]], units: tuple[str, str]) -> str:
    pairs = [(a, b) for one, other in zip(gold, words, strict=True) for a, b in zip(one, other, strict=True)]
    letters = sum(a != b for a, b in pairs)
    whole = sum(any(a != b for a, b in zip(one, other, strict=True)) for one, other in zip(gold, words, strict=True))
    return f"{name}: {letters} of {len(pairs)} {units[0]} wrong, {whole} of {len(gold)} {units[1]} with an error"
