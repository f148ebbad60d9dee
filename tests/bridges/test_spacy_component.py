"""Promises of the component `structpred` of spaCy pipelines."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from spacy_cases import LABELS, TREES, WORDS, pipeline, write_models

from structpred.bridges.annotator import Annotator
from structpred.errors import DataError, MissingModelError, ParameterError
from structpred.io import ColumnCorpus, Template
from structpred.models import ChainLabeler, DependencyParser, ParsingPipeline

spacy = pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'structpred[spacy]'")

ROOT = Path(__file__).resolve().parents[2]
POS = [["DET", "NOUN", "V"], ["PROPN", "PROPN", "V"]]
TEXT = "the cat sleeps \n Ada Byron sleeps"


def flat(lists: list[list[str]]) -> list[str]:
    """The labels of all sentences."""
    return [label for labels in lists for label in labels]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of model files."""
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    return folder


@pytest.mark.slow
def test_the_labels_decide_what_is_set(models: Path) -> None:
    """Universal tags are set as pos_, tags of phrases as entities in any scheme, others as tag_; white space has none of them."""
    doc = pipeline({"model": models / "tag.spz"}, {"model": models / "pos.spz"}, {"model": models / "ents.spz"})(TEXT)
    words = [token for token in doc if not token.is_space]
    assert [token.tag_ for token in words] == flat(LABELS["tag"])
    assert [token.pos_ for token in words] == flat(LABELS["pos"])
    assert [(entity.text, entity.label_) for entity in doc.ents] == [("Ada Byron", "PER")]
    assert [token.tag_ for token in doc if token.is_space] == [""]
    doc = pipeline({"model": models / "bilou.spz"})(TEXT)
    assert [(entity.text, entity.label_) for entity in doc.ents] == [("cat", "ANI"), ("Ada Byron", "PER")]


def test_sets_decides_where_labels_go(models: Path) -> None:
    """With sets="spans" phrases are spans under the component's name, and the entities are left alone."""
    configs = [{"model": models / "tag.spz"}, {"model": models / "chunks.spz", "sets": "spans", "name": "chunks"}]
    doc = pipeline(*configs)("the cat sleeps")
    assert [(span.text, span.label_) for span in doc.spans["chunks"]] == [("the cat", "NP"), ("sleeps", "VP")]
    assert not doc.ents


def test_spans_have_scores(tmp_path: Path) -> None:
    """A model trained with the log loss sets the probable phrases of all sentences, with their probabilities beside the spans."""
    model = ChainLabeler("lbfgs", template="ner", C=10.0, max_iter=20).fit(WORDS, LABELS["bilou"])
    model.save(tmp_path / "crf.spz")
    nlp = pipeline({"model": tmp_path / "crf.spz", "sets": "spans", "name": "names"})
    docs = list(nlp.pipe(["the cat sleeps. Ada Byron sleeps", "", "Ada Byron sleeps"]))
    found = [[(span.text, span.label_) for span in doc.spans["names"]] for doc in docs]
    assert found == [[("cat", "ANI"), ("Ada Byron", "PER")], [], [("Ada Byron", "PER")]]
    (whole,) = model.predict_phrases(WORDS[1:])
    assert docs[2].spans["names"].attrs["scores"].tolist() == [phrase.probability for phrase in whole]
    assert [len(doc.spans["names"].attrs["scores"]) for doc in docs] == [2, 0, 1]


def test_a_parser_sets_heads_relations_and_sentences(models: Path) -> None:
    """Heads lie within the sentences that the sentencizer found; white space depends on the word before it."""
    doc = pipeline({"model": models / "forms.spz"})("the cat sleeps! \n the cat sleeps")
    assert [token.head.text for token in doc[:3]] == ["cat", "sleeps", "sleeps"]
    assert [token.dep_ for token in doc[:3]] == ["det", "nsubj", "root"]
    assert [sentence.root.text for sentence in doc.sents] == ["sleeps", "sleeps"]
    (space,) = (token for token in doc if token.is_space)
    assert (space.head.text, space.dep_) == ("!", "dep")


def test_a_pipeline_sets_tags_and_trees(models: Path, tmp_path: Path) -> None:
    """A ParsingPipeline needs no tagger before it: universal tags become pos_, others tag_, and heads are those of `predict`."""
    sentences = [[{"form": w, "upos": t} for (w,), t in zip(*pair, strict=True)] for pair in zip(WORDS, POS, strict=True)]
    model = ParsingPipeline(jackknife=2, max_iter=5).fit(sentences * 4, TREES * 4)
    model.save(tmp_path / "p.spz")
    doc = pipeline({"model": tmp_path / "p.spz"})("the cat sleeps")
    assert [token.pos_ or token.tag_ for token in doc] == model.tag([["the", "cat", "sleeps"]]).upos == POS[0]
    assert (doc[2].tag_, doc[2].pos_) == ("V", "")
    assert [token.head.i + 1 if token.head.i != token.i else 0 for token in doc] == model.predict([["the", "cat", "sleeps"]])[
        0
    ].heads.tolist()


def test_documents_are_predicted_in_blocks(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nlp.pipe asks the model once for each batch of documents, keeps their order, and gives what one at a time gives."""
    sizes = []
    predict = ChainLabeler.predict

    def counted(self: Any, X: Any, **options: Any) -> Any:
        sizes.append(len(X))
        return predict(self, X, **options)

    monkeypatch.setattr(ChainLabeler, "predict", counted)
    nlp = pipeline({"model": models / "tag.spz"})
    texts = ["the cat sleeps", "", "Ada sleeps. the cat", " \n", "Byron"]
    docs = list(nlp.pipe(texts, batch_size=4))
    assert sizes == [3, 1]
    assert [doc.text for doc in docs] == texts
    assert [[token.tag_ for token in doc] for doc in docs] == [[token.tag_ for token in nlp(text)] for text in texts]


def test_a_sentence_sees_its_document(tmp_path: Path) -> None:
    """What templates read of a document is that of spaCy's, of which others in the same block say nothing."""
    texts = ["I saw Rose. Rose left.", "I saw may. May left."]
    rows = [[(word,) for word in text.replace(".", "").split()] for line in texts for text in line.split(". ")]
    y = [["O", "O", "B-PER"], ["B-PER", "O"], ["O", "O", "O"], ["O", "O"]]
    templates = [Template(name, ((0, 0, name),)) for name in ("doc_case", "is_title")]
    X = ColumnCorpus.from_rows(rows, groups=[0, 0, 1, 1])
    ChainLabeler(template=[*templates, Template("first", (), at="first")], C=10.0, max_iter=50).fit(X, y).save(tmp_path / "m.spz")
    nlp = pipeline({"model": tmp_path / "m.spz"})
    found = [[span.text for span in doc.ents] for doc in nlp.pipe(["I saw Will. Will left.", "I saw will. Will left."])]
    assert found == [["Will", "Will"], []]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", ["tag", "forms"])
def test_pipelines_are_saved_with_their_models(name: str, models: Path, tmp_path: Path) -> None:
    """A pipeline written to disk or to bytes needs the first model file no longer, and documents keep what was set."""
    path = tmp_path / "model.spz"
    path.write_bytes((models / f"{name}.spz").read_bytes())
    nlp = pipeline({"model": path})
    doc = nlp(TEXT)
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.to_bytes()
    path.unlink()
    again = spacy.load(tmp_path / "pipeline")
    from_bytes = pipeline({"model": path}).from_bytes(data)
    for other in (again(TEXT), from_bytes(TEXT), spacy.tokens.Doc(nlp.vocab).from_bytes(doc.to_bytes())):
        assert other.to_json() == doc.to_json()


@pytest.mark.slow
def test_spacy_finds_the_component(models: Path, tmp_path: Path) -> None:
    """Where the entry points of pyproject.toml are installed, spaCy finds the component by itself, and loads no models for it."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    points = tomllib.loads(text)["project"]["entry-points"]["spacy_factories"]
    info = tmp_path / "installed-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[spacy_factories]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()))
    code = f"""
import spacy, sys
nlp = spacy.blank("en")
assert "structpred.models.chain.labeler" not in sys.modules
nlp.add_pipe("structpred", config={{"model": {str(models / "tag.spz")!r}}})
assert nlp("the cat")[1].tag_ == "NN"
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600, env=environment)


def test_features_of_ones_own(models: Path) -> None:
    """A model of feature dicts gets them from a function of spaCy's registry, which the config names."""
    spacy.registry.misc("structpred.test_features", func=lambda: lambda tokens: [{"w": token.lower_} for token in tokens])
    config = {"model": models / "dicts.spz", "features": {"@misc": "structpred.test_features"}}
    assert [token.tag_ for token in pipeline(config)("THE CAT sleeps")] == ["DT", "NN", "VBZ"]


def test_a_model_that_comes_later_or_never(models: Path, tmp_path: Path) -> None:
    """A model file that is not there yet is read with the first document; if it is not there then, the error says which."""
    absent = Annotator("a", tmp_path / "absent.spz")
    # spaCy asks components for attributes of its own kinds, in an order that changes from process to process
    assert not any(hasattr(absent, name) for name in ("model", "listeners", "listener_map", "listening_components"))
    nlp = pipeline({"model": tmp_path / "later.spz"})
    with pytest.raises(MissingModelError, match=r"later\.spz"):
        nlp("the cat")
    (tmp_path / "later.spz").write_bytes((models / "tag.spz").read_bytes())
    assert nlp("the cat")[0].tag_ == "DT"
    with pytest.raises(ParameterError, match="has no model"):
        Annotator("structpred")(nlp("the"))


UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "a word for sets": ({"model": "tag", "sets": "tags"}, "sets: expected one of tag, .*did you mean 'tag'"),
    "no universal tags": ({"model": "tag", "sets": "pos"}, "universal parts of speech only, and the model has 'DT'"),
    "a parser's tags": ({"model": "forms", "sets": "tag"}, "the model is a parser.*got 'tag'"),
    "dicts": ({"model": "dicts"}, "features: the model was not trained with templates"),
    "too few columns": ({"model": "chunks", "columns": ["text"]}, "columns: the templates of the model read 2 columns"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_settings_that_do_not_fit_the_model(name: str, models: Path) -> None:
    """Settings that do not go with the model are refused when the component is made."""
    config, message = UNFIT[name]
    with pytest.raises(ParameterError, match=message):
        pipeline({**config, "model": models / f"{config['model']}.spz"})


def test_what_the_model_reads_must_be_there(models: Path) -> None:
    """A model that reads tags says so where no component has set them; where one has, it works."""
    with pytest.raises(DataError, match=r"document 0, token 0 \('the'\): tag_ is empty"):
        pipeline({"model": models / "chunks.spz"})("the cat")
    with pytest.raises(DataError, match="trained with upos, and the document 'the cat' has no upos"):
        pipeline({"model": models / "upos.spz"})("the cat")
    doc = pipeline({"model": models / "pos.spz"}, {"model": models / "upos.spz"})("the cat sleeps")
    assert [token.head.i for token in doc] == [1, 2, 2]


def test_what_a_model_file_holds_is_what_is_set(models: Path) -> None:
    """The component gives the labels and trees of the estimator itself."""
    assert isinstance(Annotator("a", models / "tag.spz").estimator, ChainLabeler)
    assert isinstance(Annotator("a", models / "forms.spz").estimator, DependencyParser)
