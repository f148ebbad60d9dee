"""Pictures of marginals over trees: every arc with its weight, heavier ones darker; what is no such weight is refused."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.layers import Scores, SparseMAP
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.report import draw_marginals

SVG = "{http://www.w3.org/2000/svg}"
FORMS = ["cats", "<see>", "dogs"]
WEIGHTS = np.array([[0.25, 0.0, 0.75, 0.0], [0.75, 0.25, 0.0, 0.0], [0.0, 0.004, 0.996, 0.0]])


def drawn(svg: str) -> dict[str, tuple[float, float]]:
    """The arcs by what their titles say: opacity and width."""
    found = {}
    for g in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        if (g.get("class") or "").startswith("arc"):
            line = g.find(f"{SVG}path")
            assert line is not None
            found[str(g.findtext(f"{SVG}title"))] = float(g.get("opacity") or 1.0), float(line.get("stroke-width") or 0.0)
    return found


def test_every_arc_has_its_weight() -> None:
    """Arcs above the limit are drawn with the weight as number, the heavier the wider and darker."""
    arcs = drawn(draw_marginals(FORMS, WEIGHTS))
    assert set(arcs) == {
        "root → cats: 0.25",
        "<see> → cats: 0.75",
        "root → <see>: 0.75",
        "cats → <see>: 0.25",
        "<see> → dogs: 1.00",
    }
    light, middle, heavy = (arcs[name] for name in ("root → cats: 0.25", "<see> → cats: 0.75", "<see> → dogs: 1.00"))
    assert light[0] < middle[0] < heavy[0] <= 1.0
    assert light[1] < middle[1] < heavy[1]


def test_what_is_left_out_is_said() -> None:
    """The title counts the arcs below the limit; with a limit of 0 all arcs are drawn that have a weight."""
    title = ElementTree.fromstring(draw_marginals(FORMS, WEIGHTS)).findtext(f"{SVG}title")
    assert title == "Weights of the arcs of: cats <see> dogs; 1 arcs below 0.005 are left out"
    assert "cats → dogs: 0.00" in drawn(draw_marginals(FORMS, WEIGHTS, least=0.0))


def test_what_a_layer_returns_is_drawn() -> None:
    """Flat SparseMAP weights of an ambiguous sentence: the readings in doubt share a word, which no other arc enters."""
    oracle, scores = ArborescenceOracle(), np.zeros((3, 4))
    scores[0, 2] = scores[1, 0] = 3.0
    scores[2, 1:3] = 1.0, 1.2
    weights, _ = SparseMAP(oracle)(Scores.of(oracle, [(3,)]), scores.ravel())
    picture = draw_marginals(FORMS, weights, tags=["N", "V", "N"])
    assert {name for name in drawn(picture) if "dogs" in name} == {"cats → dogs: 0.40", "<see> → dogs: 0.60"}
    assert re.search(r"^<div[^>]*overflow", picture._repr_html_())


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (WEIGHTS[:, 1:], "3, 4"),
        (WEIGHTS * 2, r"word 1 \('cats'\).*sum to 1"),
        (np.eye(3, 4, 1), "none on itself"),
        (np.full((3, 4), np.nan), "from 0 to 1"),
        ([[1.5, 0.0, -0.5, 0.0], *WEIGHTS[1:].tolist()], "from 0 to 1"),
    ],
)
def test_what_are_no_marginals_is_refused(weights: object, said: str) -> None:
    """Wrong shapes, sums, words that head themselves and what is not a weight: an error that says what was expected."""
    with pytest.raises(DataError, match=said):
        draw_marginals(FORMS, weights)  # type: ignore[arg-type]


def test_words_and_tags_must_fit() -> None:
    """No words, and tags for other words, are refused."""
    for forms, tags in (([], None), (FORMS, ["N"])):
        with pytest.raises(DataError, match="a tag for each"):
            draw_marginals(forms, WEIGHTS, tags=tags)
