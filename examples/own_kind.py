"""Your own kind of model in the shell, in one file: choose the best of several candidates, each described by features.

python examples/own_kind.py
cd examples && structpred --kind own_kind:Choices train choices TRAIN -o model.spz
cd examples && structpred --kind own_kind:Choices evaluate model.spz TEST
"""

import json
import tempfile
from pathlib import Path
from typing import ClassVar

import click
import numpy as np

from structpred import Instance
from structpred.cli.app import run
from structpred.cli.files import write_output
from structpred.cli.kinds.kind import Kind
from structpred.cli.session import Session
from structpred.cli.training import Training
from structpred.cli.training_options import TrainingOptions
from structpred.errors import DataError
from structpred.io.text import read_text, source_name, split_lines
from structpred.models import StructuredPredictor
from structpred.oracles.multiclass import MulticlassOracle
from structpred.report.page import html_page
from structpred.text.markup import tag
from structpred.text.tables import columns


def read_choices(path, encoding="utf-8"):
    """Instances and the right choices.

    A candidate a line: * if it is the right one, else -, then features name=value. A blank line ends a question.
    """
    X, y, rows, marks = [], [], [], []
    for number, line in enumerate([*split_lines(read_text(path, encoding)), ""], 1):
        if not line and rows:
            if marks.count("*") != 1:
                raise DataError(f"{source_name(path)}:{number}: expected one candidate marked *, got {marks.count('*')}")
            X.append(Instance(rows, (len(rows),)))
            y.append([marks.index("*")])
            rows, marks = [], []
        elif line:
            mark, *pairs = line.split()
            marks.append(mark)
            rows.append({name: float(value) for name, value in (pair.split("=") for pair in pairs)})
    return X, y


class ChoiceTraining(Training[TrainingOptions]):
    """One run of `structpred train choices`."""

    def read(self):
        """The training data, and the held-out data."""
        options = self.options
        self.train = read_choices(options.data, options.encoding)
        self.dev = None if options.dev is None else read_choices(options.dev, options.encoding)
        return {"questions": len(self.train[0])}

    def estimator(self, common):
        """The estimator, with the settings that all kinds of models have."""
        return StructuredPredictor(MulticlassOracle(), scoring="exact", **common)

    def fit(self, model):
        """Fit it; what `reader_` holds is kept in the model file."""
        model.fit(*self.train, dev=self.dev)
        model.reader_ = {"format": "choices"}

    def shape(self, model):
        """What the last line of the log says of the model file."""
        return f"{model.n_features_in_} features"


class Choices(Kind):
    """Train a model that chooses one of the candidates of each question in TRAIN."""

    name = "choices"
    summary = "Train a model that chooses among candidates."
    plural = "models of choices"
    estimators = ("StructuredPredictor",)
    options: ClassVar = {"predict": [click.Option(["--from-zero"], is_flag=True, help="Choices: count candidates from 0.")]}
    refuses: ClassVar = {
        "train": ("n_jobs", "on_error"),
        "predict": ("kbest", "marginals", "n_jobs", "format", "on_error"),
        "evaluate": ("confusion", "per_type", "format", "on_error"),
        "inspect": ("label",),
        "report": ("examples", "format", "on_error"),
    }

    def training(self, values):
        """One run of training."""
        return ChoiceTraining(TrainingOptions(**values))

    def load(self, path):
        """A model file names its oracle but does not hold it."""
        return StructuredPredictor.load(path, MulticlassOracle())

    def predict(self, model, asked):
        """Write the number of the chosen candidate, a line a question."""
        X, _ = read_choices(asked.data, asked.reading.encoding)
        numbers = [int(labels[0]) + (not asked.own["from_zero"]) for labels in model.predict(X)]
        write_output(asked.output, "".join(f"{json.dumps({'choice': n}) if asked.as_json else n}\n" for n in numbers))

    def evaluate(self, model, asked):
        """The share of questions that are answered right."""
        X, y = read_choices(asked.data, asked.reading.encoding)
        right = model.score(X, y)
        return json.dumps({"n": len(X), "right": right}) if asked.as_json else f"{len(X)} questions, {100 * right:.2f} % right"

    def inspect(self, model, asked):
        """The strongest features."""
        weights = list(zip(model.feature_names_, model.coef_.tolist(), strict=True))
        weights = sorted(weights, key=lambda pair: -abs(pair[1]))[: asked.top]
        if asked.as_json:
            return json.dumps({"weights": dict(weights)})
        return "\n".join([str(model.certificate_), *columns(weights, [])])

    def page(self, model, asked):
        """The certificate, and the score on the data where there are any."""
        parts = [("Model", tag("p", str(model.certificate_)))]
        if asked.data:
            right = model.score(*read_choices(asked.data, asked.reading.encoding))
            parts.append(("Score", tag("p", f"{100 * right:.2f} % right")))
        return html_page(asked.title or asked.model, parts)


def make_data(n_questions, rng):
    """Questions whose right candidate is told by hidden weights."""
    questions = []
    for _ in range(n_questions):
        rows = rng.normal(size=(int(rng.integers(2, 5)), 3)).round(3)
        best = (rows @ [2.0, -1.0, 0.5]).argmax()
        lines = [" ".join(["*" if k == best else "-", *(f"f{j}={x}" for j, x in enumerate(row))]) for k, row in enumerate(rows)]
        questions.append("".join(f"{line}\n" for line in lines))
    return "\n".join(questions)


def main():
    """Train, evaluate and inspect from the shell, as the lines at the top of this file do."""
    with tempfile.TemporaryDirectory() as folder:
        train, test, model = (str(Path(folder) / name) for name in ("train.txt", "test.txt", "model.spz"))
        for path, seed in ((train, 0), (test, 1)):
            Path(path).write_text(make_data(100, np.random.default_rng(seed)))
        for command in (("train", "choices", train, "-o", model, "-q"), ("evaluate", model, test), ("inspect", model)):
            if run(Session(("--kind", "own_kind:Choices", *command))):
                raise SystemExit(1)


if __name__ == "__main__":
    main()
