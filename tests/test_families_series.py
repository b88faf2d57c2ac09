"The later families: same bytes, no shortcut, terms that can be read back, more noise is no help, halves that need each other."
from functools import cache

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from sandsmith.core import derive_seed
from sandsmith.sand.calibrate import Calibration, calibrate
from sandsmith.sand.families import multimodal, notes, series
from sandsmith.sand.families.tabular import draw_units, read_units
from sandsmith.sand.metrics import get_metric
from sandsmith.sand.spec import TaskSpec, draw_spec, family_names, get_family, load_domains

SERIES, MULTIMODAL = family_names(modality='series'), family_names(modality='multimodal')
TABLES = ['tabular.groups', 'tabular.levels', 'tabular.parity', 'tabular.rules', 'tabular.sparse', 'tabular.wave']
NOTES = ['text.pairs', 'text.routes', 'text.urgency']
NAMES = [*SERIES, *TABLES, *NOTES, *MULTIMODAL]

@cache
def params_of(name: str, seed: int = 1, domain: str = 'apiary', is_clean: bool = True) -> dict:
    "Parameters of a family; clean = without mutations."
    params = get_family(name).sample_params(np.random.default_rng(seed), load_domains()[domain])
    return params | {'mutations': {}} if is_clean else params

def insider_score(name: str, params: dict, n_test: int = 500) -> float: # higher is better
    "Quality of the insider on 120 training rows."
    family = get_family(name)
    metric = get_metric(family.metrics[0])
    train, test = family.generate(120, params, 5, 'train'), family.generate(n_test, params, 6, 'test')
    told = family.insider(train['columns'], train['target'], test['columns'], params, {**train['files'], **test['files']}.get)
    return metric.fn(test['target'], told)*(-1 if metric.is_lower_better else 1)

def test_there_are_enough():
    assert len(SERIES) >= 5 and len(MULTIMODAL) >= 3
    assert set(NAMES) <= set(family_names())
    for name in (*SERIES, *MULTIMODAL): assert get_family(name).views and 8 <= len(set(get_family(name).pool)) <= 14

# ---------------------------------------------------------------- rows

@pytest.mark.parametrize('name', NAMES)
def test_same_seed_same_bytes_and_other_domains_other_words(name):
    make, params = get_family(name).generate, params_of(name, is_clean=False)
    assert make(30, params, 3, 'test') == make(30, params, 3, 'test') != make(30, params, 4, 'test')
    assert params == params_of.__wrapped__(name, is_clean=False)
    assert get_family(name).describe(params)['features'].keys() == make(30, params, 3, 'test')['columns'].keys()
    assert get_family(name).describe(params)['story'] != get_family(name).describe(params_of(name, 1, 'trams'))['story']

@pytest.mark.parametrize('name', SERIES)
def test_windows_can_be_read_back_through_dirt(name):
    params = params_of(name)
    raw = series.read_windows(get_family(name).generate(200, params, 3, 'x')['columns'], params)
    assert raw.shape == (200, params['length'])
    dirt = {'missing_values': .1, 'outliers': .01, 'short_history': .2}
    dirty = params | {'mutations': {k: {'severity': 3, 'strength': v} for k, v in dirt.items()}}
    columns = get_family(name).generate(200, dirty, 3, 'x')['columns']
    assert any(v is None for v in columns[f"{params['measure']}_t01"])
    read = series.read_windows(columns, dirty)
    assert np.isfinite(read).all() and np.abs(read).max() <= np.abs(raw).max()*1.2

def test_a_window_ends_before_what_is_asked():
    "The last values of a plan's window are not the target, and the target column is no feature."
    for name in SERIES:
        rows, params = get_family(name).generate(300, params_of(name), 3, 'x'), params_of(name)
        assert params['target']['name'] not in rows['columns']
        assert all(rows['target'] != column for column in rows['columns'].values())

def test_groups_of_training_and_test_rows_are_strangers():
    params = params_of('tabular.groups')
    train, test = (set(get_family('tabular.groups').generate(400, params, 3, split)['columns']['crew_code']) for split in ('train', 'test'))
    assert not train & test and len(train) == params['n_train_groups']

# ---------------------------------------------------------------- latent terms can be recovered from what is visible

def test_slots_and_loads_are_read_from_clean_notes():
    params, rng = params_of('text.pairs'), np.random.default_rng(0)
    slots = notes.draw_slots(200, params, rng)
    assert (notes.read_slots(notes.write_pair(slots[:, 0], params, rng), params) == slots[:, 0]).all()

def test_gauge_notes_are_read_whatever_the_typos():
    params = params_of('multimodal.gauge') | {'mutations': {'typos': {'severity': 3, 'strength': .05}}}
    texts, said = multimodal.write_gauge_notes(400, params, np.random.default_rng(0))
    assert (multimodal.read_gauge_notes(texts, params) == said).all()
    spoiled = multimodal.spoil_texts(texts, params, np.random.default_rng(1))
    assert (multimodal.read_gauge_notes(spoiled, params)[:, 0] == said[:, 0]).mean() > .97

def test_dials_are_read_within_a_few_degrees():
    params, rng = params_of('multimodal.dial'), np.random.default_rng(0)
    reading = rng.random(200)
    told = multimodal.read_dials(multimodal.draw_dials(reading, params, rng), params)
    assert np.abs(told - reading).max() < .1 and np.abs(told - reading).mean() < .02

def test_motif_and_plan_terms_tell_the_signal():
    params, rng = params_of('series.motif'), np.random.default_rng(0)
    windows, _, signal = series.draw_motif_window(500, params, rng)
    third = np.array(params['class_of'])[series.motif_terms(windows, {}, params).argmax(axis=1)]
    assert (third == signal.argmax(axis=1)).mean() > .8
    params = params_of('series.plan')
    windows, extra, signal = series.draw_plan_window(500, params, rng)
    assert np.corrcoef(series.plan_terms(windows, extra, params).sum(axis=1), signal)[0, 1] > .95

def test_unit_values_survive_for_the_rule_of_a_table():
    params = params_of('tabular.parity')
    columns = get_family('tabular.parity').generate(300, params, 3, 'x')['columns']
    units = draw_units(300, params, np.random.default_rng(3))
    assert all(np.abs(read_units(columns, params)[k] - units[k]).max() < .01 for k in params['roles'].values())

# ---------------------------------------------------------------- noise does not help

def with_noise(params: dict, factor: float) -> dict:
    "More chance in the target, and in the series and the pictures."
    louder = {k: v*factor for k, v in params.items() if k in ('noise', 'grain')}
    target = dict(params['target'])
    if 'steepness' in target: target['steepness'] /= factor
    return params | louder | {'target': target}

@pytest.mark.parametrize('name', [n for n in NAMES if n not in ('series.demand',)])
def test_more_noise_is_no_help(name):
    calm, loud = (insider_score(name, with_noise(params_of(name), f)) for f in (1, 5))
    assert calm > loud

def test_irregular_demand_is_harder():
    params = params_of('series.demand')
    assert insider_score('series.demand', params | {'slips': .1}) > insider_score('series.demand', params | {'slips': .9})

# ---------------------------------------------------------------- no shortcut by a single column, its gaps, or the position of a row

@cache
def accepted(name: str) -> tuple[TaskSpec, Calibration]:
    "The first candidate of a family with a ladder."
    modality = get_family(name).modality
    for i in range(12*len(family_names(modality=modality))):
        spec = draw_spec(5, i, modalities=[modality])
        if spec.family == name and (found := calibrate(spec)).is_accepted: return spec, found
    raise AssertionError(f'{name}: expected a candidate with a ladder')

def single_columns(columns: dict[str, list]) -> dict[str, np.ndarray]:
    "Each column alone, whether it is empty, and the position."
    found = {'position': np.arange(len(next(iter(columns.values()))))[:, None].astype(float)}
    for name, cells in columns.items():
        if isinstance(cells[0], str):
            levels = sorted(set(cells))
            if len(levels) < 60: found[name] = np.array([[float(v == level) for level in levels] for v in cells])
            else: found[name] = np.array([[len(v), v.count(' ')] for v in cells], float)
        else:
            found[name] = np.array([[-1e3 if v is None else v, v is None] for v in cells], float)
    return found

@pytest.mark.parametrize('name', NAMES)
def test_the_best_single_column_stays_below_silver(name):
    spec, ladder = accepted(name)
    family, metric = get_family(name), get_metric(spec.metric)
    rows = [family.generate(n, spec.params, derive_seed(1, split), split) for n, split in ((spec.n_train, 'train'), (800, 'test'))]
    columns = {k: [*rows[0]['columns'][k], *rows[1]['columns'][k]] for k in rows[0]['columns']}
    y, truth, is_number = rows[0]['target'], rows[1]['target'], spec.task_type in ('regression', 'ordinal')
    best, sign = -np.inf, -1 if metric.is_lower_better else 1
    for X in single_columns(columns).values():
        model = (GradientBoostingRegressor if is_number else GradientBoostingClassifier)(n_estimators=15, max_depth=2, random_state=0)
        model.fit(X[:spec.n_train], y)
        if metric.kind == 'probability': guess = model.predict_proba(X[spec.n_train:])[:, 1]
        else: guess = model.predict(X[spec.n_train:])
        if spec.task_type == 'ordinal': guess = np.rint(guess).astype(int)
        best = max(best, sign*metric.fn(truth, guess))
    assert best < sign*ladder.population['silver']

# ---------------------------------------------------------------- both halves

@pytest.mark.parametrize('name', MULTIMODAL)
def test_each_half_alone_is_clearly_worse_than_both(name):
    spec, ladder = accepted(name)
    sign = -1 if get_metric(spec.metric).is_lower_better else 1
    quality = {row['baseline']: sign*row['population_score'] for row in ladder.pool}
    halves = max(q for k, q in quality.items() if k.split()[0] in ('table', 'words', 'picture'))
    both = max(q for k, q in quality.items() if k.split()[0] in ('both', 'crossed'))
    span = sign*(ladder.population['gold'] - ladder.population['median'])
    assert both - halves > .08*span
