"""Attribute corpora written in CRFsuite's text format, for round trips through the reader."""

from structpred.io.crfsuite import AttributeCorpus


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(":", "\\:")


def crfsuite_text(corpus: AttributeCorpus) -> str:
    """A line for each item: its label, then its attributes with their values; a blank line behind each sequence."""
    bounds, out, token = corpus.indptr.tolist(), [], 0
    for labels in corpus.labels:
        for label in labels:
            entries = range(bounds[token], bounds[token + 1])
            fields = [f"{_escaped(corpus.attributes[corpus.codes[k]])}:{corpus.values[k]!s}" for k in entries]
            out.append("\t".join([_escaped(label), *fields]) + "\n")
            token += 1
        out.append("\n")
    return "".join(out)
