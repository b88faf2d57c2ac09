"Metrics: equal to a library or to a slow definition, optimal at the truth, never better for a spoilt truth, indifferent to the order of rows."
import inspect
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from scipy.spatial.distance import directed_hausdorff
from scipy.special import rel_entr
from sklearn import metrics as sk

from sandsmith.core import GradeError, SpecError
from sandsmith.sand.form import encode_rows, parse_cell, perfect_guess, read_runs, write_runs
from sandsmith.sand.metrics import find_metric, get_metric, is_strictly_better, metric_names, reaches, score_submission

NAMES = metric_names()
KIND = {name: get_metric(name).kind for name in NAMES}


# Random rows of every kind: truth that is not degenerate, and a prediction

def words(rng, n): return [' '.join(rng.choice(['red', 'fox', 'a', 'the', 'Dog'], size=rng.integers(1, 5)).tolist()) for _ in range(n)]
def ids(rng, n, k=4): return [' '.join(f'i{j}' for j in rng.permutation(9)[:int(rng.integers(1, k + 1))]) for _ in range(n)]
def masks(rng, n): return [write_runs(rng.random((6, 5)) < rng.choice([0, .3, .7])) for _ in range(n - 1)] + ['3 4']


def boxes(rng, n):
    def one():
        x, y, w, h = rng.integers(0, 12, 2).tolist() + rng.integers(2, 7, 2).tolist()
        return f'{rng.choice(["stop", "yield"])} {rng.integers(1, 6)/5:g} {x} {y} {x + w} {y + h}'
    return [' '.join(one() for _ in range(rng.integers(0, 4))) for _ in range(n - 1)] + ['stop 1 0 0 9 9']


def draw(kind, n, rng):
    "A truth and a prediction of `n` rows."
    two, four, levels = np.r_[0, 1, rng.integers(0, 2, n - 2)], np.r_[0, 3, rng.integers(0, 4, n - 2)], rng.integers(-40, 40, n)/8
    hot = np.vstack([np.eye(3, dtype=int), rng.integers(0, 2, (n - 3, 3))])
    number, guess = np.r_[1., 9., rng.integers(1, 40, n - 2)/4], rng.integers(-8, 40, n)/4
    group = np.repeat(np.arange(n), 3)[:n]
    return {
        'label': (four, rng.integers(0, 4, n)), 'probability': (two, rng.integers(0, 9, n)/8), 'real': (number, guess),
        'probabilities': (np.eye(3, dtype=int)[np.r_[0, 1, 2, rng.integers(0, 3, n - 3)]], rng.integers(1, 9, (n, 3))/8),
        'labels': (hot, rng.integers(0, 2, (n, 3))), 'chances': (hot, rng.integers(0, 9, (n, 3))/8),
        'reals': (np.column_stack([number/4, rng.permutation(number)/4]), rng.integers(0, 12, (n, 2))/4),
        'spread': (number, np.column_stack([guess, rng.integers(1, 9, n)/4])), 'weighted': (np.column_stack([number, 1 + abs(levels)]), guess),
        'risk': (np.column_stack([number, np.r_[1, two[1:]]]), guess), 'grouped': (np.column_stack([two, group]), guess),
        'text': (words(rng, n), words(rng, n)), 'items': (ids(rng, n), ids(rng, n, 8)), 'mask': (masks(rng, n), masks(rng, n)),
        'boxes': (boxes(rng, n), boxes(rng, n))}[kind]


def inputs(name, n=12, seed=0):
    truth, guess = draw(KIND[name], n, np.random.default_rng(seed))
    if name in ('f1', 'f05'): truth, guess = truth % 2, guess % 2
    if name == 'order_kendall': truth = [t if ' ' in t else f'{t} z' for t in truth]
    return truth, guess


def take(rows, order): return [rows[i] for i in order] if isinstance(rows, list) else rows[list(order)]


# Independent definitions

def slow_auc(t, p):
    pairs = [(a > b) + .5*(a == b) for a, u in zip(p, t) for b, v in zip(p, t) if u == 1 and v == 0]
    return np.mean(pairs)


def slow_weighted_auc(t, p):
    "As the contest's page computes it: areas of the parts of the curve, on a fine grid of false-positive rates."
    fpr, tpr, _ = sk.roc_curve(t, p, drop_intermediate=False)
    at = np.linspace(0, 1, 400001)
    curve = np.interp(at, fpr, tpr)
    return (2*np.trapezoid(np.minimum(curve, .4), at) + np.trapezoid(np.maximum(curve - .4, 0), at))/1.4


def slow_c_index(t, p):
    pairs = [(p[i] > p[j]) + .5*(p[i] == p[j]) for i in range(len(t)) for j in range(len(t)) if t[i][0] < t[j][0] and t[i][1] == 1]
    return np.mean(pairs)


def by_query(t): return [np.flatnonzero(t[:, 1] == q) for q in np.unique(t[:, 1])]


def slow_mrr(t, p):
    "Expected rank when ties are drawn at random, over all orders of a query."
    found = []
    for rows in by_query(t):
        good = t[rows, 0] > 0
        if not good.any(): continue
        orders = [o for o in itertools.permutations(range(len(rows))) if all(p[rows[a]] >= p[rows[b]] for a, b in itertools.pairwise(o))]
        found.append(1/np.mean([1 + next(k for k, i in enumerate(o) if good[i]) for o in orders]))
    return np.mean(found)


def slow_bias_auc(t, p):
    def power(values): return np.mean(np.maximum(values, 1e-6)**-5.0)**-.2
    y, g, parts = t[:, 0], t[:, 1], []
    for name in np.unique(g[g > 0]):
        inside = g == name
        kept = [inside, (inside & (y == 0)) | (~inside & (y == 1)), (inside & (y == 1)) | (~inside & (y == 0))]
        if all(len(set(y[k])) == 2 for k in kept): parts.append([sk.roc_auc_score(y[k], p[k]) for k in kept])
    return np.mean([sk.roc_auc_score(y, p), *(power(np.array(column)) for column in zip(*parts))])


def slow_gini(t, p):
    def area(values, order): return (np.cumsum(values[order])/values.sum() - (np.arange(len(values)) + 1)/len(values)).sum()
    def mean_over_ties(key): return np.mean([area(t, np.lexsort((rng.random(len(t)), -key))) for _ in range(3000)])
    rng = np.random.default_rng(0)
    return mean_over_ties(p)/area(t, np.argsort(-t, kind='stable'))


def slow_distance(a, b):
    if not a or not b: return len(a) + len(b)
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    table[:, 0], table[0] = range(len(a) + 1), range(len(b) + 1)
    for i, j in itertools.product(range(1, len(a) + 1), range(1, len(b) + 1)):
        table[i, j] = min(table[i-1, j] + 1, table[i, j-1] + 1, table[i-1, j-1] + (a[i-1] != b[j-1]))
    return table[-1, -1]


def slow_map(t, p, k):
    "The contest's own definition: precision at each hit."
    found = []
    for a, b in zip(t, p):
        a, b = a.split(), b.split()[:k]
        found.append(sum(len(set(a) & set(b[:i + 1]))/(i + 1) for i, item in enumerate(b) if item in a)/min(len(a), k))
    return np.mean(found)


def slow_order(t, p):
    swaps = total = 0
    for a, b in zip(t, p):
        a, b = a.split(), [i for i in b.split() if i in a.split()] + [i for i in a.split() if i not in b.split()]
        swaps += sum((a.index(x) > a.index(y)) for x, y in itertools.combinations(b, 2))
        total += len(a)*(len(a) - 1)/2
    return 1 - 2*swaps/total


def arrays_of(t, p): return [(read_runs(a, (6, 5)), read_runs(b, (6, 5))) for a, b in zip(t, p)]
def overlap(a, b): return sk.jaccard_score(a.ravel(), b.ravel()) if (a | b).any() else 1.0
def over_union(a, b):
    grid = np.zeros((2, 40, 40), bool)
    for g, (x0, y0, x1, y1) in zip(grid, (a, b)): g[int(y0):int(y1), int(x0):int(x1)] = True
    return (grid[0] & grid[1]).sum()/(grid[0] | grid[1]).sum()


def cells_of(text): return [(v[0], float(v[1]), [float(x) for x in v[2:]]) for v in np.array(text.split()).reshape(-1, 6).tolist()]


def match(t, p, threshold):
    "Boxes of one row, surest first, each with whether it is right."
    free, out = cells_of(t), []
    for label, sure, box in sorted(cells_of(p), key=lambda b: (-b[1], b[0], b[2])):
        ious = [(over_union(box, other[2]), -i) for i, other in enumerate(sorted(free, key=lambda b: (-b[1], b[0], b[2]))) if other[0] == label]
        order = sorted(free, key=lambda b: (-b[1], b[0], b[2]))
        if ious and max(ious)[0] >= threshold:
            free.remove(order[-max(ious)[1]])
            out.append((label, sure, 1))
        else: out.append((label, sure, 0))
    return out


def slow_ap(t, p, threshold):
    rows = [b for a, c in zip(t, p) for b in match(a, c, threshold)]
    true, areas = [label for text in t for label, _, _ in cells_of(text)], []
    for label in set(true):
        mine = [(sure, hit) for name, sure, hit in rows if name == label]
        points = []
        for cut in sorted({sure for sure, _ in mine}, reverse=True):
            taken = [hit for sure, hit in mine if sure >= cut]
            points.append((sum(taken)/true.count(label), sum(taken)/len(taken)))
        recall, area = 0, 0
        for i, (r, _) in enumerate(points): recall, area = r, area + (r - recall)*max(q for _, q in points[i:])
        areas.append(area)
    return np.mean(areas)


def slow_nearness(a, b):
    "A row of UW-Madison's mix, in two dimensions, by scipy's own Hausdorff distance."
    if not a.any() or not b.any(): return float(a.any() == b.any())
    far = max(directed_hausdorff(np.argwhere(u), np.argwhere(v))[0] for u, v in ((a, b), (b, a)))
    return .4*sk.f1_score(a.ravel(), b.ravel()) + .6*(1 - far/np.hypot(32, 32))


def slow_f2(t, p, threshold):
    if not t and not p: return 1.0
    hits = [hit for _, _, hit in match(t, p, threshold)]
    precision, recall = sum(hits)/max(len(hits), 1), sum(hits)/max(len(cells_of(t)), 1)
    return 5*precision*recall/(4*precision + recall) if sum(hits) else 0.0


def one_by_one(f): return lambda t, p: np.mean([f(a, b) for a, b in zip(t.T, p.T)])


def deg_angle(t, p):
    def vector(v): return np.array([np.sin(v[1])*np.cos(v[0]), np.sin(v[1])*np.sin(v[0]), np.cos(v[1])])
    return np.mean([np.arccos(np.clip(vector(a) @ vector(b), -1, 1)) for a, b in zip(t, p)])


def metres(t, p):
    def vector(v): return np.array([np.cos(v[0])*np.cos(v[1]), np.cos(v[0])*np.sin(v[1]), np.sin(v[0])])
    d = [6371000*np.arccos(np.clip(vector(np.radians(a)) @ vector(np.radians(b)), -1, 1)) for a, b in zip(t, p)]
    return (np.quantile(d, .5) + np.quantile(d, .95))/2


def crps_by_integral(t, p):
    x = np.linspace(-60, 80, 140001)
    return np.mean([np.trapezoid((stats.norm.cdf(x, m, s) - (x >= y))**2, x) for y, (m, s) in zip(t, p)])


LIBRARY = {
    'accuracy': sk.accuracy_score, 'error_rate': sk.zero_one_loss, 'balanced_accuracy': sk.balanced_accuracy_score,
    'macro_f1': lambda t, p: sk.f1_score(t, p, average='macro'), 'weighted_f1': lambda t, p: sk.f1_score(t, p, average='weighted'),
    'f1': sk.f1_score, 'f05': lambda t, p: sk.fbeta_score(t, p, beta=.5), 'mcc': lambda t, p: np.corrcoef(
        *[np.concatenate([v == c for c in range(4)]) - np.repeat([np.mean(v == c) for c in range(4)], len(v)) for v in (t, p)])[0, 1],
    'qwk': lambda t, p: sk.cohen_kappa_score(t, p, weights='quadratic', labels=range(4)),
    'roc_auc': sk.roc_auc_score, 'log_loss': lambda t, p: sk.log_loss(t, p, labels=[0, 1]), 'brier': sk.brier_score_loss,
    'average_precision': lambda t, p: slow_average_precision(t, p), 'weighted_auc': slow_weighted_auc,
    'balanced_log_loss': lambda t, p: sk.log_loss(t, p, labels=[0, 1], sample_weight=np.where(t == 1, 1/t.sum(), 1/(1 - t).sum())),
    'probabilistic_f1': lambda t, p: stats.hmean([p[t == 1].sum()/p.sum(), p[t == 1].sum()/t.sum()]),
    'rmse': sk.root_mean_squared_error, 'mae': sk.mean_absolute_error, 'r2': sk.r2_score, 'spearman': lambda t, p: stats.spearmanr(t, p).statistic,
    'rmsle': lambda t, p: sk.root_mean_squared_log_error(t, p.clip(0)), 'medae': sk.median_absolute_error,
    'mape': lambda t, p: sk.mean_absolute_error(t, p, sample_weight=1/t)*np.mean(1/t),
    'rmspe': lambda t, p: sk.root_mean_squared_error(np.ones(len(t)), p/t),
    'smape': lambda t, p: 100*np.mean([2*abs(a - b)/(abs(a) + abs(b)) for a, b in zip(t, p)]),
    'pinball_90': lambda t, p: sk.mean_pinball_loss(t, p, alpha=.9), 'pearson': lambda t, p: stats.pearsonr(t, p).statistic,
    'kendall': lambda t, p: slow_kendall(t, p), 'gini': slow_gini,
    'mcrmse': sk.root_mean_squared_error, 'mean_column_mae': sk.mean_absolute_error, 'mean_column_rmsle': sk.root_mean_squared_log_error,
    'column_spearman': one_by_one(lambda t, p: stats.spearmanr(t, p).statistic), 'angular_error': deg_angle, 'haversine': metres,
    'laplace_log_likelihood': lambda t, p: np.mean(stats.laplace.logpdf(np.abs(t - p[:, 0]).clip(0, 1000), 0, p[:, 1].clip(70)/2**.5)),
    'crps': crps_by_integral, 'wmae': lambda t, p: sk.mean_absolute_error(t[:, 0], p, sample_weight=t[:, 1]),
    'weighted_rmsle': lambda t, p: math.sqrt(sk.mean_squared_log_error(t[:, 0], np.maximum(p, 0), sample_weight=t[:, 1])),
    'c_index': slow_c_index,
    'ndcg_at_5': lambda t, p: np.mean([sk.ndcg_score([2**t[r, 0] - 1], [p[r]], k=5) if t[r, 0].any() else 1. for r in by_query(t) if len(r) > 1]),
    'query_map': lambda t, p: np.mean([slow_average_precision(t[r, 0], p[r]) for r in by_query(t) if t[r, 0].any()]), 'mrr': slow_mrr,
    'group_log_mae': lambda t, p: np.mean([np.log(max(sk.mean_absolute_error(t[r, 0], p[r]), 1e-9)) for r in by_query(t)]),
    'bias_auc': slow_bias_auc,
    'multiclass_log_loss': lambda t, p: sk.log_loss(t.argmax(axis=1), p/p.sum(axis=1, keepdims=True)),
    'kl_divergence': lambda t, p: rel_entr(t, p/p.sum(axis=1, keepdims=True)).sum()/len(t), 'macro_auc': one_by_one(sk.roc_auc_score),
    'micro_f1': lambda t, p: sk.f1_score(t, p, average='micro'), 'mean_f1': lambda t, p: sk.f1_score(t, p, average='samples', zero_division=1),
    'hamming_loss': sk.hamming_loss, 'mean_column_auc': one_by_one(slow_auc),
    'lwlrap': lambda t, p: sk.label_ranking_average_precision_score(t, p, sample_weight=t.sum(axis=1)),
    'column_log_loss': one_by_one(lambda t, p: sk.log_loss(t, p, labels=[0, 1])),
    'weighted_log_loss': lambda t, p: sk.log_loss(t.ravel(), p.ravel(), labels=[0, 1], sample_weight=1 + t.ravel()),
    'exact_match': lambda t, p: np.mean([a == b for a, b in zip(t, p)]), 'levenshtein': lambda t, p: np.mean([slow_distance(a, b) for a, b in zip(t, p)]),
    'normalised_levenshtein': lambda t, p: sum(slow_distance(a, b) for a, b in zip(t, p))/sum(len(a) for a in t),
    'word_jaccard': lambda t, p: np.mean([1 - (lambda a, b: len(a ^ b)/len(a | b))(set(a.lower().split()), set(b.lower().split())) for a, b in zip(t, p)]),
    'map_at_5': lambda t, p: slow_map(t, p, 5), 'map_at_12': lambda t, p: slow_map(t, p, 12),
    'recall_at_5': lambda t, p: np.mean([sum(i in b.split()[:5] for i in a.split())/len(a.split()) for a, b in zip(t, p)]),
    'error_at_5': lambda t, p: np.mean([not any(i in b.split()[:5] for i in a.split()) for a, b in zip(t, p)]),
    'set_f1': lambda t, p: np.mean([2*len([i for i in a.split() if i in b.split()])/len((a + ' ' + b).split()) for a, b in zip(t, p)]),
    'order_kendall': slow_order,
    'dice': lambda t, p: np.mean([sk.f1_score(a.ravel(), b.ravel()) if (a | b).any() else 1. for a, b in arrays_of(t, p)]),
    'global_dice': lambda t, p: sk.f1_score(*(np.concatenate([x.ravel() for x in side]) for side in zip(*arrays_of(t, p)))),
    'mask_iou': lambda t, p: np.mean([overlap(a, b) for a, b in arrays_of(t, p)]),
    'iou_precision': lambda t, p: np.mean([v > c/100 for v in [overlap(a, b) for a, b in arrays_of(t, p)] for c in range(50, 100, 5)]),
    'map_50': lambda t, p: slow_ap(t, p, .5), 'map_50_95': lambda t, p: np.mean([slow_ap(t, p, c/100) for c in range(50, 100, 5)]),
    'dice_hausdorff': lambda t, p: np.mean([slow_nearness(read_runs(a, (32, 32)), read_runs(b, (32, 32))) for a, b in zip(t, p)]),
    'f2_50_95': lambda t, p: np.mean([slow_f2(a, b, c/100) for a, b in zip(t, p) for c in range(50, 100, 5)]),
    'f1_50': lambda t, p: 2*sum(h for a, b in zip(t, p) for _, _, h in match(a, b, .5))/sum(len(cells_of(a)) + len(cells_of(b)) for a, b in zip(t, p)),
}


def slow_average_precision(t, p):
    area, recall = 0, 0
    for cut in sorted(set(p), reverse=True):
        hits = np.sum((p >= cut) & (t > 0))
        area, recall = area + (hits/np.sum(t > 0) - recall)*hits/np.sum(p >= cut), hits/np.sum(t > 0)
    return area


def slow_kendall(t, p):
    pairs = [(np.sign(t[i] - t[j]), np.sign(p[i] - p[j])) for i, j in itertools.combinations(range(len(t)), 2)]
    a, b = np.array(pairs).T
    return (a*b).sum()/math.sqrt((a != 0).sum()*(b != 0).sum())


def test_every_metric_is_checked():
    assert set(LIBRARY) == set(NAMES) and len(NAMES) >= 45


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.filterwarnings('ignore')
def test_a_metric_equals_an_independent_one(name):
    for seed, n in itertools.product(range(4), (9, 21)):
        truth, guess = inputs(name, n, seed)
        tolerance = {'gini': .03, 'weighted_auc': 1e-5, 'crps': 1e-3, 'haversine': 1e-2}.get(name, 1e-9)
        assert get_metric(name).fn(truth, guess) == pytest.approx(LIBRARY[name](truth, guess), abs=tolerance, rel=1e-9), (seed, n)


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.filterwarnings('ignore')
def test_truth_is_optimal_and_spoiling_it_never_helps(name):
    metric = get_metric(name)
    for seed in range(3):
        truth, guess = inputs(name, 15, seed)
        perfect = take(np.array(perfect_guess(metric.kind, truth), object if isinstance(truth, list) else None), range(15)).tolist()
        assert score_submission(metric, truth, perfect) == metric.optimum
        guess = guess if isinstance(guess, list) else guess.tolist()
        for share in (1, 5, 15):
            spoilt = guess[:share] + perfect[share:]
            assert not is_strictly_better(metric, score_submission(metric, truth, spoilt), metric.optimum)


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.filterwarnings('ignore')
def test_rows_have_no_order(name):
    truth, guess = inputs(name, 14, 5)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(14).tolist()
        assert get_metric(name).fn(take(truth, order), take(guess, order)) == pytest.approx(get_metric(name).fn(truth, guess), abs=1e-9)


@pytest.mark.parametrize('name', [n for n in NAMES if get_metric(n).chance is not None])
@pytest.mark.filterwarnings('ignore')
def test_a_constant_gets_the_chance_value(name):
    truth, guess = inputs(name, 15, 2)
    flat = np.broadcast_to(np.asarray(guess)[:1] if name != 'r2' else truth.mean(), np.asarray(guess).shape)
    assert score_submission(get_metric(name), truth, flat) == get_metric(name).chance


# Degenerate input: a number or a clear refusal, never a crash of another kind

DEGENERATE = {
    'label': [([1, 1, 1], [1, 1, 1]), ([1], [0]), ([0, 0], [1, 1])], 'probability': [([1, 1], [.5, .2]), ([0], [1.]), ([0, 1], [1., 0.])],
    'real': [([2., 2.], [1., 3.]), ([0., 0.], [0., 0.]), ([5.], [5.])], 'probabilities': [([[1, 0], [1, 0]], [[0., 0.], [1., 1.]])],
    'labels': [([[0, 0]], [[0, 0]]), ([[0, 0]], [[1, 1]])], 'chances': [([[1, 1]], [[.5, .5]]), ([[0, 0], [0, 0]], [[0., 1.], [0., 1.]])],
    'reals': [([[1., 1.]], [[0., 0.]]), ([[0., 0.], [0., 0.]], [[1., 1.], [2., 2.]])], 'spread': [([1.], [[1., 0.]]), ([1.], [[9e11, -3.]])],
    'weighted': [([[1., 0.]], [2.])], 'risk': [([[1., 0], [2., 0]], [1., 2.]), ([[3., 1]], [0.])], 'grouped': [([[0., 0], [0., 0]], [1., 1.]), ([[1., 4]], [0.])],
    'text': [(['a'], ['']), (['', ''], ['', ''])], 'items': [(['a'], ['b']), ([''], ['']), (['a'], [''])],
    'mask': [([''], ['']), ([''], ['1 2']), (['1 2'], [''])], 'boxes': [([''], ['']), ([''], ['a 1 0 0 1 1']), (['a 1 0 0 1 1'], [''])]}


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.filterwarnings('ignore')
def test_degenerate_rows_give_a_score_or_a_refusal(name):
    metric = get_metric(name)
    for truth, guess in DEGENERATE[metric.kind]:
        try:
            with np.errstate(all='ignore'): score = score_submission(metric, truth, guess)
        except (GradeError, ZeroDivisionError, ValueError): continue
        assert math.isfinite(score) and score == round(score, 5)
        better = score > metric.optimum if metric.direction == 'max' else score < metric.optimum
        assert not better


def test_empty_answers():
    assert get_metric('dice').fn(['', '', '1 2'], ['', '1 2', '']) == pytest.approx(1/3)
    assert get_metric('f1_50').fn(['a 1 0 0 4 4'], ['']) == 0 and get_metric('map_50').fn(['a 1 0 0 4 4'], ['']) == 0
    assert get_metric('mean_f1').fn(np.array([[0, 0]]), np.array([[0, 0]])) == 1
    assert get_metric('map_at_5').fn(['', 'a'], ['', 'b']) == .5


def test_distances_run_in_both_directions_of_a_picture():
    rng = np.random.default_rng(4)
    pairs = [[rng.random((32, 32)) < share for share in shares] for shares in ((.01, .02), (.3, .002), (.5, .5), (0, .1), (0, 0))]
    found = get_metric('dice_hausdorff').fn(*([write_runs(m) for m in side] for side in zip(*pairs)))
    assert found == pytest.approx(np.mean([slow_nearness(a, b) for a, b in pairs]), abs=1e-12)


def test_ties_win_nothing_by_their_order():
    truth = np.array([[1., 0], [0, 0], [0, 0], [1, 1], [0, 1], [0, 1]])
    flat = np.zeros(6)
    for name in ('ndcg_at_5', 'query_map', 'mrr'):
        scores = [get_metric(name).fn(truth, flat), get_metric(name).fn(truth[::-1], flat)]
        assert scores[0] == pytest.approx(scores[1]) and scores[0] < 1


# The registry

def test_metrics_are_self_contained_and_complete():
    aliases = [a for name in NAMES for a in get_metric(name).aliases]
    assert len({a.lower() for a in aliases}) == len(aliases)
    for name in NAMES:
        metric, alone = get_metric(name), {'Any': object}
        for function in (*metric.sources, metric.fn): exec('from __future__ import annotations\n' + inspect.getsource(function), alone)
        truth, guess = inputs(name)
        assert alone[name](truth, guess) == metric.fn(truth, guess)
        assert metric.title and metric.formula and metric.min_rows >= 1 and find_metric(metric.title) is metric
        assert all(find_metric(alias) is metric for alias in metric.aliases), name


def test_rounding_and_refusal():
    auc = get_metric('roc_auc')
    assert reaches(auc, .12346, .12346) and not is_strictly_better(auc, .12346, .12346)
    with pytest.raises(GradeError, match='degenerate'), np.errstate(all='ignore'): score_submission(get_metric('r2'), np.ones(4), np.zeros(4))
    with pytest.raises(SpecError, match='roc_auc'): get_metric('vibes')
    assert find_metric('vibes') is None


# Cells

@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_runs_round_trip(height, width, seed):
    mask = np.random.default_rng(seed).random((height, width)) < .5
    text = write_runs(mask)
    assert (read_runs(text, (height, width)) == mask).all()
    assert parse_cell(text, {'kind': 'mask', 'size': [height, width]}) == ('ok', text)
    flat = mask.T.ravel()
    assert sum(flat) == sum(int(v) for v in text.split()[1::2]) and all(flat[int(v) - 1] for v in text.split()[::2])


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(['label', 'probability', 'real', 'labels', 'text', 'items', 'mask', 'boxes']), st.text(max_size=30))
def test_no_cell_crashes_the_parser(kind, text):
    form = {'kind': kind, 'classes': [0, 1], 'size': [4, 4]}
    reason, value = parse_cell(text, form)
    assert reason in ('ok', 'not_finite', 'bad_values') and (reason == 'ok' or isinstance(value, str))
    for name in [n for n in NAMES if KIND[n] == kind and reason == 'ok' and kind in ('text', 'items', 'mask', 'boxes')]:
        truth = {'mask': '1 2', 'boxes': 'a 1 0 0 1 1'}.get(kind, 'a b')
        assert math.isfinite(get_metric(name).fn([truth], [value]))


def test_rows_are_encoded():
    form = {'kind': 'probabilities', 'classes': ['a', 'b'], 'group': None}
    assert encode_rows(form, ['b', 'a']).tolist() == [[0, 1], [1, 0]]
    assert encode_rows({'kind': 'label', 'classes': ['a', 'b']}, ['b', 'a']).tolist() == [1, 0]
    assert encode_rows({'kind': 'text', 'classes': None}, ['b', '']).dtype == object
