import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler

from lddr.errors import UserError
from lddr.metrics.unsupervised import correlations, lasso_weights, udr, udr_agreement

SIMILARITIES = ["lasso", "spearman"]
GENERATOR = np.random.default_rng(0)
GRID = np.stack(np.meshgrid(*[np.linspace(-1, 1, 5)] * 3), axis=-1).reshape(-1, 3)  # uncorrelated to the last digit
MODELS = [GENERATOR.normal(size=(60, 3)) @ GENERATOR.normal(size=(3, latents)) for latents in (4, 3, 5, 4)]


def naive_strengths(source, target, similarity):
    if similarity == "spearman":
        return np.abs([[spearmanr(left, right).statistic for right in target.T] for left in source.T])
    source, target = (StandardScaler().fit_transform(codes) for codes in (source, target))
    fits = [Lasso(alpha=0.1, tol=1e-12, max_iter=100_000).fit(source, column) for column in target.T]
    return np.abs([fit.coef_ for fit in fits]).T


def naive_agreement(strengths):
    rows, columns = strengths.shape
    total = 0.0
    for b in range(columns):
        total += strengths[:, b].max() ** 2 / strengths[:, b].sum() if strengths[:, b].any() else 0
    for a in range(rows):
        total += strengths[a].max() ** 2 / strengths[a].sum() if strengths[a].any() else 0
    return total / (rows + columns)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_scores_are_those_of_a_naive_reimplementation(similarity):
    result = udr(MODELS, similarity=similarity)
    for scored, target in enumerate(MODELS):
        agreements = [
            naive_agreement(naive_strengths(source, target, similarity)) for source in MODELS if source is not target
        ]
        assert np.allclose(np.delete(result.pairs[scored], scored), agreements, atol=1e-6)
        assert np.isclose(result.scores[scored], np.median(agreements), atol=1e-6)
    assert result.best == np.argmax(result.scores)
    assert result.score == max(result.scores)
    assert not result.pairs.diagonal().any()


@pytest.mark.parametrize(
    ("strengths", "expected"),
    [
        (np.eye(3), 1),
        (np.eye(3)[[2, 0, 1]], 1),
        (0.9 * np.eye(2), 0.9),
        (np.ones((2, 2)), 1 / 2),
        (np.zeros((3, 3)), 0),
        (np.zeros((0, 3)), 0),
        (np.array([[1.0, 1.0]]), (1 + 1 + 1 / 2) / 3),  # two columns of 1, one row of 1²/2
        (np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), 2 / 3),
    ],
)
def test_agreement_as_worked_out_by_hand(strengths, expected):
    assert np.isclose(udr_agreement(strengths), expected)


@pytest.mark.parametrize(("similarity", "most"), [("lasso", 0.9), ("spearman", 1)])
def test_one_to_one_codes_score_the_most_and_turned_ones_less(similarity, most):
    turn = np.linalg.qr(GENERATOR.normal(size=(3, 3)))[0]
    result = udr([GRID, -2 * GRID[:, [2, 0, 1]] + 3, GRID[:, ::-1] * [1, -1, 1], GRID @ turn], similarity=similarity)
    assert np.allclose(result.scores[:3], most)
    assert result.scores[3] < 0.75 * most
    assert result.best in (0, 1, 2)
    assert result.settings["similarity"] == similarity


def test_two_latents_turned_by_45_degrees_score_as_worked_out_by_hand():
    plane = GRID[:, :2]
    rotated = np.stack([plane.sum(axis=1), plane[:, 0] - plane[:, 1]], axis=1)
    weight = np.sqrt(0.5) - 0.1  # every pair correlates by √½; all four weights are equal
    assert np.allclose(udr([plane, rotated]).scores, weight / 2)


def test_noise_scores_about_nothing():
    assert udr(GENERATOR.normal(size=(4, 3000, 5))).score == 0
    assert udr(GENERATOR.normal(size=(4, 3000, 5)), similarity="spearman").score < 0.03


@settings(max_examples=4, deadline=None)
@given(st.permutations(range(4)), st.lists(st.sampled_from([-3.0, -1.0, 1.0]), min_size=4, max_size=4))
def test_order_sign_and_scale_of_latents_change_nothing(order, scales):
    changed = [np.array(scales) * MODELS[0][:, order], *MODELS[1:]]
    assert np.allclose(udr(changed).pairs, udr(MODELS).pairs, atol=1e-5)
    ranked = [udr(models, similarity="spearman").pairs for models in (changed, MODELS)]
    assert np.allclose(*ranked)


def test_spearman_sees_through_monotone_changes_and_is_symmetric():
    result = udr([GRID, GRID**3, np.exp(GRID)], similarity="spearman")
    assert np.allclose(result.scores, 1)
    assert np.allclose(result.pairs, result.pairs.T)


def test_a_copied_latent_costs_a_share():
    doubled = np.concatenate([GRID, GRID[:, :1]], axis=1)
    assert np.isclose(
        udr([GRID, doubled], similarity="spearman").score, (6 + 1 / 2) / 7
    )  # one of seven is shared by two


def test_idle_latents_do_not_count():
    idle = np.concatenate([GRID, 0.05 * GENERATOR.normal(size=(len(GRID), 2)), np.full((len(GRID), 1), 0.1)], axis=1)
    result = udr([idle, GRID, GRID])
    assert np.allclose(result.scores, 0.9)
    assert result.num_active == (3, 3, 3)
    assert udr([idle, GRID, GRID], min_variance=0).num_active == (5, 3, 3)
    assert udr([idle, GRID, GRID], min_variance=0).scores[0] < 0.8


def test_a_given_mask_replaces_the_variance():
    masks = [[True, False, False], [True, True, True]]
    result = udr([GRID, GRID], active=masks, similarity="spearman")
    assert np.isclose(
        result.score, 2 / 4
    )  # one latent on one side, three on the other, two of the four without a partner
    assert result.num_active == (1, 3)
    assert result.settings["active"] == "given"
    assert np.allclose(udr([0.001 * GRID, GRID], active=[[True] * 3] * 2).scores, 0.9)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_constant_codes_score_0_even_when_said_to_be_active(similarity):
    constant = np.full((125, 2), 0.1)
    assert udr([constant, GRID, GRID], similarity=similarity).scores[0] == 0
    masks = [[True] * 2, [True] * 3, [True] * 3]
    assert udr([constant, GRID, GRID], masks, similarity).scores[0] == 0
    assert udr([GRID[:1], GRID[:1]], similarity=similarity).score == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 0.5))
def test_weights_solve_the_lasso(seed, alpha):
    generator = np.random.default_rng(seed)
    codes = generator.normal(size=(40, 6)) @ generator.normal(size=(6, 6))
    correlation = correlations(codes, ranked=False)
    weights = lasso_weights(correlation[:4, :4], correlation[:4], alpha)
    residual = correlation[:4] - correlation[:4, :4] @ weights  # the gradient is alpha times the sign where w ≠ 0
    assert (np.abs(residual) <= alpha + 1e-6).all()
    assert np.allclose(residual[weights != 0], alpha * np.sign(weights[weights != 0]), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([GRID],), "at least two, not 1"),
        (([GRID, GRID[:5]],), "of the same samples"),
        (([GRID, GRID[:, 0]],), "of the same samples"),
        (([GRID[:0], GRID[:0]],), "of the same samples"),
        (([GRID, np.nan * GRID],), "NaN or infinite"),
        (([GRID, GRID], [[True] * 3]), "one mask per model"),
        (([GRID, GRID], [[True] * 3, [True] * 2]), "one mask per model"),
        (([GRID, GRID], [[0, 1, 2], [0, 1, 2]]), "True or False"),
        (([GRID, GRID], None, "pearson"), "choose one of lasso, spearman"),
    ],
)
def test_mistakes_are_sentences(arguments, sentence):
    with pytest.raises(UserError, match=sentence):
        udr(*arguments)
