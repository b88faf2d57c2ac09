"Masks and boxes in pictures: the whole of a thing decides, dirt hides it, a task is played and verified from end to end."
import numpy as np
import pytest
from scipy import ndimage

from sandsmith.core import Limits, write_atomic
from sandsmith.sand.author import write_task
from sandsmith.sand.calibrate import calibrate
from sandsmith.sand.families.image import read_pictures
from sandsmith.sand.families.markers import draw_bumps, draw_pairs, find_peaks, label_peaks, write_boxes
from sandsmith.sand.families.masks import best_cut, draw_cells, draw_walls, even_light, find_lakes, smooth
from sandsmith.sand.form import parse_cell, read_runs
from sandsmith.sand.grade import grade
from sandsmith.sand.metrics import get_metric
from sandsmith.sand.players import player_code
from sandsmith.sand.spec import draw_spec, family_names, get_family, load_domains, mutations_by, write_spec
from sandsmith.sand.strategist import carriers, load_seeds, mix_shares, mutation_menu, plan_task
from sandsmith.sand.verify import verify_task
from sandsmith.sandbox import run

KINDS = {'segmentation': 'mask', 'detection': 'boxes'}
NAMES = [name for name in family_names(modality='image') if get_family(name).task_type in KINDS]

def params_of(name: str, seed: int = 4) -> dict:
    return get_family(name).sample_params(np.random.default_rng(seed), load_domains()['trams'])

def score_insider(name: str, params: dict, n_train: int = 60, n: int = 260) -> float:
    family = get_family(name)
    rows = family.generate(n, params, 5, 'x')
    train, test = ({'image': rows['columns']['image'][part]} for part in (slice(n_train), slice(n_train, None)))
    told = family.insider(train, rows['target'][:n_train], test, params, rows['files'].__getitem__)
    return get_metric(family.metrics[0]).fn(rows['target'][n_train:], told)

def test_two_families_of_each_kind():
    kinds = [get_family(name).task_type for name in NAMES]
    assert {kind: kinds.count(kind) for kind in KINDS} == {'segmentation': 2, 'detection': 2}
    assert {m for name in NAMES for m in get_family(name).metrics} >= {'dice', 'mask_iou', 'dice_hausdorff', 'map_50', 'map_50_95', 'f2_50_95'}

@pytest.mark.parametrize('name', NAMES)
def test_cells_are_well_formed_and_small(name):
    family, params = get_family(name), params_of(name)
    rows = family.generate(460, params, 3, 'train')
    form = {'kind': KINDS[family.task_type], 'size': [32, 32], 'classes': None}
    assert {parse_cell(cell, form)[0] for cell in rows['target']} == {'ok'}
    assert sum(map(len, rows['files'].values())) < 5e6 and len(set(rows['target'])) > 300
    told = family.insider(rows['columns'], rows['target'], rows['columns'], params, rows['files'].__getitem__)
    assert {parse_cell(cell, form)[0] for cell in told} == {'ok'}

# ---------------------------------------------------------------- what decides

@pytest.mark.parametrize('name, change', [('image.cells', {'way_deg': 180.}), ('image.pairs', {'near': 2.4})])
def test_a_wrong_rule_misses(name, change):
    params = params_of(name) | {'mutations': {}}
    other = {k: params[k] + v for k, v in change.items()}
    family, rows = get_family(name), get_family(name).generate(200, params, 5, 'x')
    train, test = ({'image': rows['columns']['image'][part]} for part in (slice(60), slice(60, None)))
    right, wrong = (get_metric(family.metrics[0]).fn(rows['target'][60:], family.insider(train, rows['target'][:60], test, p, rows['files'].__getitem__))
                    for p in (params, params | other))
    assert right > wrong + .08

def test_meant_and_other_things_look_alike():
    "The mean brightness and size of cells, rings and spots say nothing."
    for draw, name in ((draw_cells, 'image.cells'), (draw_walls, 'image.walls')):
        pixels, mask, things = draw(900, params_of(name), np.random.default_rng(2))
        means = [np.mean(pixels[part]) for part in (mask, things & ~mask)]
        assert (mask <= things).all() and abs(means[0] - means[1]) < .03, name
    for draw, name in ((draw_bumps, 'image.bumps'), (draw_pairs, 'image.pairs')):
        pixels, (row, y, x, half, kind) = draw(900, params_of(name), np.random.default_rng(2))
        level = smooth(pixels, 2)[row, y.astype(int), x.astype(int)]
        is_meant = kind if name == 'image.bumps' else kind < 2
        assert abs(np.corrcoef(half, is_meant)[0, 1]) < .06 and abs(np.corrcoef(level, is_meant)[0, 1]) < .15, name

def test_walls_hold_water_as_scipy_says():
    is_wall = np.random.default_rng(0).random((12, 32, 32)) < .5
    for wall, lake in zip(is_wall, find_lakes(is_wall)):
        assert (ndimage.binary_fill_holes(wall) == (wall | lake)).all()
    params = params_of('image.walls') | {'grain': 0., 'patches': 0., 'fill': 1.}
    pixels, mask, rings = draw_walls(300, params, np.random.default_rng(1))
    lakes = find_lakes(smooth(pixels, .5) - pixels.min(axis=(1, 2), keepdims=True) > .05)
    hits = [lakes[mask].mean(), lakes[rings & ~mask].mean()]
    assert hits[0] > .2 and hits[1] < .02

@pytest.mark.parametrize('name', NAMES)
def test_more_dirt_hides_more(name):
    menu, params = mutation_menu(get_family(name)), params_of(name)
    scores = [score_insider(name, params | {'mutations': {m: {'severity': s, 'strength': menu[m][s - 1]*2} for m in menu} if s else {}})
              for s in (0, 3)]
    assert scores[0] > scores[1] + .05
    for severity in (1, 2, 3):
        wanted = dict.fromkeys(sorted(menu)[:3], severity)
        with mutations_by(lambda offered, wanted=wanted: wanted): spec = write_spec(get_family(name), load_domains()['dairy'], seed=1, index=0)
        assert {m['severity'] for m in spec.params['mutations'].values()} == {severity}

# ---------------------------------------------------------------- parts

def test_filters_equal_scipys():
    pictures = np.random.default_rng(1).random((4, 32, 32))
    for sigma, dy, dx in ((.8, 0, 0), (2, 1, 0), (1.5, 1, 1), (7, 0, 2)):
        assert np.allclose(smooth(pictures, sigma, dy, dx), [ndimage.gaussian_filter(p, sigma, order=(dy, dx)) for p in pictures])
    assert np.isfinite(even_light(np.zeros((1, 32, 32)))).all()

def test_cut_and_boxes_of_nothing():
    flat = np.random.default_rng(0).random((3, 32, 32))
    assert len(best_cut(flat, ['', '', ''], flat)) == 3
    assert write_boxes(2, *(np.zeros(0, int), [], *(np.zeros(0),)*4)) == ['', '']
    assert label_peaks(['', 'A 1 2 2 8 8'], np.array([0, 1, 1]), np.array([4, 4, 30]), np.array([4, 4, 30])).tolist() == ['', 'A', '']
    assert [v.tolist() for v in find_peaks(np.eye(32)[None]*np.arange(32), 30.5)] == [[0], [31], [31]]

@pytest.mark.parametrize('name', NAMES)
def test_baselines_survive_masks_and_boxes_of_nothing(name):
    family, params = get_family(name), params_of(name)
    rows = family.generate(30, params, 5, 'x')
    for solve in family.baselines.values():
        told = solve(rows['columns'], ['']*30, rows['columns'], params, rows['files'].__getitem__)
        assert len(told) == 30

# ---------------------------------------------------------------- from the strategist to a verdict

def test_seeds_ask_for_them():
    cards = {c.id: carriers(c.dna) for c in load_seeds().values() if c.dna.modality == 'image' and c.dna.task_type in KINDS}
    assert len(cards) >= 8 and all(set(names) <= set(NAMES) and names for names in cards.values())
    assert mix_shares()['image', 'other'] > .1
    drawn = [plan_task(3, i, profile='paper').spec.task_type for i in range(60)]
    assert min(drawn.count(kind) for kind in KINDS) >= 2
    assert {draw_spec(2, i, modalities=['image']).family for i in range(8)} >= set(NAMES)

@pytest.mark.parametrize('name', NAMES)
def test_a_task_from_spec_to_players(name, tmp_path):
    specs = (write_spec(get_family(name), load_domains()['coffee'], seed=8, index=i, n_train=60) for i in range(6))
    spec, calibration = next((s, c) for s in specs if (c := calibrate(s)).is_accepted)
    task = write_task(spec, calibration, tmp_path)
    assert verify_task(task.dir) == []
    assert sum(p.stat().st_size for p in task.dir.rglob('*') if p.is_file()) < 5e6
    best = max(b['population_score'] for b in calibration.pool)
    assert calibration.population['gold'] > best and calibration.insider_score >= calibration.thresholds['gold']
    verdicts = {}
    for player in ('constant', 'linear', 'insider'):
        played = run(player_code(player, task), files={'data': task.public_dir}, limits=Limits(timeout_s=60), collect=['submission.csv'])
        assert played.status == 'ok', played.stderr
        verdicts[player] = grade(task.dir, write_atomic(tmp_path/f'{player}.csv', played.files['submission.csv']))
    assert verdicts['constant'].status == 'scored' and 'gold' in verdicts['insider'].tiers
    assert verdicts['constant'].score < verdicts['linear'].score < verdicts['insider'].score

def test_pictures_and_masks_lie_the_same_way():
    "A mask read from runs covers the bright walls, not their transpose."
    params = params_of('image.walls') | {'mutations': {}}
    rows = get_family('image.walls').generate(120, params, 5, 'x')
    bright, masks = even_light(read_pictures(rows['columns'], rows['files'].__getitem__)), np.array([read_runs(t, (32, 32)) for t in rows['target']])
    there, turned = (np.mean(bright[m]) for m in (masks, masks.transpose(0, 2, 1)))
    assert there > turned + .05
