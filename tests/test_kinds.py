"Every kind of prediction has a family, and its tasks hold from spec to verdict: calibrated, rebuilt, graded alike by both graders, played."
from functools import cache

import numpy as np
import pytest

from sandsmith.core import Limits, write_atomic
from sandsmith.sand.author import write_task
from sandsmith.sand.calibrate import calibrate
from sandsmith.sand.grade import grade, load_answers
from sandsmith.sand.metrics import get_metric, is_strictly_better, metric_names
from sandsmith.sand.players import player_code, player_names
from sandsmith.sand.spec import SandTask, family_names, get_family, load_domains, write_spec
from sandsmith.sand.verify import verify_task
from sandsmith.sandbox import run

CASES = {'probabilities': ('tabular.radial', 'multiclass_log_loss'), 'chances': ('tabular.tags', 'mean_column_auc'),
         'weighted': ('tabular.stakes', 'weighted_rmsle'), 'spread': ('tabular.doubt', 'laplace_log_likelihood')}

@pytest.fixture(scope='module')
def task_of(tmp_path_factory):
    "The first task of a kind that calibrates."
    @cache
    def build(kind: str) -> SandTask:
        name, metric = CASES[kind]
        specs = (write_spec(get_family(name), load_domains()['ceramics'], seed=5, index=i, metric=metric) for i in range(5))
        spec, found = next((spec, found) for spec in specs if (found := calibrate(spec)).is_accepted)
        return write_task(spec, found, tmp_path_factory.mktemp(kind))
    return build

def play(task: SandTask, player: str, folder) -> float:
    done = run(player_code(player, task), files={'data': task.public_dir}, limits=Limits(timeout_s=90), collect=['submission.csv'])
    assert done.status == 'ok', done.stderr
    verdict = grade(task.dir, write_atomic(folder/f'{player}.csv', done.files['submission.csv']))
    assert verdict.status == 'scored', verdict
    return verdict.score

def test_kinds_of_prediction_have_families():
    offered = {get_metric(m).kind for name in family_names() for m in get_family(name).metrics}
    assert set(CASES) | {'label', 'probability', 'real', 'reals', 'labels', 'risk', 'grouped', 'text', 'items'} <= offered
    real = {'multiclass_log_loss', 'mean_column_auc', 'column_log_loss', 'laplace_log_likelihood', 'weighted_rmsle', 'crps', 'lwlrap'}
    assert real <= {m for name in family_names() for m in get_family(name).metrics} <= set(metric_names())

@pytest.mark.parametrize('kind', CASES)
def test_a_task_of_the_kind_verifies(task_of, kind):
    task = task_of(kind)
    assert load_answers(task.dir).form['kind'] == task.spec.params['asked'] == kind
    assert verify_task(task.dir) == []

@pytest.mark.parametrize('kind', CASES)
def test_players_are_ordered(task_of, kind, tmp_path):
    task = task_of(kind)
    score, metric = {p: play(task, p, tmp_path) for p in player_names()}, get_metric(task.metric)
    others = [score[p] for p in player_names() if p not in ('constant', 'insider')]
    best = min(others) if metric.is_lower_better else max(others)
    assert is_strictly_better(metric, score['insider'], best) and is_strictly_better(metric, best, score['constant'])

def test_the_same_rows_are_asked_for_in_other_ways():
    "One draw of a family, answered as labels and as probabilities in the order of the labels."
    radial = get_family('tabular.radial')
    params = radial.sample_params(np.random.default_rng(1), load_domains()['coffee'])
    train, test = radial.generate(150, params, 1, 'train'), radial.generate(400, params, 2, 'test')
    labels, rows = (radial.insider(train['columns'], train['target'], test['columns'], {**params, 'asked': kind}, None)
                    for kind in ('label', 'probabilities'))
    assert [sorted(params['target']['labels'])[int(np.argmax(row))] for row in rows] == labels

def test_an_error_is_as_large_as_it_says():
    doubt = get_family('tabular.doubt')
    for seed in range(3):
        params = doubt.sample_params(np.random.default_rng(seed), load_domains()['coffee'])
        train, test = doubt.generate(200, params, 1, 'train'), doubt.generate(1000, params, 2, 'test')
        value, error = np.array(doubt.insider(train['columns'], train['target'], test['columns'], params, None)).T
        assert (error > 0).all() and .55 < np.mean(np.abs(np.array(test['target']) - value) < error) < .85

def test_the_page_says_how_much_a_row_weighs():
    stakes = get_family('tabular.stakes')
    for seed in range(3):
        params = stakes.sample_params(np.random.default_rng(seed), load_domains()['trams'])
        rows, note = stakes.generate(200, params, 1, 'train'), stakes.describe(params)['target']['truth'][1]
        heavy = {cell for cell, (_, weight) in zip(rows['columns'][params['category']['name']], rows['target']) if weight == 5}
        assert all(f'`{level}`' in note['description'] for level in heavy) and len(heavy) == 2

# ---------------------------------------------------------------- pairs of nodes in one network

def test_links_verify_and_are_played_in_order(tmp_path):
    links = get_family('graph.links')
    specs = (write_spec(links, load_domains()['trams'], seed=6, index=i, metric='roc_auc') for i in range(5))
    spec, found = next((spec, found) for spec in specs if (found := calibrate(spec)).is_accepted)
    task = write_task(spec, found, tmp_path)
    assert verify_task(task.dir) == [] and [p.name for p in (task.public_dir/'graphs').iterdir()] == ['network.json']
    score = [play(task, p, tmp_path) for p in ('constant', 'forest', 'insider')]
    assert score == sorted(score) and score[0] < score[2]

def test_asked_pairs_are_apart_and_not_in_the_network():
    links = get_family('graph.links')
    for seed in range(3):
        params = links.sample_params(np.random.default_rng(seed), load_domains()['coffee'])
        train, test = ({tuple(sorted(pair)) for pair in zip(*links.generate(150, params, 1, split)['columns'].values())} for split in ('train', 'test'))
        known = {tuple(sorted(edge)) for edge in params['edges']}
        assert not train & test and not (train | test) & known and len(train) == 150
        assert links.generate(5, params, 1, 'train')['files'] == links.generate(9, params, 2, 'test')['files']
