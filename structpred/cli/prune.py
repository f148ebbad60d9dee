"""A model written anew: `structpred prune`, without groups of weights; `export`, as a program."""

import json
import logging
from typing import TYPE_CHECKING, Any

import click

from structpred.cli.files import check_output, check_picture
from structpred.cli.model_command import ModelCommand, open_model
from structpred.cli.options import InputFile, general_options
from structpred.errors import DataError, ParameterError

if TYPE_CHECKING:
    from structpred.models.base import StructuredEstimator

log = logging.getLogger("structpred.cli")


@click.command(cls=ModelCommand, short_help="Drop features that do not matter.")
@click.argument("model", type=InputFile())
@click.option("--output", "-o", required=True, metavar="FILE", help="The smaller model.")
@click.option(
    "--below", default=0.0, show_default=True, type=click.FloatRange(0, 1), metavar="SHARE",
    help="Drop groups whose norm is at most this share of all norms; 0 drops what is zero, and predictions stay the same.",
)  # fmt: skip
@click.option("--templates", metavar="FILE", help="Write the templates that are left, to train with again (chains: .json).")
@click.option("--picture", metavar="FILE", help="Draw the shares of the groups along training: a .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: the share of each group, and whether it was dropped.")
@general_options
@click.pass_context
def prune(
    ctx: click.Context, model: str, output: str, below: float, templates: str | None, picture: str | None, as_json: bool
) -> None:
    """Write MODEL without the groups of features, such as those of one template, whose weights are small.

    \b
    structpred train chain train.txt --template chunking --format conll2000 --trainer online_mkl -o big.spz
    structpred prune big.spz --below 0.002 -o small.spz --templates kept.json
    structpred train chain train.txt --template kept.json --format conll2000 -o again.spz

    Training with a group regulariser (--trainer online_mkl, or --regulariser mkl or group_lasso) makes groups zero. Where the
    weights of a dropped group are not zero, predictions change. The gap is then known for --below 0.001 alone, which training
    has looked at: otherwise train again with the templates that are left.
    """
    from structpred.core.regulariser import shares
    from structpred.report.curves import group_curves

    check_output(output, "--output", inputs=(model,))
    if templates is not None:
        check_output(templates, "--templates", inputs=(model,))
    check_picture(picture, "--picture", (model,))
    estimator, _ = open_model(ctx, model, {})
    if templates is not None:
        _check_templates(estimator, templates)
    found = shares(estimator.group_norms_).tolist()
    dropped = [name for name, share in zip(estimator.group_names_, found, strict=True) if share <= below]
    if picture is not None:
        if "group_weights" not in estimator.report_:
            raise DataError(f"{model}: --picture needs the shares after each pass, which the trainer online_mkl reports")
        group_curves(estimator.report_["group_weights"], estimator.group_names_, picture)
    smaller = estimator.without_groups(dropped)
    smaller.save(output)
    if templates is not None:
        from structpred.io.templates.templates import Template, write_templates
        from structpred.storage.atomic import write_atomic

        left = _templates_of(smaller)
        if isinstance(left[0], Template):
            write_templates(left, templates)
        else:
            write_atomic(templates, "".join(f"{template}\n" for template in left).encode())
    click.echo(_report(estimator, smaller, found, dropped, as_json=as_json))


def _templates_of(model: "StructuredEstimator") -> Any:
    """The templates of a chain model or of a parser; None, or a name of templates, for others."""
    return getattr(model, "template", None) or getattr(model, "templates_", None)


def _check_templates(model: "StructuredEstimator", path: str) -> None:
    """Raise ParameterError where there is nothing to write, or where `structpred train` would not read a file of that name."""
    from structpred.io.templates.templates import Template

    found = _templates_of(model)
    if not isinstance(found, list):
        raise ParameterError("--templates: this model was not trained with templates")
    if isinstance(found[0], Template) and not path.endswith(".json"):
        raise ParameterError(f"--templates: expected a name that ends in .json, got {path!r}")


def _report(
    before: "StructuredEstimator", after: "StructuredEstimator", shares: list[float], dropped: list[str], *, as_json: bool
) -> str:
    """The shares of all groups, the largest first, and what is left."""
    rows = sorted(zip(before.group_names_, shares, strict=True), key=lambda row: -row[1])
    if as_json:
        groups = [{"group": name, "share": share, "dropped": name in dropped} for name, share in rows]
        weights = {"before": len(before.coef_), "after": len(after.coef_)}
        return json.dumps({"groups": groups, "weights": weights, "certificate": str(after.certificate_)})
    lines = [f"{share:8.4f}  {name}{'   dropped' if name in dropped else ''}" for name, share in rows]
    left = f"{len(dropped)} of {len(rows)} groups dropped; {len(before.coef_):,} -> {len(after.coef_):,} weights"
    return "\n".join((*lines, left, f"certificate: {after.certificate_}"))


@click.command(short_help="Write a model as a program that needs NumPy alone.")
@click.argument("model", type=InputFile())
@click.option("-o", "--output", required=True, metavar="PROGRAM", help="The program, such as tagger.py; its weights lie beside.")
@general_options
@click.pass_context
def export(ctx: click.Context, model: str, output: str) -> None:
    """Write the sequence labeller or multi-label model in MODEL as one Python file and its weights, for deployment.

    \b
    structpred export chunk.spz -o tagger.py
    python tagger.py test.txt > tagged.txt

    The program predicts the same labels, bit for bit, and writes what `structpred predict` does. It needs NumPy alone: no
    structpred, no compiler. As a module it has predict(X). What it cannot do is refused here.
    """
    from structpred.export import export_predictor

    check_output(output, "-o", inputs=(model,))
    estimator, _ = open_model(ctx, model, {})
    files = export_predictor(estimator, output)
    sizes = [path.stat().st_size for path in files]
    log.info("wrote %s (%s bytes) and %s (%s bytes)", files.program, f"{sizes[0]:,}", files.weights, f"{sizes[1]:,}")
