"""`structpred validate`: all problems of a data file at once."""

import json
import logging
from typing import Any

import click

from structpred.cli.options import FORMATS, TREEBANK_FORMATS, Choice, InputFile, auto_or, encoding_option, general_options
from structpred.cli.session import EXIT_DATA

log = logging.getLogger("structpred.cli")


@click.command(short_help="Look for problems in a data file.")
@click.argument("data", type=InputFile(), metavar="FILE")
@click.option(
    "--format", **auto_or(FORMATS + TREEBANK_FORMATS), help="Format of the data; auto: what the first lines show.",
)  # fmt: skip
@click.option(
    "--dev", type=InputFile(), metavar="FILE", help="Held-out data: unseen labels, and sequences that are in both files."
)
@click.option("--label-column", type=int, metavar="N", help="Column of the labels, from 0; default: the last. Not for treebanks.")
@click.option(
    "--rare", default=5, show_default=True, type=click.IntRange(0), metavar="N", help="Report labels with fewer tokens."
)
@click.option(
    "--max-length", default=250, show_default=True, type=click.IntRange(1), metavar="N", help="Report sequences of more tokens."
)
@click.option("--places", default=5, show_default=True, type=click.IntRange(1), metavar="N", help="Places to show of each kind.")
@click.option(
    "--on-error", type=Choice(("fail", "skip")), default="fail", show_default=True,
    help="skip: write FILE without the sequences that have an error to -o, and end with exit code 0.",
)  # fmt: skip
@click.option("-o", "--output", metavar="CLEAN", help="The file that --on-error skip writes.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@encoding_option
@general_options
def validate(
    data: str, format: str | None, label_column: int | None, on_error: str, output: str | None, as_json: bool, **settings: Any
) -> None:
    """Read FILE to its end and report everything that is wrong with it, with the first few places of each kind.

    Errors are rows that cannot be read, labels that break the tagging scheme of the rest (it is detected), and in treebanks
    ids and heads that make no tree. Warnings are rare labels, labels that differ by case, repeated sequences and the like.
    Exit code 1 if there are errors.
    """
    from structpred.cli.files import check_output, write_output
    from structpred.io.detection import detect_format, first_lines
    from structpred.io.text import source_name
    from structpred.io.validation import columns as validation
    from structpred.io.validation import treebanks as treebank_validation

    if (on_error == "skip") != (output is not None):
        raise click.UsageError("--on-error skip and -o CLEAN belong together")
    dev = settings["dev"]
    if data == dev == "-":
        raise click.UsageError("FILE and --dev cannot both be standard input")
    if output is not None:
        if output == "-":
            raise click.UsageError("-o CLEAN must be a file: the findings go to standard output")
        check_output(output, "-o", inputs=[name for name in (data, dev) if name is not None])
    lines = [] if format is not None else first_lines(data, settings["encoding"])
    if any(line[:1] not in ("", "#") for line in lines):  # not only comments of a treebank
        shown = detect_format(lines, source_name(data))
        if shown.format not in TREEBANK_FORMATS:  # whose report names it
            format = shown.format
            log.info("%s: format %s: %s", source_name(data), format, shown.seen)
    found: validation.Validation
    if format is not None and format not in TREEBANK_FORMATS:
        column = -1 if label_column is None else label_column
        found = validation.validate(data, format, label_column=column, **settings)
    elif label_column is not None:
        raise click.UsageError("--label-column is for column files; treebank formats have their own columns")
    else:
        found = treebank_validation.validate_trees(data, format, **settings)
    click.echo(json.dumps(found.to_dict()) if as_json else str(found))
    if output is not None:
        write_output(output, found.clean().decode())
        log.info("wrote %s: %d sequences left out, %d kept", output, found.n_broken, found.n_kept)
    elif not found.ok:
        raise click.exceptions.Exit(EXIT_DATA)
