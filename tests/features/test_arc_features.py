"""Arc features: scores, differences and sums agree with each other whatever the template, and constraints forbid."""

import numpy as np
import pytest

from structpred.contracts.checks import check_feature_map
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.group_scales import GroupScales, scaled
from structpred.data.arc_templates import ArcTemplate, compile_templates
from structpred.data.sequences import AttributedSentences, attribute_code
from structpred.errors import DataError, ParameterError
from structpred.features.arcs import ARCS, COLUMNS, ArcCandidates, ArcFeatures, bits_of, observed_places
from structpred.features.fixed_scores import FixedParts
from structpred.io.templates.arc_featurizer import ArcFeaturizer, case_of, word_class
from structpred.io.templates.arc_template_sets import conjunction_family, default_templates
from structpred.io.treebanks.treebank import Sentence, Treebank

LENGTHS = (1, 2, 5, 9, 26)


def sentences(seed: int = 0, lengths: tuple[int, ...] = LENGTHS) -> AttributedSentences:
    """Random sentences with a few values an attribute, as a treebank would give them."""
    rng = np.random.default_rng(seed)
    made = []
    for n in lengths:
        tags = rng.choice(["NOUN", "VERB", "PUNCT", "CCONJ", "ADJ"], n).tolist()
        columns = [[f"{letter}{k}" for k in rng.integers(0, 4, n)] for letter in "fl"]
        feats = rng.choice(["Case=Nom|Number=Sing", "Number=Plur", "_"], n).tolist()
        made.append(Sentence(columns[0], columns[1], tags, [f"X{tag}" for tag in tags], feats))
    treebank = Treebank.of(made)
    return ArcFeaturizer().fit(treebank).transform(treebank)


def features(templates: list[ArcTemplate] | None = None, **options: object) -> ArcFeatures:
    """Arc features over the random sentences, in float64, with small blocks so that features collide."""
    chosen = default_templates() if templates is None else templates
    bits = [3 + t % 6 for t in range(len(chosen))]
    return ArcFeatures(sentences(), chosen, bits, dtype=np.float64, **options)  # type: ignore[arg-type]


def dense_adjoint(f: ArcFeatures, i: int) -> np.ndarray:
    """Psi of sentence i, one row per part, from the sparse features of each part by itself."""
    rows = np.zeros((f.n_parts(i), f.dim))
    for p in range(f.n_parts(i)):
        found = f.adjoint(i, np.array([p]), np.ones(1))
        rows[p, found.indices] = found.values
    return rows


@pytest.mark.parametrize("templates", [None, conjunction_family()[::17]], ids=["default", "conjunctions"])
def test_scores_are_the_weights_of_each_arc_s_own_features(templates: list[ArcTemplate] | None) -> None:
    """theta_p = <w, Psi^T e_p> for every arc, unary templates, tags between and collisions included."""
    f = features(templates)
    w = np.random.default_rng(1).normal(size=f.dim)
    for i in range(len(f)):
        np.testing.assert_allclose(f.scores(w, i), dense_adjoint(f, i) @ w, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("arcs", [ARCS, 60], ids=["at once", "in pieces"])
def test_scores_under_group_factors_are_those_of_the_scaled_weights(
    dtype: type, arcs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """group_scores equals `scores` of the weights multiplied by each template's factor, to the last bit, zeros and lists of
    heads included, however many arcs are scored at once."""
    monkeypatch.setattr("structpred.features.arcs.ARCS", arcs)
    rng, data = np.random.default_rng(5), sentences()
    templates = default_templates()
    starts = np.arange(data.n_tokens + 1)
    left = np.concatenate([np.arange(n, dtype=np.int32) for n in data.lengths])
    for candidates in (None, ArcCandidates(starts, left)):
        f = ArcFeatures(data, templates, [3 + t % 6 for t in range(len(templates))], dtype=dtype, candidates=candidates)
        w = rng.normal(size=f.dim).astype(dtype)
        factors = rng.uniform(0.1, 2.0, len(f.groups) - 1) * (rng.uniform(size=len(f.groups) - 1) < 0.6)
        for last in (0.0, 1.5):
            factors[-1] = last
            scales = GroupScales(f.groups, factors)
            for i in range(len(f)):
                np.testing.assert_array_equal(f.group_scores(w, scales, i), f.scores(scaled(w, scales), i))


@pytest.mark.parametrize("room", [(ARCS, COLUMNS), (60, COLUMNS), (ARCS, 12)], ids=["together", "few arcs", "few words"])
def test_sentences_scored_together_have_the_scores_of_each_alone(room: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit, lists of heads included, however many sentences there is room for."""
    monkeypatch.setattr("structpred.features.arcs.ARCS", room[0])
    monkeypatch.setattr("structpred.features.arcs.COLUMNS", room[1])
    data, templates = sentences(), default_templates()
    left = ArcCandidates(np.arange(data.n_tokens + 1), np.concatenate([np.arange(n, dtype=np.int32) for n in data.lengths]))
    for candidates in (None, left):
        f = ArcFeatures(data, templates, [3 + t % 6 for t in range(len(templates))], candidates=candidates)
        w = np.random.default_rng(6).normal(size=f.dim).astype(np.float32)
        places = np.concatenate(([0], np.cumsum([f.n_parts(i) for i in range(len(f))])))
        out = np.empty(places[-1])
        f.score_block(w, 1.0, 0, len(f), places, out)
        for i in range(len(f)):
            fixed = f.fixed_scores(i)
            alone = f.scores(w, i) if fixed is None else f.scores(w, i) + fixed
            np.testing.assert_array_equal(out[places[i] : places[i + 1]], alone)


def test_an_arc_has_one_feature_a_template_and_one_a_tag_between() -> None:
    """No template is left out or counted twice, and no arc leads from a word to itself."""
    f = features()
    for i, n in enumerate(LENGTHS):
        rows = dense_adjoint(f, i)
        tags = np.concatenate(([0], f.data.tags[f.data.offsets[i] : f.data.offsets[i + 1]]))
        for m in range(1, n + 1):
            for h in range(n + 1):
                between = len(set(tags[min(h, m) + 1 : max(h, m)].tolist()))
                wanted = 0 if h == m else len(f.templates) + between
                assert rows[(m - 1) * (n + 1) + h].sum() == wanted


def test_sums_over_arcs_are_those_of_single_arcs() -> None:
    """spread, flush, total and add_spread are Psi^T mu, and spread returns its squared norm."""
    f, rng = features(), np.random.default_rng(2)
    total, places = np.zeros(f.dim), np.concatenate(([0], np.cumsum([f.n_parts(i) for i in range(len(f))])))
    flat, coefs = rng.normal(size=int(places[-1])), rng.normal(size=len(f))
    scratch = f.scratch()
    for i in range(len(f)):
        mu = flat[places[i] : places[i + 1]]
        expected = dense_adjoint(f, i).T @ mu
        assert f.spread(i, mu, scratch) == pytest.approx(float(expected @ expected), rel=1e-9)
        np.testing.assert_allclose(scratch, expected, atol=1e-9)
        w = np.ones(f.dim)
        f.flush(i, scratch, 0.5, w)
        np.testing.assert_allclose(w, 1.0 + 0.5 * expected, atol=1e-9)
        assert not scratch.any()
        total += coefs[i] * expected
    np.testing.assert_allclose(f.total(flat, places, coefs), total, atol=1e-8)


def test_arc_features_keep_the_contract_of_feature_maps() -> None:
    """The public check finds no problem."""
    report = check_feature_map(features())
    assert sum(report.checked.values()) > 0


def test_blocks_follow_each_other_as_the_templates_do() -> None:
    """Group k is the block of template k, of 2**bits[k] weights; the last one is that of the tags between."""
    f = features()
    assert np.diff(f.groups)[:-1].tolist() == [1 << b for b in f.bits]
    assert f.groups[-1] == f.dim
    assert f.dim - f.groups[-2] == 2 * f.data.n_tags**3
    i, parts = 3, np.arange(f.n_parts(3))
    for p in parts.tolist():
        if p // 10 + 1 != p % 10:
            indices = f.adjoint(i, np.array([p]), np.ones(1)).indices
            blocks = np.searchsorted(f.groups, indices, side="right") - 1
            assert set(range(len(f.templates))) <= set(blocks.tolist())


def test_arcs_that_are_no_candidates_are_forbidden_and_the_others_unchanged() -> None:
    """Pruned arcs get the forbidding score; the scores of those that stay are the same to the last bit."""
    whole = features()
    rng = np.random.default_rng(3)
    starts, heads = [0], []
    for n in LENGTHS:
        for _ in range(n):
            heads += sorted(rng.choice(n + 1, size=min(3, n + 1), replace=False).tolist())
            starts.append(len(heads))
    few = features(candidates=ArcCandidates(np.array(starts), np.array(heads, dtype=np.int32)))
    w = rng.normal(size=whole.dim)
    for i, n in enumerate(LENGTHS):
        theta, fixed = few.scores(w, i), few.fixed_scores(i)
        assert fixed is not None
        on = fixed == 0.0
        assert on.sum() == sum(min(3, n + 1) for _ in range(n))
        assert set(fixed[~on]) <= {FORBIDDEN}
        inner = on & (np.arange(n * (n + 1)) % (n + 1) != np.arange(n * (n + 1)) // (n + 1) + 1)
        np.testing.assert_array_equal(theta[inner], whole.scores(w, i)[inner])


def test_fixed_scores_add_to_what_candidates_forbid() -> None:
    """Constraints and pruning hold together."""
    n = LENGTHS[1]
    given = [None, np.full(n * (n + 1), 0.0), None, None, None]
    assert given[1] is not None
    given[1][0] = FORBIDDEN
    f = features(fixed=FixedParts(given))
    assert f.fixed_scores(0) is None
    np.testing.assert_array_equal(f.fixed_scores(1), given[1])  # type: ignore[arg-type]


def test_sizes_of_blocks_follow_what_is_observed() -> None:
    """A template of two tags gets a small block, one of forms a larger one, none more than allowed."""
    data = sentences(1, (30,) * 40)
    heads = np.concatenate([np.arange(30) for _ in range(40)])
    templates = [ArcTemplate.parse(t) for t in ("h.upos m.upos | direction", "h.form h.lemma m.form m.lemma | distance")]
    small, large = bits_of(observed_places(data, templates, heads), max_bits=12)
    assert 6 <= small < large <= 12
    with pytest.raises(DataError, match="heads for 3"):
        observed_places(data, templates, heads[:3])


@pytest.mark.parametrize("text", ["h.form | sideways", "x.form", "h.", "", "h.form+12", "| "])
def test_a_template_that_is_none_is_refused(text: str) -> None:
    """The message names the template."""
    with pytest.raises(ParameterError, match="arc template"):
        ArcTemplate.parse(text)


def test_templates_are_data() -> None:
    """A template's text is read back as the same template; unknown attributes are refused by name."""
    for template in (*default_templates(), *conjunction_family()):
        assert ArcTemplate.parse(str(template)) == template
    assert len(set(map(str, conjunction_family()))) == 507
    with pytest.raises(ParameterError, match="'colour'"):
        compile_templates([ArcTemplate.parse("h.colour")], ("form",))


def test_wrong_sizes_are_refused() -> None:
    """Numbers of bits, and arrays of words that do not fit each other."""
    data = sentences()
    with pytest.raises(ParameterError, match="bits"):
        ArcFeatures(data, default_templates(), [4])
    with pytest.raises(DataError, match="arrays of shapes"):
        AttributedSentences(data.names, data.codes[:, 1:], data.tags, data.classes, data.offsets, data.n_tags)
    with pytest.raises(DataError, match="tags must lie"):
        AttributedSentences(data.names, data.codes, data.tags * 0, data.classes, data.offsets, data.n_tags)


def test_codes_are_the_same_everywhere() -> None:
    """An attribute's code is a fixed function of its text: model files rest on it."""
    assert (attribute_code("form", "the"), attribute_code("lemma", "the")) == (EXPECTED_FORM, EXPECTED_LEMMA)
    assert case_of("Number=Sing|Case=Acc") == "Acc"
    assert case_of("_") == "_"
    assert [word_class(*pair) for pair in (("is", "AUX"), ("—", "SYM"), ("and", "CCONJ"), ("cat", "NN"))] == [1, 2, 4, 0]


EXPECTED_FORM, EXPECTED_LEMMA = 1720860599, 172244613


def test_templates_of_missing_attributes_are_left_out() -> None:
    """Attributes that a treebank does not have anywhere take their templates with them."""
    bare = Treebank.of([Sentence(["a", "b"], ["_", "_"], ["N", "V"], ["_", "_"], ["_", "_"])])
    featurizer = ArcFeaturizer().fit(bare)
    kept = featurizer.usable(default_templates())
    assert kept
    assert all(template.attributes <= {"form", "upos", "suffix"} for template in kept)


def test_only_the_most_frequent_tags_are_told_apart_between_words() -> None:
    """The weights of tags between words grow with the cube of the number of tags, so there is an end to it."""
    tags = [f"T{k}" for k in range(200)] + ["T7"] * 5
    treebank = Treebank.of([Sentence(tags, ["_"] * 205, tags, ["_"] * 205, ["_"] * 205)])
    featurizer = ArcFeaturizer().fit(treebank)
    assert featurizer.n_tags == 62
    assert "T7" in featurizer.tags
    assert set(featurizer.transform(treebank).tags.tolist()) == set(range(1, 62))


def test_words_are_hashed_as_one_by_one() -> None:
    """The hash of each word is that of its codes mixed one after the other, also where neighbours lie outside the sentence."""
    from structpred.features._arc_kernels import prepare_sentence

    texts = ["h.form h.upos+1 m.form-2 | distance", "h.upos-3 m.lemma+9", "h.lemma+2 h.form-1 | direction", "m.upos | distance"]
    data = sentences(lengths=(1, 2, 3, 8, 15))
    compiled = compile_templates([ArcTemplate.parse(text) for text in texts], data.names)
    for i, n in enumerate(data.lengths.tolist()):
        first, at = int(data.offsets[i]), 3
        hashes, counts, tags = np.zeros((2, 4, 40), np.uint32), np.zeros((3, 40), np.int64), np.zeros(40, np.int64)
        prepare_sentence(data.words, first, n, at, compiled.program, hashes, counts, tags)
        for t, side, p in np.ndindex(4, 2, n + 1):
            atoms = compiled.atoms[compiled.ends[2 * t + side] : compiled.ends[2 * t + side + 1]].tolist()
            x = int(compiled.seeds[t, side]) if atoms else 0
            for attribute, offset in atoms:
                q = p + offset
                inside = 7 if offset == 0 else 13
                if p > 0:
                    inside = 11 if q < 1 else 17 if q > n else int(data.codes[attribute, first + q - 1])
                x = (x ^ inside) * 0x9E3779B1 & 0xFFFFFFFF
                x = (x ^ x >> 15) * 0x85EBCA77 & 0xFFFFFFFF
                x ^= x >> 13
            assert int(hashes[side, t, at + p]) == x
        assert tags[at : at + n + 1].tolist() == [0, *data.tags[first : first + n].tolist()]
        before = [[0, *np.cumsum([0, *(data.classes[first : first + n - 1] >> c & 1)]).tolist()] for c in range(3)]
        assert counts[:, at : at + n + 1].tolist() == before


def test_no_word_is_scored_by_what_lies_behind_the_sentence() -> None:
    """Long and short sentences in turn, with the working memory of the other full of its numbers: each has its own scores."""
    f = features()
    w = np.random.default_rng(3).normal(size=f.dim)
    alone = [f.take(np.array([i])).scores(w, 0) for i in range(len(f))]
    for i in (4, 0, 3, 1, 4, 2, 0):
        np.testing.assert_array_equal(f.scores(w, i), alone[i])
