"Families: pure, self-contained, honest, without leaks; specs survive JSON and name what is wrong."
import inspect
import io
import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer

from sandsmith.core import SpecError, canonical_json, derive_seed
from sandsmith.sand.calibrate import calibrate, draw_population, measure_quality, predict_population
from sandsmith.sand.corpus import build_corpus
from sandsmith.sand.metrics import get_metric
from sandsmith.sand.spec import (
    Family, TaskSpec, check_spec, draw_spec, family_names, get_family, load_domains, load_task, parse_spec, register_family, write_spec)

MODALITIES = ('tabular', 'text', 'image')
NAMES = sorted(name for m in MODALITIES for name in family_names(modality=m))
PLAIN = [n for n in NAMES if get_family(n).task_type in ('binary', 'multiclass', 'ordinal', 'regression')
         and get_metric(get_family(n).metrics[0]).kind in ('label', 'probability', 'real')]

@cache
def specs_of(name: str) -> list[TaskSpec]:
    "The first draws of a family."
    modality = get_family(name).modality
    turns = 3*len(family_names(modality=modality))
    return [s for s in (draw_spec(11, i, modalities=[modality]) for i in range(turns)) if s.family == name][:3]

def halves(spec: TaskSpec, n_test: int, seed: int = 0) -> tuple[dict, dict]:
    "Training rows and test rows of a spec."
    generate = get_family(spec.family).generate
    return (generate(spec.n_train, spec.params, derive_seed(spec.seed, 'train', seed), 'train'),
            generate(n_test, spec.params, derive_seed(spec.seed, 'test', seed), 'test'))

def test_enough_families_and_domains():
    assert len(NAMES) >= 7
    assert [len(family_names(modality=m)) for m in MODALITIES] >= [4, 2, 2]
    assert len(load_domains()) >= 40

# ---------------------------------------------------------------- drawing

@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**40), index=st.integers(0, 500))
def test_draw_is_pure_and_survives_json(seed, index):
    spec = draw_spec(seed, index)
    assert draw_spec(seed, index) == spec
    assert parse_spec(canonical_json(spec.model_dump())) == spec
    assert 50 <= spec.n_train <= 200 and len(spec.mutations) == 3
    assert spec.target['name'] not in spec.feature_mapping

@pytest.mark.parametrize('seed', [5])
def test_small_corpora_cover_modalities_families_and_read_differently(seed):
    turns = range(3*max(len(family_names(modality=m)) for m in MODALITIES))
    specs = [draw_spec(seed, i, modalities=MODALITIES) for i in turns]
    assert {s.modality for s in specs[:3]} == set(MODALITIES)
    assert len({s.family for s in specs[:6]}) == 6
    assert {s.family for s in specs} == {n for m in MODALITIES for n in family_names(modality=m)}
    assert len({s.domain for s in specs}) == min(len(specs), len(load_domains()))
    assert len({(s.title, tuple(s.feature_mapping), s.hidden_rule_logic) for s in specs}) == len(specs)

def test_modalities_can_be_chosen():
    assert {draw_spec(0, i, modalities=['text']).modality for i in range(4)} == {'text'}
    for bad in (['smell'], []):
        with pytest.raises(SpecError, match='modalities'): draw_spec(0, 0, modalities=bad)

# ---------------------------------------------------------------- generating

@pytest.mark.parametrize('name', NAMES)
def test_rows_are_json_and_same_seed_gives_same_bytes(name):
    family = get_family(name)
    for spec in specs_of(name):
        a = family.generate(60, spec.params, 3, 'train')
        b = family.generate(60, json.loads(canonical_json(spec.params)), 3, 'train')
        assert a == b and a != family.generate(60, spec.params, 4, 'train')
        canonical_json([a['columns'], a['target']])  # finite JSON scalars
        assert set(a['columns']) == set(spec.feature_mapping)
        assert {len(c) for c in a['columns'].values()} == {60} == {len(a['target'])}
        kinds = {'binary': int, 'ordinal': int, 'multiclass': str, 'regression': float, 'retrieval': str, 'seq2seq': str, 'segmentation': str,
                 'detection': str, 'forecasting': float}
        truth = spec.target.get('truth')
        assert {type(v) for v in a['target']} == {list if truth else kinds[spec.task_type]}
        if truth: assert {len(row) for row in a['target']} == {len(truth)}

@pytest.mark.parametrize('name', NAMES)
def test_scripts_need_no_sandsmith(name):
    family, spec = get_family(name), specs_of(name)[0]
    alone: dict = {}
    exec('import io, json, math\nimport numpy as np', alone)
    for function in (*family.sources, family.generate, family.insider): exec(inspect.getsource(function), alone)
    train = family.generate(80, spec.params, 3, 'train')
    assert alone[family.generate.__name__](80, spec.params, 3, 'train') == train
    told = [solve(train['columns'], train['target'], train['columns'], spec.params, train['files'].__getitem__)
            for solve in (family.insider, alone[family.insider.__name__])]
    assert told[0] == told[1] and len(told[0]) == 80

@pytest.mark.parametrize('name', NAMES)
def test_insider_reads_csv_text_and_keeps_types(name):
    family, spec = get_family(name), specs_of(name)[1]
    train, test = halves(spec, 40)
    load = {**train['files'], **test['files']}.__getitem__
    def as_text(cells): return ['' if v is None else str(v) for v in cells]
    plain = family.insider(train['columns'], train['target'], test['columns'], spec.params, load)
    target = [as_text(row) for row in train['target']] if isinstance(train['target'][0], list) else as_text(train['target'])
    read = family.insider({k: as_text(v) for k, v in train['columns'].items()}, target,
                          {k: as_text(v) for k, v in test['columns'].items()}, spec.params, load)
    assert plain == read
    canonical_json(plain)
    if get_metric(spec.metric).kind == 'label': assert set(plain) <= set(train['target'])
    if get_metric(spec.metric).kind == 'probability': assert all(0 < p < 1 for p in plain)
    if get_metric(spec.metric).kind == 'probabilities': assert all(abs(sum(row) - 1) < 1e-5 for row in plain)

# ---------------------------------------------------------------- honest: there is something to find, and more for who knows where

def matrix(spec: TaskSpec, train: dict, test: dict) -> np.ndarray:
    "What a generic model sees: the family's own views, or numbers, words or pixels of training and test rows."
    family = get_family(spec.family)
    if family.views:
        views = family.views(train['columns'], test['columns'], {**train['files'], **test['files']}.__getitem__)
        used = sorted({name.split(' ')[0] for name in family.pool})
        return np.hstack([np.vstack(views[name]) for name in used])
    if spec.modality == 'image':
        files = [rows['files'][name] for rows in (train, test) for name in rows['columns']['image']]
        return np.array([np.asarray(Image.open(io.BytesIO(data))).ravel() for data in files])
    if spec.modality == 'text':
        texts = [t for rows in (train, test) for t in rows['columns'][spec.params['column']]]
        return TfidfVectorizer(min_df=2).fit(texts[:spec.n_train]).transform(texts).toarray()
    columns = [train['columns'][k] + test['columns'][k] for k in train['columns']]
    coded = [[sorted(set(c)).index(v) for v in c] if isinstance(c[0], str) else [-1 if v is None else v for v in c] for c in columns]
    return np.array(coded, dtype=float).T

def score_constant_generic_insider(spec: TaskSpec) -> list[float]:
    "Qualities (higher is better) on 2,000 rows."
    family, metric = get_family(spec.family), get_metric(spec.metric)
    train, test = halves(spec, 2000)
    y, X = train['target'], matrix(spec, train, test)
    is_number = spec.task_type in ('ordinal', 'regression')
    forest = (RandomForestRegressor if is_number else RandomForestClassifier)(40, min_samples_leaf=3, max_features=.2, random_state=0)
    forest.fit(X[:spec.n_train], y)
    constant = float(np.mean(y)) if is_number or metric.kind == 'probability' else max(sorted(set(y)), key=y.count)
    Z = X[spec.n_train:]
    generic = forest.predict_proba(Z)[:, 1].clip(.02, .98) if metric.kind == 'probability' else forest.predict(Z)
    if spec.task_type == 'ordinal': constant, generic = round(constant), generic.round().astype(int)
    told = family.insider(train['columns'], y, test['columns'], spec.params, {**train['files'], **test['files']}.__getitem__)
    sign, truth = (1 if metric.direction == 'max' else -1), test['target']
    if metric.kind == 'probabilities':
        truth = [[int(t == c) for c in forest.classes_] for t in truth]
        constant, generic = [float(np.mean(np.array(y) == c)) for c in forest.classes_], forest.predict_proba(Z)
    return [sign*metric.fn(truth, p) for p in ([constant]*2000, list(generic), told)]

@pytest.mark.parametrize('name', PLAIN)
def test_insider_beats_generic_model_and_constant(name):
    scores = np.array([score_constant_generic_insider(s) for s in specs_of(name)[:2]])
    constant, generic, insider = scores.T
    assert (insider > constant).all()
    assert (insider > generic).all()
    assert (generic - constant).mean() > 0  # something to find without knowing the rule

@pytest.mark.parametrize('name', [n for n in NAMES if n not in PLAIN])
def test_insider_beats_every_baseline_and_they_the_constant(name):
    for spec in specs_of(name)[:1]:
        rows = draw_population(spec, n_draws=4)
        population, _ = measure_quality(get_metric(spec.metric), rows, predict_population(spec, rows))
        others = [q for baseline, q in population.items() if baseline not in ('insider', 'constant')]
        assert population['insider'] > max(others) > population['constant'] and len(others) >= 3

@pytest.mark.parametrize('name', PLAIN)
def test_classes_are_all_there(name):
    for spec in specs_of(name):
        target = get_family(name).generate(800, spec.params, 9, 'x')['target']
        if spec.task_type == 'regression':
            assert len(set(target)) >= 10 and np.isfinite(target).all()
        else:
            shares = np.unique(target, return_counts=True)[1]/800
            assert len(shares) >= 2 and shares.min() > .04 and shares.max() < .75

# ---------------------------------------------------------------- no leaks

@pytest.mark.parametrize('name', NAMES)
def test_order_and_files_say_nothing(name):
    spec = specs_of(name)[0]
    rows = get_family(name).generate(1500, spec.params, 21, 'test')
    first = [row[0] if isinstance(row, list) else row for row in rows['target']]
    y = np.unique(first, return_inverse=True)[1].astype(float)
    assert abs(np.corrcoef(np.arange(1500), y)[0, 1]) < .1
    assert abs(np.corrcoef(y[1:], y[:-1])[0, 1]) < .1
    if spec.modality == 'image':
        assert len({len(data) for data in rows['files'].values()}) == 1
        assert rows['columns']['image'] == [f'images/test_{i + 1:04d}.png' for i in range(1500)] == list(rows['files'])
        picture = Image.open(io.BytesIO(rows['files']['images/test_0001.png']))
        assert (picture.size, picture.mode, picture.info) == ((32, 32), 'L', {})

@pytest.mark.parametrize('name', NAMES)
def test_public_words_do_not_tell_the_rule(name):
    for spec in specs_of(name):
        words = get_family(name).describe(spec.params)
        public = ' '.join([words['title'], words['story'], *(d for d, _ in words['features'].values()), words['target']['description']])
        for number in ('weights', 'k', 'knee', 'half', 'prototypes', 'frequency', 'sigma', 'habits', 'costs', 'slope'):
            if number in spec.params: assert str(spec.params[number]) not in public or len(str(spec.params[number])) < 4
        assert not any(word in public for word in ('skewed', 'bell-shaped', 'correlation', 'carries no news', spec.hidden_rule_logic))

def test_copies_do_not_mark_the_rule():
    "A near-duplicate column may copy an irrelevant feature."
    copied = [(f['copy_of'], set(s.params['roles'].values())) for s in (draw_spec(3, i, modalities=['tabular']) for i in range(40))
              for f in s.params.get('features', ()) if f['copy_of']]
    inside = [name in roles for name, roles in copied]
    assert 0 < sum(inside) < len(inside)

# ---------------------------------------------------------------- mutations

@pytest.mark.parametrize('mutation, count', [
    ('missing_values', lambda rows: sum(v is None for c in rows['columns'].values() for v in c)),
    ('outliers', lambda rows: sum(float(np.max([v for v in c if v is not None])) > 3*float(np.median([v for v in c if v is not None]))
                                  for c in rows['columns'].values() if not isinstance(c[0], str)))])
def test_a_mutation_does_what_it_says(mutation, count):
    family = get_family('tabular.ratio')
    params = family.sample_params(np.random.default_rng(1), load_domains()['coffee'])
    clean = {**params, 'mutations': {}}
    dirty = {**params, 'mutations': {mutation: {'severity': 3, 'strength': .1}}}
    assert count(family.generate(400, dirty, 2, 'x')) > count(family.generate(400, clean, 2, 'x'))

# ---------------------------------------------------------------- errors name the field

@pytest.mark.parametrize('change, field', [
    ({'n_train': 12}, 'n_train'), ({'metric': 'vibes'}, 'metric'), ({'seed': -1}, 'seed'), ({'feature_mapping': {}}, 'feature_mapping'),
    ({'feature_mapping': {'a': {'description': 'x'}}}, 'feature_mapping.a.generation_logic'), ({'params': {'x': float('nan')}}, 'params'),
    ({'surprise': 1}, 'surprise'), ({'title': ''}, 'title')])
def test_parse_spec_names_the_field(change, field):
    good = draw_spec(1, 0).model_dump()
    with pytest.raises(SpecError, match=rf'task\.json: expected a task spec.*{field}'): parse_spec(good | change, where='task.json')

def test_target_must_not_be_a_feature():
    good = draw_spec(1, 0).model_dump()
    feature = next(iter(good['feature_mapping']))
    with pytest.raises(SpecError, match='target'): parse_spec(good | {'target': {'name': feature, 'description': 'x'}})

def test_families_are_checked():
    ratio = get_family('tabular.ratio')
    fields = {k: getattr(ratio, k) for k in Family.__dataclass_fields__}
    with pytest.raises(SpecError, match='metrics'): register_family(Family(**fields | {'name': 'bad', 'metrics': ()}))
    with pytest.raises(SpecError, match=r'tabular\.ratio'): get_family('bad')

@pytest.mark.parametrize('change, said', [
    ({'family': 'tabular.astrology'}, r'family: expected one of .*tabular\.ratio'), ({'metric': 'dice'}, 'metric: expected one of'),
    ({'modality': 'audio'}, 'modality: expected'), ({'params': {}}, 'params: .* can make no rows'),
    ({'params': {'asked': 'mask'}}, r'params\.asked')])
def test_a_spec_that_cannot_be_met_is_refused_before_anything_is_fitted(change, said):
    with pytest.raises(SpecError, match=said): calibrate(draw_spec(1, 0, modalities=['tabular']).model_copy(update=change))

@pytest.mark.parametrize('name', family_names())
def test_every_family_can_make_what_it_draws(name):
    check_spec(write_spec(get_family(name), load_domains()['coffee'], seed=4, index=0))

def test_load_task(tmp_path):
    spec = draw_spec(1, 2)
    with pytest.raises(SpecError, match=r'task\.json'): load_task(tmp_path)
    (tmp_path/'task.json').write_text('[]')
    with pytest.raises(SpecError, match='expected a JSON object'): load_task(tmp_path)
    (tmp_path/'task.json').write_text(json.dumps({'task_id': 't', 'spec': spec.model_dump() | {'n_train': 3}}))
    with pytest.raises(SpecError, match='n_train'): load_task(tmp_path)
    (tmp_path/'task.json').write_text(canonical_json({'task_id': 't', 'spec': spec.model_dump()}))
    task = load_task(tmp_path)
    assert (task.spec, task.metric, task.public_dir) == (spec, spec.metric, tmp_path/'public')

@pytest.mark.parametrize('change, said', [
    (lambda d: d['evaluation_specs'].update(direction='max' if d['evaluation_specs']['direction'] == 'min' else 'min'), 'evaluation_specs.direction'),
    (lambda d: d.update(feature_mapping={'foo': {'description': 'x', 'generation_logic': 'y'}}), 'feature_mapping'),
    (lambda d: d['target'].update(name='id'), 'target'),
    (lambda d: d['target'].update(name='a,b\n`'), 'target')], ids=('direction', 'columns', 'id', 'marks'))
def test_a_spec_that_contradicts_itself_names_its_field(change, said):
    data = draw_spec(3, 0, modalities=['tabular']).model_dump()
    change(data)
    with pytest.raises(SpecError, match=said): check_spec(parse_spec(data))

@pytest.mark.parametrize('modalities', [['video'], [], 'tabular'])
def test_wrong_modalities_leave_no_folder(modalities, tmp_path):
    with pytest.raises(SpecError, match='modalities'): build_corpus(tmp_path/'c', n=1, seed=0, workers=1, modalities=modalities)
    assert not (tmp_path/'c').exists()
