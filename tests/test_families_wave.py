"Audio and graph families: pure, alone, honest, without shortcuts; the insider finds the rule and dirt hides it."
import inspect
import io
import json
import wave
from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from sandsmith.core import canonical_json
from sandsmith.sand.metrics import get_metric
from sandsmith.sand.spec import TaskSpec, draw_spec, family_names, get_family

MODALITIES = ('audio', 'graph')
NAMES = sorted(name for m in MODALITIES for name in family_names(modality=m) if name != 'graph.links') # one network for all rows

@cache
def spec_of(name: str, turn: int = 0) -> TaskSpec:
    "One of the first draws of a family."
    specs = (draw_spec(13, i, modalities=[get_family(name).modality]) for i in range(40))
    return [s for _, s in zip(range(turn + 1), (s for s in specs if s.family == name))][turn]

@cache
def rows_of(name: str, n: int = 500) -> dict:
    "Rows of a family's first draw."
    return get_family(name).generate(n, spec_of(name).params, 21, 'test')

def part(rows: dict, keep: slice) -> dict: return {k: v[keep] for k, v in rows['columns'].items()}

def score_insider(name: str, params: dict, rows: dict, n_train: int = 150) -> float:
    "Quality of the insider on the rows after the first `n_train`; higher is better."
    family, y = get_family(name), rows['target']
    metric = get_metric({'binary': 'roc_auc', 'multiclass': 'macro_f1', 'ordinal': 'qwk', 'regression': 'r2'}[family.task_type])
    told = family.insider(part(rows, slice(n_train)), y[:n_train], part(rows, slice(n_train, None)), {**params, 'asked': metric.kind},
                          rows['files'].__getitem__)
    return metric.fn(y[n_train:], told)

def test_enough_families():
    assert [len(family_names(modality=m)) for m in MODALITIES] >= [5, 4]

@pytest.mark.parametrize('name', NAMES)
def test_same_seed_same_bytes_also_alone_and_from_json(name):
    family, params = get_family(name), spec_of(name).params
    rows = family.generate(60, params, 3, 'train')
    assert rows == family.generate(60, json.loads(canonical_json(params)), 3, 'train') != family.generate(60, params, 4, 'train')
    canonical_json([rows['columns'], rows['target']])
    alone: dict = {}
    exec('import io, json, math\nimport numpy as np', alone)
    for function in (*family.sources, family.generate, family.insider): exec(inspect.getsource(function), alone)
    assert alone[family.generate.__name__](60, params, 3, 'train') == rows
    told = [solve(rows['columns'], target, rows['columns'], params, rows['files'].__getitem__)
            for solve, target in ((family.insider, rows['target']), (alone[family.insider.__name__], list(map(str, rows['target']))))]
    assert told[0] == told[1] and len(told[0]) == 60
    kinds = {'binary': int, 'ordinal': int, 'multiclass': str, 'regression': float}
    assert {type(v) for v in rows['target']} == {kinds[family.task_type]}

@pytest.mark.parametrize('name', NAMES)
def test_order_names_and_sizes_say_nothing(name):
    family, rows = get_family(name), rows_of(name)
    n = len(rows['target'])
    y = np.unique(rows['target'], return_inverse=True)[1].astype(float)
    assert abs(np.corrcoef(np.arange(n), y)[0, 1]) < .15 and abs(np.corrcoef(y[1:], y[:-1])[0, 1]) < .15
    assert len({len(data) for data in rows['files'].values()}) == 1
    ending = {'audio': 'wav', 'graph': 'json'}[family.modality]
    assert rows['columns'][family.modality] == [f'{family.folder}/test_{i + 1:04d}.{ending}' for i in range(n)] == list(rows['files'])
    assert sum(map(len, rows['files'].values()))/n*460 < 5e6

@pytest.mark.parametrize('name', family_names(modality='audio'))
def test_loudness_and_bytes_are_no_shortcut(name):
    rows, y = rows_of(name), rows_of(name)['target']
    with wave.open(io.BytesIO(next(iter(rows['files'].values())))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate(), file.getnframes()) == (1, 2, 4000, 2048)
    samples = np.array([np.frombuffer(data, '<i2', offset=44) for data in rows['files'].values()]).astype(float)
    level = np.log((samples**2).mean(axis=1))
    levels = [level[np.array(y) == c].mean() for c in sorted(set(y))] if isinstance(y[0], str) else [np.corrcoef(level, y)[0, 1]]
    assert np.ptp([0, *levels]) < .15 if len(levels) == 1 else np.ptp(levels) < .3*level.std() + .1

@pytest.mark.parametrize('name', [n for n in NAMES if n.startswith('graph.')])
def test_graphs_are_valid_and_ids_say_nothing(name):
    rows = rows_of(name)
    graphs = [json.loads(data) for data in rows['files'].values()]
    for graph in graphs:
        n = len(graph['nodes'])
        assert [node['id'] for node in graph['nodes']] == list(range(n)) and n <= 32
        assert all(0 <= a < n and 0 <= b < n and a != b for a, b in graph['edges'])
    y = np.unique(rows['target'], return_inverse=True)[1].astype(float)
    first = [float(np.mean([edge[0] for edge in graph['edges'][:5]])/len(graph['nodes'])) for graph in graphs]
    assert abs(np.corrcoef(first, y)[0, 1]) < .2

@pytest.mark.parametrize('name', NAMES)
def test_insider_recovers_the_rule_and_no_single_number_does(name):
    params, rows, family = spec_of(name).params, rows_of(name), get_family(name)
    insider = score_insider(name, params, rows)
    assert insider > {'binary': .75, 'multiclass': .7, 'ordinal': .5, 'regression': .5}[family.task_type]
    assert family.views is not None
    views, y, fits = family.views(part(rows, slice(150)), part(rows, slice(150, None)), rows['files'].__getitem__), rows['target'], []
    assert {name.split()[0] for name in family.pool} <= set(views)
    assert all(np.isfinite(X).all() and np.isfinite(Z).all() and X.shape[1] == Z.shape[1] for X, Z in views.values())
    for X, Z in (view for key, view in views.items() if key in ('summary', 'size', 'degree', 'own', 'whole')):
        for j in range(X.shape[1]):
            if family.task_type == 'multiclass': fits.append(LogisticRegression().fit(X[:, [j]], y[:150]).score(Z[:, [j]], y[150:]))
            else: fits.append(abs(np.corrcoef(Ridge().fit(X[:, [j]], np.array(y[:150], float)).predict(Z[:, [j]]) + 1e-9*Z[:, j],
                                              np.array(y[150:], float))[0, 1]))
    assert max(np.nan_to_num(fits)) < .75

@pytest.mark.parametrize('name', NAMES)
def test_more_dirt_helps_nobody(name):
    family, params = get_family(name), spec_of(name).params
    dirt = {'hiss': 3, 'label_noise': .3} if family.modality == 'audio' else {'rewired_edges': .3, 'label_noise': .3}
    clean, dirty = ({**params, 'mutations': m} for m in ({}, {k: {'severity': 3, 'strength': s} for k, s in dirt.items()}))
    scores = [score_insider(name, p, family.generate(600, p, 5, 'x')) for p in (clean, dirty)]
    assert scores[0] > scores[1] + .05

@pytest.mark.parametrize('name', NAMES)
def test_words(name):
    family = get_family(name)
    for spec in (spec_of(name), spec_of(name, 1)):
        words = family.describe(spec.params)
        assert set(words['features']) == set(spec.feature_mapping) == set(rows_of(name)['columns'])
        public = ' '.join([words['title'], words['story'], *(d for d, _ in words['features'].values()), words['target']['description']])
        numbers = [v for k, v in spec.params.items() if isinstance(v, float) and k not in ('center', 'scale')]
        assert not any(str(v) in public for v in numbers) and words['rule'] not in public and '{' not in public
