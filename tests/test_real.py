"Real data sets as tasks: cards, obfuscation, ladders, look-ups, medals and figures; only the sets of scikit-learn are needed"
import json, re
from pathlib import Path
import numpy as np
import polars as pl
import pytest
from sandsmith.bench.real import make_real_task, real_sizes, real_spec, split_rows
from sandsmith.bench.real_rates import bench_real, difficulty_of, find_real_task, medal_lines, medal_rates, medals_of, paper_rates
from sandsmith.bench.real_rates import play_real
from sandsmith.bench.real_sets import get_card, load_real, obfuscate_set, package_path, real_names
from sandsmith.core import SpecError
from sandsmith.look.comparisons import STEPS, share_table, step_sizes, win_table
from sandsmith.rl.play import parse_policy
from sandsmith.run.cli import main
from sandsmith.sand.grade import grade, load_thresholds
from sandsmith.sand.metrics import get_metric
from sandsmith.sand.players import ScriptedPolicy
from sandsmith.sand.spec import truth_names
from sandsmith.sand.verify import verify_task
from sandsmith.trace import Verdict

ROOT = Path(__file__).resolve().parent.parent
BUNDLED = real_names(package='scikit-learn')

def installed():
    def there(name):
        path = get_card(name)['path']
        try: return package_path(path if isinstance(path, str) else path[0], get_card(name)['package']).exists()
        except SpecError: return False
    return [name for name in real_names() if there(name)]

@pytest.fixture(scope='module')
def cache(tmp_path_factory):
    "A cache folder with wine as it is and obfuscated."
    place = tmp_path_factory.mktemp('cache')
    for blind in (False, True): make_real_task('wine', place/'real', is_obfuscated=blind)
    return place

@pytest.fixture(scope='module')
def tasks(cache): return [find_real_task('wine', cache/'real', is_obfuscated=blind) for blind in (False, True)]

# --- cards and rows

def test_every_card_is_complete():
    settings = (ROOT/'settings.ini').read_text(encoding='utf-8')
    assert len(real_names()) >= 20 and len(BUNDLED) >= 4
    for name in real_names():
        card = get_card(name)
        assert card['licence'] and card['story'].endswith('.') and all(card['columns'].values()), name
        assert re.search(rf"^    {card['package']}\b", settings, re.M), f"{card['package']} is in no list of settings.ini"
        assert get_metric(card['metric']).optimum in (0.0, 1.0)
        assert card['target']['name'] not in card['columns']

@pytest.mark.parametrize('name', installed())
def test_installed_sets_load(name):
    real = load_real(name)
    spec = real_spec(real)
    assert 50 <= spec.n_train <= 200 and spec.n_reward > spec.n_feedback > 10
    assert {len(cells) for cells in real.columns.values()} == {len(real.targets)} and list(real.columns) == list(real.notes)
    assert None not in real.targets and len(set(real.targets)) > 1

def test_small_sets_are_refused():
    with pytest.raises(SpecError, match='at least 100 rows'): real_sizes(88)
    assert sum(real_sizes(178)) == 178 and real_sizes(5000) == (200, 60, 200)

def test_splits_are_disjoint_and_fixed():
    spec = real_spec(load_real('iris'))
    train, hidden = split_rows(150, spec, 3)
    assert not set(train) & set(hidden) and len(train) == spec.n_train
    assert (split_rows(150, spec, 3)[0] == train).all() and (split_rows(150, spec, 4)[0] != train).any()

# --- obfuscation

@pytest.mark.parametrize('name', BUNDLED)
def test_nothing_of_the_words_or_numbers_is_left(name):
    real = load_real(name)
    blind = obfuscate_set(real)
    page = ' '.join([blind.title, blind.story, blind.domain, *blind.notes, *blind.notes.values(), *blind.target.values()]).lower()
    words = {real.target['name'], *(c for c in real.columns if len(c) > 3 and c != 'image')}
    assert not [w for w in words if re.search(rf'\b{re.escape(w.lower())}\b', page)]
    assert blind == obfuscate_set(real) and len(blind.targets) == len(real.targets)
    if isinstance(real.targets[0], str):
        pairs = set(zip(real.targets, blind.targets))
        assert len(pairs) == len(set(real.targets)) == len(set(blind.targets)) and not set(real.targets) & set(blind.targets)
    else: assert abs(np.corrcoef(real.targets, blind.targets)[0, 1]) > .999999
    numbers = {v for cells in real.columns.values() for v in cells if isinstance(v, float)}
    moved = [v for cells in blind.columns.values() for v in cells if isinstance(v, float)]
    assert sum(v in numbers for v in moved) <= .02*len(moved)
    assert not set(real.files.values()) & set(blind.files.values())

# --- tasks

def test_tasks_verify_and_the_reference_reaches_gold(tasks):
    for task in tasks: assert verify_task(task.dir) == []
    assert tasks[0].task_id != tasks[1].task_id and 'wine' not in json.dumps(sorted(p.name for p in tasks[1].public_dir.iterdir()))

def test_both_tasks_have_the_same_hidden_rows(tasks):
    real, blind = load_real('wine'), obfuscate_set(load_real('wine'))
    for task, rows in zip(tasks, (real, blind)):
        record = json.loads((task.dir/'task.json').read_text())
        _, hidden = split_rows(178, task.spec, record['calibration']['hidden_draw'])
        told = [line.split(',')[1] for line in (task.dir/'private'/'answer.csv').read_text().splitlines()[1:]]
        assert told == [rows.targets[i] for i in hidden] and truth_names(task.spec.target) == [rows.target['name']]

def test_a_look_up_is_seen_and_does_not_work_on_obfuscated_rows(tasks):
    "scikit-learn lies on the agent's disk: it reads the original rows there and looks each test row up."
    code = '''
import csv, sklearn
from pathlib import Path
lines = (Path(sklearn.__file__).parent/'datasets'/'data'/'wine_data.csv').read_text().split('\\n')[1:179]
known = {tuple(float(v) for v in line.split(',')[:-1]): int(line.split(',')[-1]) for line in lines}
ids, *rows = [list(row) for row in csv.reader(open('data/test.csv'))]
names = next(csv.reader(open('data/sample_submission.csv')))[1:]
order = names if set(names) == {'first', 'second', 'third'} else None
with open('submission.csv', 'w') as f:
    print('id', *names, sep=',', file=f)
    for row in rows:
        label = known.get(tuple(float(v) for v in row[1:]))
        chances = [1/3]*3 if label is None else [float(n == ('first', 'second', 'third')[label]) for n in names]
        print(row[0], *chances, sep=',', file=f)
'''
    cheat = ScriptedPolicy(name='scripted:look-up', code=code)
    plain, blind = (play_real(task, 'look-up', lambda task: cheat, episode=0, seed=0) for task in tasks)
    assert plain['perfect'] and plain['gold']
    assert blind['valid'] and not blind['perfect'] and not blind['any_medal']

# --- medals and rates

def test_medals_exclude_each_other_and_the_median_is_strict(tasks):
    t = load_thresholds(tasks[0].dir)
    tiers = ('median', 'bronze', 'silver', 'gold')
    for i, tier in enumerate(tiers):
        won = medals_of(tasks[0], Verdict(status='scored', score=t[tier], tiers=tiers[:i+1]))
        assert won['valid'] and [k for k in ('bronze', 'silver', 'gold') if won[k]] == ([tier] if i else [])
        assert won['above_median'] == won['any_medal'] == bool(i)
    assert set(medals_of(tasks[0], Verdict(status='unscored', reason='ours')).values()) == {None}
    assert difficulty_of(tasks[0]) == difficulty_of(tasks[1]) == 'low'

def test_rates_average_episodes_before_tasks_and_leave_our_faults_out():
    def row(task, episode, medal): return {'task_id': task, 'policy': 'p', 'episode': episode, 'difficulty': 'low',
        **dict.fromkeys(('valid', 'above_median', 'bronze', 'silver', 'gold', 'any_medal', 'perfect'), medal)}
    df = pl.DataFrame([row('a', 0, True), row('a', 1, True), row('a', 2, True), row('b', 0, False), row('c', 0, None)])
    got = medal_rates(df, seed=0).filter((pl.col('measure') == 'any_medal') & (pl.col('difficulty') == 'all')).row(0, named=True)
    assert got['mean'] == .5 and got['n'] == 2 and 0 <= got['low'] <= .5 <= got['high'] <= 1

def test_paper_rows_are_those_of_the_text():
    rows = {(r['model'], r['training']): r for r in paper_rates()}
    assert rows['Qwen3-30B-A3B', 'SandMLE']['valid'] == 1.0 and rows['Qwen3-30B-A3B', 'Seed-SFT']['any_medal'] == .227
    assert rows['Qwen3-8B', 'Base']['bronze'] is None

def test_the_bench_gives_the_same_twice(tasks, tmp_path):
    def once(workers): return bench_real({n: parse_policy(n) for n in ('scripted:constant', 'scripted:linear')}, ['wine'],
                                         out_dir=tmp_path, workers=workers)
    (tmp_path/'tasks').symlink_to(tasks[0].dir.parent)
    one, two = once(1), once(2)
    assert one['episodes'].equals(two['episodes']) and one['rates'].equals(two['rates'])
    assert pl.read_parquet(tmp_path/'rates.parquet').equals(one['rates'])
    assert len(medal_lines(one['rates'])) > len(paper_rates())

def test_command_line(cache, monkeypatch, capsys):
    monkeypatch.setenv('SANDSMITH_CACHE', str(cache))
    def run(*args):
        with pytest.raises(SystemExit) as e: main(['bench', 'real', *args])
        return e.value.code, capsys.readouterr()
    code, said = run('--data', 'wine', '--policy', 'scripted:constant', '--json')
    assert code == 0 and {r['measure'] for r in json.loads(said.out)['rates']} >= {'valid', 'any_medal'}
    code, said = run('--data', 'titanic')
    assert code == 2 and 'expected one of wine' in said.err and len(said.err.splitlines()) == 1
    code, said = run('--policy', 'scripted:wizard')
    assert code == 2 and 'expected scripted:NAME' in said.err

def test_verify_still_wants_the_reference(tasks, tmp_path):
    record = json.loads((tasks[0].dir/'task.json').read_text())
    assert 'private/insider.py' in record['files']
    out = tmp_path/'submission.csv'
    out.write_text((tasks[0].public_dir/'sample_submission.csv').read_text())
    assert 'bronze' not in grade(tasks[0].dir, out).tiers

# --- comparisons

def test_wins_and_their_complements():
    episodes = pl.DataFrame({'task_id': ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd'], 'policy': ['constant', 'linear']*4,
        'status': ['scored', 'scored', 'scored', 'scored', 'missing', 'scored', 'scored', 'unscored'], 'score': [.5, .6, 2., 1., None, .1, .3, None]})
    tasks = pl.DataFrame({'task_id': ['a', 'b', 'c', 'd'], 'direction': ['max', 'max', 'min', 'max']})
    rows = {(r['policy'], r['rival']): r for r in win_table(episodes, tasks, seed=0).to_dicts()}
    assert rows['linear', 'constant']['n'] == 3 and abs(rows['linear', 'constant']['share'] - 2/3) < 1e-9
    assert abs(rows['linear', 'constant']['share'] + rows['constant', 'linear']['share'] - 1) < 1e-9
    assert rows['linear', '']['low'] <= 2/3 <= rows['linear', '']['high']
    swapped = win_table(episodes, tasks.with_columns(direction=pl.lit('min')), seed=0)
    assert abs(swapped.filter((pl.col('policy') == 'linear') & (pl.col('rival') == 'constant'))['share'].item() - 2/3) < 1e-9

def test_steps_follow_the_direction():
    df = pl.DataFrame({'task_id': ['up', 'down'], 'modality': 'tabular', 'direction': ['max', 'min'], 'median': [.5, 9.], 'bronze': [.6, 8.],
                       'silver': [.55, 7.], 'gold': [1., 5.]})
    got = {(r['task_id'], r['step']): round(r['size'], 6) for r in step_sizes(df).to_dicts()}
    assert got['up', STEPS[1]] == -.1 and got['down', STEPS[0]] == .25 and got['down', STEPS[2]] == .5

def test_shares_sum_to_one():
    df = pl.DataFrame({'domain': ['Brewing', 'Haemodialysis'], 'modality': ['text', 'series'], 'task_type': ['ordinal', 'seq2seq']})
    got = share_table(df, seed=0)
    assert got.group_by('group').agg(pl.col('share').sum())['share'].to_list() == [1.0]*3
    assert got.filter(pl.col('label') == 'healthcare')['share'].item() == .5
