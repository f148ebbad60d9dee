"""Feature templates as data."""

import json
from pathlib import Path
from typing import Any

import pytest

from structpred.errors import DataError, ParameterError
from structpred.io.templates.templates import Atom, Template, built_in_templates, load_templates, read_template


def test_crfsuites_example() -> None:
    """The templates named crfsuite are the 19 of CRFsuite's example and the two marks of the sentence's ends."""
    templates = load_templates("crfsuite")
    assert [t.name for t in templates] == [
        *[f"w[{k}]" for k in range(-2, 3)],
        "w[-1]|w[0]",
        "w[0]|w[1]",
        *[f"pos[{k}]" for k in range(-2, 3)],
        *[f"pos[{k}]|pos[{k + 1}]" for k in range(-2, 2)],
        *[f"pos[{k}]|pos[{k + 1}]|pos[{k + 2}]" for k in range(-2, 1)],
        "__BOS__",
        "__EOS__",
    ]
    assert {atom.column for t in templates for atom in t.atoms if t.name.startswith("pos")} == {1}
    added = load_templates("chunking")[len(templates) :]
    assert load_templates("chunking") == [*templates, *added]
    assert [t.name for t in added][:2] == ["w[0]|pos[0]", "w[-1]|pos[0]"]
    row = Template("w[1]|pos[0]", ((0, 1), (1, 0)))
    assert row in added


@pytest.mark.parametrize("name", built_in_templates())
def test_built_in_templates_have_distinct_names(name: str) -> None:
    """No two built-in templates could write the same feature, and each survives JSON."""
    templates = load_templates(name)
    assert len({t.pieces for t in templates}) == len(templates)
    assert [Template.from_dict(json.loads(json.dumps(t.to_dict()))) for t in templates] == templates


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"atoms": ((0, 0, "nonsense"),)}, "expected a transform"),
        ({"atoms": ((-1, 0),)}, "columns count from 0"),
        ({"atoms": ((0, 0.5),)}, "offsets are whole numbers"),
        ({"atoms": ((0,),)}, "expected atoms"),
        ({"atoms": (3,)}, "expected atoms"),
        ({"atoms": (), "at": "middle"}, "at must be any, first or last"),
        ({"atoms": ((0, 0),), "literals": ("a",)}, "literal strings"),
        ({"atoms": ((0, 0),), "literals": ("a", 3)}, "literal strings"),
        ({"atoms": (), "pad": "yes"}, "pad True or False"),
    ],
)
def test_bad_templates(settings: dict[str, Any], message: str) -> None:
    """A template that cannot work is refused when it is made."""
    with pytest.raises(ParameterError, match=message):
        Template("t", **settings)


def test_load_templates(tmp_path: Path) -> None:
    """A name, a file and a list all give templates; anything else names what there is."""
    path = tmp_path / "template"
    path.write_text("U00:%x[0,0]\n")
    assert load_templates(path) == load_templates(str(path)) == load_templates(load_templates(path))
    with pytest.raises(
        ParameterError, match=r"built-in template \(chunking, crfsuite, ner, pos\) or a CRF\+\+ template file, got 'chunk'"
    ):
        load_templates("chunk")
    for value in ([], ["w"]):
        with pytest.raises(ParameterError, match="list of at least one Template"):
            load_templates(value)  # type: ignore[arg-type]


def test_crfpp_template_file(tmp_path: Path) -> None:
    """Comments, blank lines and B are passed over; macros become atoms, the text around them literals."""
    path = tmp_path / "template"
    path.write_text("# words\nU00:%x[-2,0]\n\nU05:%x[-1,0]/%x[0,1]\r\nU06\nB\n")
    templates = read_template(path)
    assert [t.atoms for t in templates] == [(Atom(0, -2),), (Atom(0, -1), Atom(1, 0)), ()]
    assert [t.literals for t in templates] == [("U00:", ""), ("U05:", "/", ""), ("U06",)]
    assert all(t.pad for t in templates)
    assert templates[1].render(["a", "DT"]) == "U05:a/DT"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("U00:%x[0,0]\nX:%x[0,0]\n", "template:2: expected a line that begins with U, B or #"),
        ("U00:%x[0]\n", r"template:1: expected macros of the form %x\[row,column\]"),
        ("U00:%t[0,0]\n", "template:1: expected macros"),
        ("U00:100%\n", "template:1: expected macros"),
        ("U00:%x[0,0]\nB01:%x[0]\n", "template:2: expected macros"),
        ("# nothing\nB\n", "template: expected at least one U line"),
        ("B01:%x[0,0]\n", "template: expected at least one U line"),
        ("", "template: expected at least one U line"),
    ],
)
def test_bad_template_files(tmp_path: Path, text: str, message: str) -> None:
    """A bad line of a template file raises DataError with file and line."""
    path = tmp_path / "template"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_template(path)
