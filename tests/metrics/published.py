"""The published definitions in plain loops over numpy and scikit-learn, which share no line with `lddr.metrics`.

Codes are (samples, latents), factors (samples, factors). What trains takes a part to train on and one to test on.
"""

import warnings
from itertools import permutations

import numpy as np
from scipy.linalg import sqrtm
from scipy.special import digamma
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

# how far a latent tells a factor


def bins_of(code, bins=20):
    """Equal bins between the extremes, with numpy's edges in the precision of the code."""
    return np.digitize(code, np.histogram(code, bins)[1][:-1])


def information(left, right):
    """Σ p(a, b) log p(a, b) / (p(a) p(b)), a pair of values at a time."""
    total = 0.0
    for a in np.unique(left):
        for b in np.unique(right):
            together = np.mean((left == a) & (right == b))
            if together > 0:
                total += together * np.log(together / (np.mean(left == a) * np.mean(right == b)))
    return total


def neighbour_information(code, factor, neighbours=10):
    """Ross 2014, a point at a time."""
    terms = []
    for place, (value, label) in enumerate(zip(code, factor, strict=True)):
        same = np.delete(code, place)[np.delete(factor, place) == label]
        reach = np.sort(np.abs(same - value))[neighbours - 1]
        within = np.sum(np.abs(code - value) < reach)  # the point itself counts, the farthest neighbour does not
        terms.append(digamma(len(code)) + digamma(neighbours) - digamma(len(same) + 1) - digamma(within))
    return max(0.0, np.mean(terms))


def informations(codes, factors, binned=bins_of):
    return np.array([[information(binned(code), factor) for factor in factors.T] for code in codes.T])


def gaps_of(matrix):
    """Between the two largest of every column."""
    return [sorted(column)[-1] - sorted(column)[-2] for column in matrix.T]


# scores of one sample


def mig(codes, factors, binned=bins_of):
    """Chen et al. 2018, as in disentanglement_lib."""
    entropies = [information(factor, factor) for factor in factors.T]
    return np.mean(np.divide(gaps_of(informations(codes, factors, binned)), entropies))


def mig_sup_gaps(codes, factors):
    """Li et al. 2020, of the latents whose variance is above 0.01, with the information of histograms."""
    entropies = np.array([information(factor, factor) for factor in factors.T])
    return gaps_of((informations(codes, factors) / entropies)[np.var(codes, axis=0) > 0.01].T)


def mig_sup(codes, factors):
    return np.mean(mig_sup_gaps(codes, factors))


def modularities(codes, factors):
    """Ridgeway & Mozer 2018, as in disentanglement_lib."""
    scores = []
    for row in informations(codes, factors):
        squares = sorted(row**2)
        scores.append(1 - sum(squares[:-1]) / (squares[-1] * (len(squares) - 1)) if squares[-1] else 0.0)
    return scores


def modularity(codes, factors):
    return np.mean(modularities(codes, factors))


def total_correlation(codes):
    """Of a Gaussian, over all latents as in disentanglement_lib."""
    covariance = np.cov(codes.T)
    return 0.5 * (np.log(np.diag(covariance)).sum() - np.linalg.slogdet(covariance)[1])


def wasserstein_correlation(codes):
    covariance = np.cov(codes.T)
    return 2 * np.trace(covariance) - 2 * np.trace(sqrtm(np.diag(np.diag(covariance)) @ covariance)).real


def infomec(codes, factors, categorical=False):
    """InfoM, InfoC and InfoE (Hsu et al. 2023); the first two of latents with 1/20 of the largest range or more."""
    scaled, ranges = (codes - codes.mean(axis=0)) / codes.std(axis=0), np.ptp(codes, axis=0)
    told, symbols = (information, codes) if categorical else (neighbour_information, scaled)
    active = symbols.T[ranges > (0 if categorical else max(ranges) / 20)]
    found = np.array([[told(code, factor) for factor in factors.T] for code in active])
    shares = found / [information(factor, factor) for factor in factors.T]
    latents, count = shares.shape
    infom = np.mean([(max(row) / sum(row) - 1 / count) / (1 - 1 / count) for row in shares])
    infoc = np.mean([(max(column) / sum(column) - 1 / latents) / (1 - 1 / latents) for column in shares.T])
    hot = np.concatenate([code[:, None] == np.unique(code) for code in codes.T], axis=1).astype(float)
    return infom, infoc, np.mean([predicted_share(hot if categorical else scaled, factor) for factor in factors.T])


def predicted_share(inputs, factor):
    """1 - loss of a logistic regression without penalty over its loss without codes."""
    losses = []
    for given in (inputs, np.zeros_like(inputs)):
        model = fitted(LogisticRegression(C=np.inf, class_weight="balanced"), given, factor)
        losses.append(log_loss(factor, model.predict_proba(given)))
    return 1 - losses[0] / losses[1]


def irs(codes, factors, quantile=0.99, weighted=False):
    """Suter et al. 2019. In disentanglement_lib all values of a factor weigh alike, else by how often they occur."""
    scores, weights = [], []
    for latent in codes.T[np.var(codes, axis=0) > 0]:
        largest, best = max(abs(latent - latent.mean())), -np.inf
        for factor in factors.T:
            groups = [latent[factor == value] for value in np.unique(factor)]
            moved = [np.quantile(abs(group - group.mean()), quantile) for group in groups]
            best = max(best, 1 - np.average(moved, weights=list(map(len, groups)) if weighted else None) / largest)
        scores.append(best)
        weights.append(largest)
    return np.average(scores, weights=weights)


# scores that train


def fitted(model, codes, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the published protocol ends on the way
        return model.fit(codes, labels)


def dci(train, truth, test, asked, seed=0):
    """Eastwood & Williams 2018 with boosted trees, as in disentanglement_lib: the three scores and the importances."""
    models = [fitted(GradientBoostingClassifier(random_state=seed), train, labels) for labels in truth.T]
    importance = np.array([abs(model.feature_importances_) for model in models]).T  # (latents, factors)
    accuracies = [model.score(test, labels) for model, labels in zip(models, asked.T, strict=True)]
    return concentration(importance), concentration(importance.T), np.mean(accuracies), importance


def concentration(importance):
    """1 - entropy of every row's shares in units of an even one's, weighted by the rows' sums."""
    total = 0.0
    for row in importance:
        shares = row[row > 0] / row.sum() if row.sum() else row[:0]
        total += row.sum() * (1 + np.sum(shares * np.log(shares)) / np.log(len(row)))
    return total / importance.sum()


def sap_accuracies(train, truth, test, asked, seed=0):
    accuracy = np.zeros((train.shape[1], truth.shape[1]))
    for latent in range(train.shape[1]):
        for factor in range(truth.shape[1]):
            model = LinearSVC(C=0.01, class_weight="balanced", random_state=seed)
            model = fitted(model, train[:, [latent]], truth[:, factor])
            accuracy[latent, factor] = model.score(test[:, [latent]], asked[:, factor])
    return accuracy


def sap(train, truth, test, asked, seed=0):
    """Kumar et al. 2018 with factors of discrete values, as in disentanglement_lib."""
    return np.mean(gaps_of(sap_accuracies(train, truth, test, asked, seed)))


def explicitness(train, truth, test, asked):
    """The area under the ROC curve of a value against the others, as disentanglement_lib reports it."""
    mean, spread, areas = train.mean(axis=0), train.std(axis=0), []
    for labels, wanted in zip(truth.T, asked.T, strict=True):
        found = fitted(LogisticRegression(), (train - mean) / spread, labels).predict_proba((test - mean) / spread)
        values = np.unique(labels)
        areas.append(np.mean([roc_auc_score(wanted == value, found[:, place]) for place, value in enumerate(values)]))
    return np.mean(areas)


def downstream(make, train, truth, test, asked):
    """Mean test accuracy of a classifier for each factor, as in disentanglement_lib."""
    pairs = zip(truth.T, asked.T, strict=True)
    return np.mean([fitted(make(), train, labels).score(test, wanted) for labels, wanted in pairs])


def logistic():
    known = {"l1_ratios": (0,), "use_legacy_attributes": False}  # what scikit-learn 1.8 asks to be said
    given = {name: value for name, value in known.items() if name in LogisticRegressionCV().get_params()}
    return LogisticRegressionCV(Cs=10, cv=KFold(5), scoring="accuracy", **given)


def boosting(seed=0):
    return GradientBoostingClassifier(random_state=seed)


# scores that hold a factor; `grid` has the codes of all images: (values of one factor, values of the other, latents)


def beta_vae(grid, generator, train=10_000, test=5_000, pairs=64):
    """Higgins et al. 2017, as in disentanglement_lib."""

    def points(count):
        held = generator.integers(2, size=count)
        left, right = (generator.integers(grid.shape[:2], size=(count, pairs, 2)) for _ in range(2))
        for place, factor in enumerate(held):
            right[place, :, factor] = left[place, :, factor]
        apart = [np.abs(grid[tuple(a.T)] - grid[tuple(b.T)]).mean(axis=0) for a, b in zip(left, right, strict=True)]
        return np.array(apart), held

    return fitted(LogisticRegression(), *points(train)).score(*points(test))


def factor_vae(grid, generator, train=10_000, test=5_000, images=64, samples=10_000, threshold=0.05):
    """Kim & Mnih 2018, as in disentanglement_lib."""
    whole = grid[tuple(generator.integers(grid.shape[:2], size=(samples, 2)).T)].var(axis=0, ddof=1)
    active = np.flatnonzero(np.sqrt(whole) >= threshold)

    def votes(count):
        found = np.zeros((2, len(active)), int)
        for _ in range(count):
            held, drawn = generator.integers(2), generator.integers(grid.shape[:2], size=(images, 2))
            drawn[:, held] = drawn[0, held]
            found[held, np.argmin(grid[tuple(drawn.T)].var(axis=0, ddof=1)[active] / whole[active])] += 1
        return found

    stands_for = votes(train).argmax(axis=0)
    tested = votes(test)
    return sum(tested[factor, latent] for latent, factor in enumerate(stands_for)) / test


# scores after disentanglement_lib


def min_suf(codes, factors):
    """Minimality and sufficiency (Almudévar & Ortega 2025), of latents that vary."""
    cut = [bins_of(code, 15) for code in codes.T]
    found = np.array([[information(bins, factor) for factor in factors.T] for bins in cut])
    minimality = [max(row) / information(bins, bins) for row, bins in zip(found, cut, strict=True)]
    sufficiency = [max(row) / information(factor, factor) for row, factor in zip(found.T, factors.T, strict=True)]
    return np.mean(minimality), np.mean(sufficiency)


def equally_filled(code, values, given):
    """The bin of every code of `given`: as many bins as values, each with as many of the codes."""
    starts = [sorted(code)[len(code) * place // values] for place in range(1, values)]
    return np.array([sum(start <= one for start in starts) for one in given])


def matched(codes, factors):
    """The latent of every factor: of all one-to-one matches, the one with the most information."""
    binned = [[equally_filled(code, len(set(factor)), code) for factor in factors.T] for code in codes.T]
    found = [[information(bins, factor) for bins, factor in zip(row, factors.T, strict=True)] for row in binned]
    matches = permutations(range(codes.shape[1]), factors.shape[1])
    return max(matches, key=lambda match: sum(found[latent][factor] for factor, latent in enumerate(match)))


def snc(codes, factors, codes_test, factors_test):
    """Single-neuron classification (Mahon et al. 2024)."""
    accuracies = []
    for factor, latent in enumerate(matched(codes, factors)):
        labels, values = factors[:, factor], sorted(set(factors[:, factor]))
        bins, asked = (equally_filled(codes[:, latent], len(values), part[:, latent]) for part in (codes, codes_test))
        names = max(permutations(values), key=lambda names: np.mean(np.array(names)[bins] == labels))
        accuracies.append(np.mean(np.array(names)[asked] == factors_test[:, factor]))
    return np.mean(accuracies)


def nk(codes, factors, codes_test, factors_test):
    """Neuron knockout (Mahon et al. 2024), with scikit-learn's MLP."""
    drops = []
    train, test = ((part - codes.mean(axis=0)) / codes.std(axis=0) for part in (codes, codes_test))
    for factor, latent in enumerate(matched(codes, factors)):
        accuracies = []
        for kept in (range(codes.shape[1]), [each for each in range(codes.shape[1]) if each != latent]):
            model = MLPClassifier((256,), learning_rate_init=0.01, alpha=0, max_iter=75, batch_size=200, random_state=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(train[:, kept], factors[:, factor])
            accuracies.append(np.mean(model.predict(test[:, kept]) == factors_test[:, factor]))
        drops.append(accuracies[0] - accuracies[1])
    return np.mean(drops)


def explicitness_of_forests(codes, factors, codes_test, factors_test, depths=(1, 2, 4, 8)):
    """DCI-ES (Eastwood et al. 2023) with random forests of ten trees, whose capacity is their depth."""
    train, test = ((part - codes.mean(axis=0)) / codes.std(axis=0) for part in (codes, codes_test))
    scores = []
    for factor, asked in zip(factors.T, factors_test.T, strict=True):
        losses, wanted = [], (asked - factor.mean()) / factor.std()
        for depth in depths:
            model = RandomForestRegressor(10, max_depth=depth, random_state=0)
            predicted = model.fit(train, (factor - factor.mean()) / factor.std()).predict(test)
            losses.append(min([np.mean((predicted - wanted) ** 2) / np.var(wanted), *losses]))
        area = 0.0
        for place in range(1, len(depths)):
            height = (losses[place - 1] + losses[place]) / 2 - losses[-1]
            area += height * (depths[place] - depths[place - 1])
        scores.append(1 - 2 * area / (depths[-1] - depths[0]))
    return np.mean(scores)
