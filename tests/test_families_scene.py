"Sequences of blurred frames: no single number grades them, dirt and blur hide the damage, black frames say nothing."
import io

import numpy as np
import pytest
from PIL import Image
from sklearn.linear_model import Ridge

from sandsmith.sand.families.scene import blur_lines, draw_road, road_terms
from sandsmith.sand.metrics import get_metric
from sandsmith.sand.spec import get_family, load_domains

ROAD = get_family('image.road')
PARAMS = ROAD.sample_params(np.random.default_rng(7), load_domains()['trams']) | {'mutations': {}}

def part(rows: dict, keep: slice) -> dict: return {k: v[keep] for k, v in rows['columns'].items()}

def score_insider(params: dict, n_train: int = 150) -> float:
    rows = ROAD.generate(700, params, 5, 'x')
    told = ROAD.insider(part(rows, slice(n_train)), rows['target'][:n_train], part(rows, slice(n_train, None)), params,
                        rows['files'].__getitem__)
    return get_metric('qwk').fn(rows['target'][n_train:], told)

def test_blur_grows_in_proportion_to_the_frame():
    lines = blur_lines({'blur_px': 1.0})
    assert lines.shape == (5, 17) and (lines[:, 0] == 1).all() and (np.diff(lines[:, 4]) < 0).all()
    for i in range(5): assert np.allclose(lines[i], np.sinc((i + 1)*np.fft.rfftfreq(32)))

@pytest.mark.parametrize('change', [{'blur_px': 3.0}, {'mutations': {'sensor_noise': {'severity': 3, 'strength': .4}}},
                                    {'mutations': {'label_noise': {'severity': 3, 'strength': .6}}}])
def test_blur_and_dirt_hide_the_damage(change):
    assert score_insider(PARAMS) > score_insider({**PARAMS, **change}) + .05

def test_more_frames_tell_more():
    pixels, _, damage = draw_road(1500, PARAMS, np.random.default_rng(3))
    def fit(k):
        terms = road_terms(pixels, np.full(1500, k), PARAMS)
        return np.corrcoef(Ridge().fit(terms[:700], damage[:700]).predict(terms[700:]), damage[700:])[0, 1]
    assert fit(4) > fit(1) + .03

def test_frames_not_taken_are_black_and_their_number_says_nothing():
    rows = ROAD.generate(1500, PARAMS, 21, 'test')
    pictures = np.array([np.asarray(Image.open(io.BytesIO(data))) for data in rows['files'].values()])
    count = np.array(rows['columns']['n_frames'])
    assert set(count) == {1, 2, 3, 4, 5} and abs(np.corrcoef(count, rows['target'])[0, 1]) < .1
    for k in range(1, 6): assert (pictures[count == k, 6*k:] == 0).all() and (pictures[count == k, :6*k] > 0).mean() > .99
    assert np.corrcoef(pictures[:, :6].mean(axis=(1, 2)), rows['target'])[0, 1]**2 < .1

def test_no_single_number_of_a_view_grades():
    rows = ROAD.generate(1200, PARAMS, 21, 'test')
    views, y = ROAD.views(part(rows, slice(200)), part(rows, slice(200, None)), rows['files'].__getitem__), np.array(rows['target'], float)
    assert {name.split()[0] for name in ROAD.pool} == set(views)
    best = max(abs(np.corrcoef(column, y[200:])[0, 1]) for _, Z in views.values() for column in Z.T if column.std() > 0)
    told = ROAD.insider(part(rows, slice(200)), rows['target'][:200], part(rows, slice(200, None)), PARAMS, rows['files'].__getitem__)
    assert best < .75 and np.corrcoef(told, y[200:])[0, 1] > best + .1
