"""What the tests of the spaCy bridge share: model files, and a pipeline with the component."""

from pathlib import Path
from typing import Any

from structpred.bridges import annotator
from structpred.models import ChainLabeler, DependencyParser

WORDS = [[("the",), ("cat",), ("sleeps",)], [("Ada",), ("Byron",), ("sleeps",)]]
LABELS = {
    "tag": [["DT", "NN", "VBZ"], ["NNP", "NNP", "VBZ"]],
    "pos": [["DET", "NOUN", "VERB"], ["PROPN", "PROPN", "VERB"]],
    "ents": [["O", "O", "O"], ["B-PER", "I-PER", "O"]],
    "bilou": [["O", "U-ANI", "O"], ["B-PER", "L-PER", "O"]],
}
TREES = [[(2, "det"), (3, "nsubj"), (0, "root")], [(3, "nsubj"), (1, "flat"), (0, "root")]]


def write_models(folder: Path) -> None:
    """A labeller of each kind of labels, one of chunks, one of feature dicts, and parsers with and without tags."""
    for name, y in LABELS.items():
        ChainLabeler(template="ner", max_iter=20).fit(WORDS, y).save(folder / f"{name}.spz")
    tagged = [[(w, t) for (w,), t in zip(*pair, strict=True)] for pair in zip(WORDS, LABELS["tag"], strict=True)]
    chunks = [["B-NP", "I-NP", "B-VP"], ["B-NP", "I-NP", "B-VP"]]
    ChainLabeler(template="chunking", max_iter=20).fit(tagged, chunks).save(folder / "chunks.spz")
    dicts = [[{"w": w.lower()} for (w,) in row] for row in WORDS]
    ChainLabeler(max_iter=20).fit(dicts, LABELS["tag"]).save(folder / "dicts.spz")
    forms = [[{"form": w} for (w,) in row] for row in WORDS]
    DependencyParser(max_iter=20).fit(forms, TREES).save(folder / "forms.spz")
    words = [[{**w, "upos": t} for w, t in zip(*pair, strict=True)] for pair in zip(forms, LABELS["pos"], strict=True)]
    DependencyParser(max_iter=20).fit(words, TREES).save(folder / "upos.spz")


def pipeline(*configs: dict[str, Any]) -> Any:
    """A blank English pipeline with a sentencizer and components of those settings, named after what is in "name"."""
    import spacy

    assert annotator.factory is annotator.make_annotator  # as spaCy finds it where the entry point is installed
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    for k, config in enumerate(configs):
        config = {**config, "model": str(config["model"])}
        nlp.add_pipe("structpred", name=config.pop("name", f"structpred{k}"), config=config)
    return nlp
