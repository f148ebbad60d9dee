"""`structpred clusters`: word classes from text without labels."""

import logging
from collections.abc import Iterable

import click

from structpred.cli.files import check_output, write_output
from structpred.cli.options import InputFile, auto_or, encoding_option, general_options


@click.command(short_help="Word classes from text without labels.")
@click.argument("texts", nargs=-1, required=True, type=InputFile(), metavar="TEXT...")
@click.option("-o", "--output", required=True, metavar="FILE", help="The classes, such as brown.txt.")
@click.option("--classes", default=320, show_default=True, type=click.IntRange(2, 5000), metavar="N", help="How many.")
@click.option("--min-count", default=1, show_default=True, type=click.IntRange(1), metavar="N", help="Leave out rarer words.")
@click.option("--format", **auto_or(("text", "columns", "treebank")), help="text: a sentence a line; columns: words come first.")
@encoding_option
@general_options
def clusters(texts: tuple[str, ...], output: str, classes: int, min_count: int, format: str | None, encoding: str) -> None:
    """Brown clustering: write path, word and count of each word of TEXT, where similar words have similar paths.

    \b
    structpred clusters text.txt -o brown.txt
    structpred clusters train.conllu more.txt --classes 1000 --min-count 2 -o brown.txt
    """
    from structpred.data.clusters import brown_clusters

    check_output(output, "-o", inputs=texts)
    sentences = (sentence for path in texts for sentence in _sentences(path, format, encoding))
    rows = brown_clusters(sentences, classes, min_count=min_count)
    write_output(output, "".join(f"{path}\t{word}\t{count}\n" for path, word, count in rows))


def _sentences(path: str, format: str | None, encoding: str) -> Iterable[list[str]]:
    from structpred.io.columns import BOUNDARY, field_count, read_columns
    from structpred.io.detection import first_lines
    from structpred.io.guesses import looks_like_treebank
    from structpred.io.text import read_text, source_name, split_lines
    from structpred.io.treebanks.reader import read_treebank

    lines = [line for line in first_lines(path, encoding) if line.strip() and not line.startswith(BOUNDARY)]
    alike = len(lines) > 1 and len(set(map(field_count, lines))) == 1
    format = format or ("treebank" if looks_like_treebank(lines) else "columns" if alike else "text")
    logging.getLogger("structpred.cli").info("%s: read as --format %s", source_name(path), format)
    if format == "text":
        return map(str.split, split_lines(read_text(path, encoding)))
    if format == "columns":
        return read_columns(path, encoding=encoding).labels(0)
    treebank = read_treebank(path, check_trees=False, encoding=encoding)
    return treebank.nested(treebank.forms)
