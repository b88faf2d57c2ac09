"""Exports, and what the graders and agents of others make of them.

The peers are asked where they are given: MLE_BENCH_CHECKOUT, MLE_DOJO_CHECKOUT and SANDMLE_CHECKOUT name local checkouts, PEERS_PYTHON an
interpreter with their requirements and aideml (`make test-peers` makes one).
"""
import json, os, re, subprocess, sys, threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml

from sandsmith.bench.peers import compare_peers, known_difference, link_competitions, mle_bench_marks, our_marks
from sandsmith.core import RunError, SpecError
from sandsmith.sand.author import write_task
from sandsmith.sand.calibrate import calibrate
from sandsmith.sand.checkout import import_checkout, read_metric
from sandsmith.sand.export import export_tasks, ladder_board, score_frames
from sandsmith.sand.form import write_runs
from sandsmith.sand.grade import csv_text, grade, load_answers
from sandsmith.sand.spec import get_family, load_domains, load_task, write_spec
from sandsmith.sand.verify import probe_submissions
from sandsmith.run import cli
from sandsmith.stats import human_rank

PYTHON = os.environ.get('PEERS_PYTHON', sys.executable)
KINDS = [('tabular.dose', 'rmse'), ('tabular.regime', 'log_loss'), ('tabular.rules', 'accuracy'), ('tabular.twin', 'mcrmse'),
         ('ranking.next', 'map_at_5'), ('sequence.remark', 'word_jaccard')]


def checkout(name):
    path = os.environ.get(name)
    if not path: pytest.skip(f'no checkout of this peer: set {name} to one')
    return Path(path).resolve()


def make_task(family, metric, out):
    "The first accepted task of a family."
    domain = load_domains()[sorted(load_domains())[0]]
    for i in range(30):
        spec = write_spec(get_family(family), domain, seed=5, index=i, metric=metric, n_train=120)
        if (found := calibrate(spec)).is_accepted: return write_task(spec, found, out)


@pytest.fixture(scope='session')
def task(tmp_path_factory): return make_task(*KINDS[0], tmp_path_factory.mktemp('one'))


@pytest.fixture(scope='session')
def tasks(tmp_path_factory, task):
    "One task a kind of submission; only where a peer is given."
    return [task, *(make_task(*kind, tmp_path_factory.mktemp('more')) for kind in KINDS[1:])]


@pytest.fixture(scope='session')
def mask_task(task, tmp_path_factory):
    "A task whose answers are masks, some of them empty: no family has these yet."
    folder = tmp_path_factory.mktemp('mask')/'masks'
    rng, n = np.random.default_rng(0), 40
    masks = [write_runs(rng.random((4, 6)) < p) for p in rng.choice([0, .3, .6], n)]
    form = {'id': 'id', 'kind': 'mask', 'columns': ['pixels'], 'truth': ['pixels'], 'classes': None, 'group': None, 'size': [4, 6]}
    data = json.loads((task.dir/'task.json').read_text())
    data['spec'] |= {'metric': 'dice', 'evaluation_specs': {**data['spec']['evaluation_specs'], 'metric': 'dice', 'direction': 'max'}}
    data |= {'task_id': 'masks', 'metric': 'dice', 'direction': 'max', 'submission': form}
    thresholds = {'median_threshold': .2, 'bronze_threshold': .4, 'silver_threshold': .6, 'gold_threshold': .8}
    files = {'task.json': json.dumps(data), 'public/description.md': '# Masks\n', 'public/test.csv': csv_text({'id': range(n)}),
             'public/sample_submission.csv': csv_text({'id': range(n), 'pixels': ['1 5']*n}),
             'private/answer.csv': csv_text({'id': range(n), 'pixels': masks, 'part': ['feedback', 'reward']*(n//2)}),
             'private/threshold.json': json.dumps(thresholds), 'private/evaluator.py': '', 'private/generate_task_env.py': ''}
    for name, text in files.items():
        (folder/name).parent.mkdir(parents=True, exist_ok=True)
        (folder/name).write_text(text)
    return load_task(folder)


# What is exported

@pytest.mark.parametrize('to', ['mle-bench', 'mle-dojo', 'release'])
def test_agents_see_the_public_files_and_no_answer(task, tmp_path, to):
    exported = export_tasks([task], tmp_path, to=to)
    public = exported.public_dir(task.task_id)
    files = {p.relative_to(public).as_posix(): p.read_bytes() for p in public.rglob('*') if p.is_file()}
    own = {p.relative_to(task.public_dir).as_posix(): p.read_bytes() for p in task.public_dir.rglob('*') if p.is_file()}
    if to == 'mle-dojo': own['description.txt'] = own.pop('description.md')
    if to == 'release': assert b'hidden' in files.pop('evaluator.py')
    assert files == own
    answers = load_answers(task.dir)
    secret = [(task.dir/'private'/name).read_bytes() for name in ('answer.csv', 'threshold.json', 'insider.py', 'generate_task_env.py')]
    package = [p for p in tmp_path.rglob('*') if p.is_file() and 'competitions' in p.parts]
    for path in [*package, *(public/name for name in files)]:
        data = path.read_bytes()
        assert not any(text in data for text in secret), path
        assert str(task.spec.seed).encode() not in data and b',reward\n' not in data, path
        if path.suffix == '.py': assert not any(str(value) in data.decode() for value in answers.thresholds.values()), path


def test_an_export_is_the_same_twice_and_keeps_what_is_there(task, tmp_path):
    (tmp_path/'a'/'data').mkdir(parents=True)
    (tmp_path/'a'/'data'/'mine.txt').write_text('mine')
    for name in ('a', 'b', 'a'): export_tasks([task], tmp_path/name, to='mle-bench')
    a, b = ({p.relative_to(tmp_path/n).as_posix(): p.read_bytes() for p in (tmp_path/n).rglob('*') if p.is_file()} for n in 'ab')
    assert a.pop('data/mine.txt') == b'mine' and a == b


def test_links_in_public_are_not_followed(task, tmp_path):
    import shutil
    shutil.copytree(task.dir, tmp_path/'task')
    (tmp_path/'task'/'public'/'more.csv').symlink_to(tmp_path/'task'/'private'/'answer.csv')
    exported = export_tasks([load_task(tmp_path/'task')], tmp_path/'out', to='release')
    assert not (exported.public_dir(task.task_id)/'more.csv').exists()


@pytest.mark.parametrize('seed', range(5))
def test_the_board_gives_the_thresholds_back(seed):
    "By MLE-bench's ranks of eleven teams, in either direction."
    rng = np.random.default_rng(seed)
    values = np.unique((rng.normal(size=9)*10.0**rng.integers(-3, 4)).round(5))[:4].tolist()
    for rungs in (values, values[::-1]):
        board = [score for _, score in ladder_board(dict(zip(('median', 'bronze', 'silver', 'gold'), rungs)))]
        assert [board[max(1, int(len(board)*share)) - 1] for share in (.1, .2, .4)] == rungs[:0:-1]
        assert float(np.median(board)) == rungs[0] and (board[0] < board[-1]) == (rungs[3] < rungs[0])


def test_the_command(task, tmp_path, capsys):
    def shell(*args):
        with pytest.raises(SystemExit) as stop: cli.main([str(a) for a in args])
        return stop.value.code, capsys.readouterr()
    code, said = shell('sand', 'export', task.dir, '--to', 'release', '--out', tmp_path/'out', '--json')
    assert code == 0 and Path(json.loads(said.out)['public'][task.task_id], 'train.csv').is_file()
    assert json.loads((tmp_path/'out'/'data'/'ok_competitions_sanity.json').read_text()) == [task.task_id]
    code, said = shell('sand', 'export', task.dir, '--to', 'mle-bench', '--out', tmp_path/'bench')
    assert code == 0 and '1 exported' in said.out and 'mlebench grade' in said.out
    for args, wrong in ((('--to', 'kaggle', '--out', tmp_path/'x'), 'kaggle'), (('--to', 'release', '--out', ''), 'empty')):
        code, said = shell('sand', 'export', task.dir, *args)
        assert code == 2 and wrong in said.err and said.err.count('\n') == 1
    code, said = shell('sand', 'export', tmp_path, '--to', 'release', '--out', tmp_path/'x')
    assert code == 2 and 'corpus.json' in said.err
    code, said = shell('bench', 'peers', task.dir)
    assert code == 2 and '--mle-bench' in said.err


def test_spellings_survive_pandas_but_for_leading_zeros(task, tmp_path):
    "The exported rules see what pandas makes of a file, ours the file."
    pd, answers = pytest.importorskip('pandas'), load_answers(task.dir)
    truth = pd.read_csv(task.dir/'private'/'answer.csv')
    header, first, *rest = (task.public_dir/'sample_submission.csv').read_text().splitlines()
    same = {'crlf': '\r\n'.join([header, first, *rest]), 'bom': '\n'.join(['\ufeff' + header, first, *rest]),
            'blank': '\n\n'.join([header, first, *rest]), 'spaces': '\n'.join([header, *(row.replace(',', ' , ') for row in (first, *rest))]),
            'swapped': '\n'.join(','.join(row.split(',')[::-1]) for row in (header, first, *rest)),
            'trailing': '\n'.join(row + ',' for row in (header, first, *rest)), 'numbered': '\n'.join([',' + header, *(f'0,{row}' for row in (first, *rest))]),
            **{cell: '\n'.join([header, f'{first.split(",")[0]},{cell}', *rest]) for cell in
               ('', 'NA', 'inf', '1e400', '1_0', '0x10', 'True', '1e0', '+1', '-0.0', '1e15', '\u0661', '"a,b"')}}
    zeros = '\n'.join([header, *(f'0{row}' for row in (first, *rest))])
    for name, text in {**same, 'zeros': zeros}.items():
        path = tmp_path/'s.csv'
        path.write_text(text, newline='', encoding='utf-8')
        reason, _, score = score_frames(pd.read_csv(path), truth, answers.form, answers.metric.fn)
        ours, theirs = grade(task.dir, path).score, score if reason == 'ok' else None
        assert (ours, theirs is None) == (None, False) if name == 'zeros' else ours == theirs, name


# HumanRank

def test_human_rank_is_as_good_as_its_place():
    rng = np.random.default_rng(3)
    for is_lower_better in (True, False):
        board = rng.normal(size=50).round(1).tolist()
        scores = sorted({*board, -99., 99.}, reverse=is_lower_better)
        for formula, top in (('paper', .98), ('dojo', 1.)):
            ranks = [human_rank(s, [board], is_lower_better=is_lower_better, formula=formula) for s in scores]
            assert ranks[0] == 0 and ranks[-1] == top and all(a <= b for a, b in pairwise(ranks))
    assert human_rank(2., [[3, 2, 2, 1], [9.]], is_lower_better=False) == pytest.approx((.5 + 0)/2)
    for bad in ([], [[]], [[np.nan]]):
        with pytest.raises(SpecError, match='boards'): human_rank(1., bad, is_lower_better=False)


def test_human_rank_is_that_of_mle_dojo(tmp_path):
    dojo, rng = checkout('MLE_DOJO_CHECKOUT'), np.random.default_rng(4)
    cases = [{'score': round(float(rng.normal()), 1), 'higher': bool(rng.integers(2)), 'boards': [rng.normal(size=n).round(1).tolist() for n in (7, 30)]}
             for _ in range(40)]
    (tmp_path/'cases.json').write_text(json.dumps(cases))
    code = '''
import contextlib, json, sys, tempfile
from pathlib import Path
from mledojo.gym.interface import CodeExecutionInterface
found = []
with contextlib.redirect_stdout(sys.stderr), tempfile.TemporaryDirectory() as d:
    for case in json.loads(Path('cases.json').read_text()):
        for name, board in zip(('public', 'private'), case['boards']):
            Path(d, f'{name}_leaderboard.csv').write_text('team,score\\n' + ''.join(f'x,{s}\\n' for s in board))
        found.append(CodeExecutionInterface()._calculate_leaderboard_position(case['score'], Path(d), case['higher'])['avg_score'])
print(json.dumps(found))
'''
    done = subprocess.run([PYTHON, '-c', code], cwd=tmp_path, env={**os.environ, 'PYTHONPATH': str(dojo)}, capture_output=True, text=True, check=True)
    ours = [human_rank(c['score'], c['boards'], is_lower_better=not c['higher'], formula='dojo') for c in cases]
    assert ours == pytest.approx(json.loads(done.stdout), abs=1e-12)


# Graders

@pytest.mark.parametrize('peer,name', [('mle-bench', 'MLE_BENCH_CHECKOUT'), ('mle-dojo', 'MLE_DOJO_CHECKOUT'), ('release', 'SANDMLE_CHECKOUT')])
def test_graders_agree(peer, name, request):
    where = checkout(name)
    tasks = request.getfixturevalue('tasks')
    rows = compare_peers(tasks, {peer: where}, python=PYTHON)
    assert [row for row in rows if not row.is_equal and not row.why] == []
    assert len({row.metric for row in rows}) == len(KINDS) and min(Counter(row.task_id for row in rows).values()) == 12
    tiers = Counter(row.ours.tier for row in rows)
    assert tiers['gold'] >= 3*len(KINDS) and tiers[''] == 5*len(KINDS) and tiers['median'] + tiers['below'] > 0
    # the one kind of difference on these tasks: mle-bench calls only what is better than the median above it
    assert {(row.peer, row.case, row.why) for row in rows if row.why} <= {('mle-bench', 'constant', 'the median counts strictly')}


def test_mle_bench_reads_nan_as_an_empty_mask(mask_task, tmp_path):
    bench = checkout('MLE_BENCH_CHECKOUT')
    submissions = {('masks', name): text for name, text in probe_submissions(mask_task, load_answers(mask_task.dir)).items() if name != 'unreadable'}
    ours = our_marks([mask_task], submissions)
    theirs = mle_bench_marks(bench, export_tasks([mask_task], tmp_path, to='mle-bench'), submissions, python=PYTHON)
    differ = {case: known_difference(mask_task, 'mle-bench', case[1], ours[case], theirs[case]) for case in ours if ours[case].score != theirs[case].score}
    assert differ == {('masks', 'not_finite'): 'pandas reads nan as an empty cell'}


def test_mle_bench_stops_at_a_file_that_is_no_table(task, tmp_path):
    "Its reader is not guarded, so no submission of the run gets a report; ours marks that one as unreadable."
    bench, exported = checkout('MLE_BENCH_CHECKOUT'), export_tasks([task], tmp_path/'out', to='mle-bench')
    text = probe_submissions(task, load_answers(task.dir))['unreadable']
    (tmp_path/'x.csv').write_text(text)
    assert grade(task.dir, tmp_path/'x.csv').reason == 'unreadable'
    with pytest.raises(RunError, match='ParserError'): mle_bench_marks(bench, exported, {(task.task_id, 'x'): text}, python=PYTHON)


def test_mle_bench_prepares_the_same_files(task, tmp_path):
    bench, exported = checkout('MLE_BENCH_CHECKOUT'), export_tasks([task], tmp_path/'out', to='mle-bench')
    link_competitions(bench, exported, tmp_path/'at')
    code = f'''
import json
from pathlib import Path
from mlebench.data import generate_checksums, is_valid_prepare_fn
from mlebench.registry import registry
competition = registry.set_data_dir(Path({str(tmp_path/'out'/'data')!r})).get_competition({task.task_id!r})
assert is_valid_prepare_fn(competition.prepare_fn)
public, private = Path('public'), Path('private')
for folder in (public, private): folder.mkdir()
competition.prepare_fn(raw=competition.raw_dir, public=public, private=private)
print(json.dumps({{'public': generate_checksums(public), 'private': generate_checksums(private)}}))
'''
    env = {**os.environ, 'PYTHONPATH': str(tmp_path/'at'), 'PYTHONDONTWRITEBYTECODE': '1'}
    done = subprocess.run([PYTHON, '-c', code], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    home = tmp_path/'out'/'mlebench'/'competitions'/task.task_id
    assert json.loads(done.stdout) == yaml.safe_load((home/'checksums.yaml').read_text())
    for half in ('public', 'private'):
        made, ours = tmp_path/half, tmp_path/'out'/'data'/task.task_id/'prepared'/half
        assert {p.name: p.read_bytes() for p in made.iterdir()} == {p.name: p.read_bytes() for p in ours.iterdir()}


def test_seeds_of_the_real_checkout():
    "Two of its configurations name another metric than their code computes."
    bench = checkout('MLE_BENCH_CHECKOUT')
    found = import_checkout(bench)
    assert len(found.cards) == 82 and found.problems == {}
    metrics = {card.id: (card.dna.metric, card.dna.direction) for card in found.cards}
    for name, told, computed in (('ventilator-pressure-prediction', 'dice-hausdorff-combo', 'mae'), ('stanford-covid-vaccine', 'multi-class-log-loss', 'mcrmse')):
        folder = bench/'mlebench'/'competitions'/name
        assert yaml.safe_load((folder/'config.yaml').read_text())['grader']['name'] == told
        assert read_metric(folder) == metrics[name] == (computed, 'min')


# AIDE

SOLUTION = '''
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import cross_val_score
train, test, sample = (pd.read_csv(f'input/{name}.csv') for name in ('train', 'test', 'sample_submission'))
key, target = sample.columns
X = pd.get_dummies(pd.concat([train, test])[[c for c in test if c != key]]).fillna(-1)
y = train[TARGET]
is_label = y.nunique() < 12
model = (RandomForestClassifier if is_label else RandomForestRegressor)(TREES, random_state=0)
print('validation:', float(cross_val_score(model, X[:len(train)], y, cv=3).mean()))
model.fit(X[:len(train)], y)
rest, is_chance = X[len(train):], sample[target].dtype == float and is_label
predictions = model.predict_proba(rest)[:, 1] if is_chance else model.predict(rest)
pd.DataFrame({key: test[key], target: predictions}).to_csv('working/submission.csv', index=False)
'''
BUGGY, MENDED, BETTER = (SOLUTION.replace('TARGET', name).replace('TREES', n) for name, n in (("'goal'", '5'), ('target', '5'), ('target', '60')))


def act(asked):
    "The scripted model: a draft with a bug, its repair, an improvement; and reviews of what was printed."
    prompt = asked['messages'][0]['content']
    if 'tools' in asked:
        found = re.search(r'^validation: (\S+)', prompt, re.M)
        review = {'is_bug': not found, 'summary': 'as printed' if found else 'there is no such column', 'metric': float(found[1]) if found else None, 'lower_is_better': False}
        call = {'id': 'call_1', 'type': 'function', 'function': {'name': 'submit_review', 'arguments': json.dumps(review)}}
        return {'role': 'assistant', 'content': None, 'tool_calls': [call]}
    code = MENDED if 'Previous (buggy) implementation' in prompt else BETTER if 'Previous solution' in prompt else BUGGY
    return {'role': 'assistant', 'content': f'I fit a forest on all columns.\n\n```python\n{code}```'}


@pytest.fixture
def endpoint():
    "An OpenAI-compatible server that plays the model."
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args): pass
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
            choice = {'index': 0, 'finish_reason': 'stop', 'message': act(asked)}
            usage = {'prompt_tokens': 1, 'completion_tokens': 1, 'total_tokens': 2}
            data = json.dumps({'id': 'x', 'object': 'chat.completion', 'created': 0, 'model': asked['model'], 'choices': [choice], 'usage': usage}).encode()
            self.send_response(200)
            self.send_header('Content-Type', 'application/json')
            self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            self.wfile.write(data)
    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f'http://127.0.0.1:{server.server_port}/v1'
    server.shutdown()
    server.server_close()


def test_aide_solves_exported_tasks(endpoint, tmp_path, request):
    if subprocess.run([PYTHON, '-c', 'import importlib.util as u, sys; sys.exit(not u.find_spec("aide"))']).returncode:
        pytest.skip('the package aideml is not there: run `make test-peers`, or set PEERS_PYTHON to an interpreter that has it')
    tasks = request.getfixturevalue('tasks')[:3]
    exported = export_tasks(tasks, tmp_path/'out', to='mle-bench')
    env = {**os.environ, 'OPENAI_BASE_URL': endpoint, 'OPENAI_API_KEY': 'none', 'OMP_NUM_THREADS': '1'}
    for task in tasks:
        data, at = exported.public_dir(task.task_id), tmp_path/task.task_id
        at.mkdir()
        # A model named gpt-… would be asked at OpenAI itself; the report asks with an option that only OpenAI knows.
        settings = [f'data_dir={data}', f'desc_file={data/"description.md"}', 'exp_name=run', 'agent.steps=3', 'agent.search.num_drafts=1',
                    'agent.search.debug_prob=1', 'agent.code.model=sand-local', 'agent.feedback.model=sand-local', 'generate_report=false', 'exec.timeout=60']
        done = subprocess.run([PYTHON, '-c', 'from aide.run import run; run()', *settings], cwd=at, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        nodes = json.loads((at/'logs'/'0-run'/'journal.json').read_text())['nodes']
        assert [node['is_buggy'] for node in nodes] == [True, False, False] and nodes[0]['exc_type'] == 'KeyError'
        assert all(0 < node['metric']['value'] <= 1 and node['metric']['maximize'] for node in nodes[1:])
        verdict = grade(task.dir, at/'workspaces'/'0-run'/'working'/'submission.csv')
        assert verdict.status == 'scored' and verdict.tiers, (task.metric, verdict)
        best = max(nodes[1:], key=lambda node: node['metric']['value'])
        assert (at/'logs'/'0-run'/'best_solution.py').read_text() == best['code']
