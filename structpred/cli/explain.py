"""`structpred explain`: why a model gives one output."""

import json
import logging
import os
from dataclasses import replace
from typing import Any

import click

from structpred.cli.files import check_output
from structpred.cli.kinds.kind import Asked
from structpred.cli.model_command import ModelCommand, check_text, open_model, text_options, words_of
from structpred.cli.options import InputFile, general_options, reading_options

log = logging.getLogger("structpred.cli")


@click.command(cls=ModelCommand, short_help="Show why a model gives one output.")
@click.argument("model", type=InputFile())
@click.argument("data", type=InputFile())
@click.option(
    "--sample", default=0, show_default=True, type=click.IntRange(0), metavar="N",
    help="Which sequence, sentence or example of DATA, counted from 0 as in messages.",
)  # fmt: skip
@click.option(
    "--against", metavar="WHAT",
    help="Compare with another output: runner-up, or a label of the token of --position, a head of the word of --word.",
)  # fmt: skip
@click.option("--top", default=20, show_default=True, type=click.IntRange(1), metavar="N", help="Contributions to show.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object with all contributions.")
@click.option("-o", "--output", metavar="PAGE", help="Write an .html page instead, that of a parser with its trees.")
@text_options
@reading_options
@general_options
@click.pass_context
def explain(ctx: click.Context, /, model: str, data: str, output: str | None, **values: Any) -> None:
    """Show why MODEL gives one sample of DATA its output: what each feature adds to the score, the largest first.

    \b
    structpred explain chunk.spz test.txt --sample 3 --position 5 --against O
    structpred explain en.spz test.conllu --word 4 --against 2
    structpred explain yeast.spz test.arff --label Class7
    structpred explain en.spz words.txt --text --sample 0 -o why.html

    With --against, and with --position, --word or --label, the output is compared with another one: what is shown are the
    differences, which add up to the difference of the two scores.
    """
    from structpred.report.page import html_page
    from structpred.storage.atomic import write_atomic
    from structpred.text.markup import join, scrolling, tag
    from structpred.text.tables import cut

    asked = replace(Asked.of(model, data, values), output=output or "-")
    if output is not None and (asked.as_json or output == "-"):
        raise click.UsageError("-o PAGE must be a file, and is not for --json")
    check_text(ctx, asked)
    if output is not None:
        check_output(output, "-o", inputs=(model, data))
    estimator, kind = open_model(ctx, model, values)
    with words_of(kind, estimator, asked) as found:
        title, why, pictures = kind.explain(estimator, found)
    if output is not None:
        where = tag("p", f"{os.path.basename(data)}, sample {asked.sample}: {title}")
        drawn = [tag("div", tag("p", line), scrolling(picture)) for line, picture in pictures]
        shown = join(where, *drawn, tag("div", why.html(asked.top), class_="wide", tabindex=0))
        write_atomic(output, html_page(cut(title, 60), [("Explanation", shown)]).encode())
        log.info("wrote %s", output)
    elif asked.as_json:
        click.echo(json.dumps({"sample": asked.sample, "title": title, **why.to_dict()}))
    else:
        click.echo(f"sample {asked.sample}: {title}\n\n{why.text(asked.top)}")
