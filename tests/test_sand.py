"Sand tasks: grading, ladders, folders, corpora, players."
import json, os, shutil, subprocess, sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sandsmith.core import GradeError, Limits, RunError, SpecError
from sandsmith.sand.author import compile_task, rebuild_files, task_id_of
from sandsmith.sand.calibrate import TIERS, Calibration, calibrate, choose_tiers, hidden_parts, luck_rates, submission_form
from sandsmith.sand.corpus import build_corpus, load_corpus, split_tasks
from sandsmith.sand.form import constant_prediction, encode_rows, encode_truth, perfect_guess, random_predictions, repeat_guess
from sandsmith.sand.grade import grade, load_answers, read_truth, submission_text
from sandsmith.sand.metrics import get_metric, is_strictly_better, reaches
from sandsmith.sand.players import player_code, scripted_policy
from sandsmith.sand.spec import draw_spec
from sandsmith.sand.verify import grade_all, probe_submissions, read_columns, run_evaluator_on, verify_task
from sandsmith.sandbox import run

FOLDERS = {'workers': 2, 'seed': 11, 'n': 3}


@pytest.fixture(scope='session')
def corpus(tmp_path_factory):
    "One task a modality, built by two processes."
    return build_corpus(tmp_path_factory.mktemp('sand')/'corpus', **FOLDERS)


@pytest.fixture(scope='session')
def task(corpus):
    return corpus.tasks[0]


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob('*')) if p.is_file() and p.name != 'timings.parquet'}


# Grading

def right_answers(answers):
    "The truth as a submission states it."
    return perfect_guess(answers.form['kind'], encode_truth(answers.form, answers.targets))

def test_every_reason_from_both_graders(corpus, tmp_path):
    for task in corpus.tasks:
        answers = load_answers(task.dir)
        probes = probe_submissions(task, answers)
        form, ids, truth, right = answers.form, answers.ids, right_answers(answers), probes['truth']
        more = {name: submission_text(form, ids, [[cell, *truth[0][1:]] if isinstance(truth[0], list) else cell, *truth[1:]])
                for name, cell in (('inf', 'inf'), ('empty_cell', None), ('huge', '1e300'))}
        last = right.splitlines()[-1].split(',', 1)[1]
        more = {'inf': ('bad_values' if form['kind'] in ('label', 'labels') else 'not_finite', more['inf']),
                'empty_cell': ('not_finite', more['empty_cell']), 'huge': ('bad_values', more['huge']),
                'unknown_id': ('bad_ids', right + f'999999,{last}\n'), 'header_only': ('bad_ids', right.splitlines()[0] + '\n'),
                'nothing': ('unreadable', ''), 'torn_row': ('unreadable', right + '7\n'), 'extra_column': ('bad_columns', right.replace('\n', ',0\n')),
                'long': ('unreadable', right + '\n'*(1 << 20))}
        verdicts = grade_all(task.dir, {**probes, **{name: text for name, (_, text) in more.items()}})
        said = run_evaluator_on(task.dir, {**probes, **{name: text for name, (_, text) in more.items()}})
        for name in ('truth', 'reordered'):
            assert verdicts[name].score == answers.metric.optimum and verdicts[name].tiers == TIERS
        expected = {**{name: name for name in probes if name not in ('truth', 'reordered', 'sample')}, **{name: reason for name, (reason, _) in more.items()}}
        for name, reason in expected.items():
            assert (verdicts[name].status, verdicts[name].reason, verdicts[name].tiers, verdicts[name].score) == ('malformed', reason, (), None), name
            assert said[name]['error']['reason'] == reason, name
        for name in ('truth', 'reordered', 'sample'):
            assert said[name]['score'] == verdicts[name].score
            assert {tier: said[name][f'{tier}_threshold'] for tier in TIERS} == answers.thresholds
            assert said[name]['is_lower_better'] == (task.direction == 'min')


def test_odd_files_are_malformed_and_never_followed(task, tmp_path):
    answer, link, loop, pipe = task.dir/'private'/'answer.csv', tmp_path/'link.csv', tmp_path/'loop.csv', tmp_path/'pipe.csv'
    link.symlink_to(answer)
    loop.symlink_to(loop)
    os.mkfifo(pipe)
    (tmp_path/'utf16.csv').write_bytes('id,x\n'.encode('utf-16'))
    for path in (link, loop, pipe, tmp_path, tmp_path/'utf16.csv', Path('/dev/zero')):
        assert grade(task.dir, path).reason == 'unreadable', path
    assert (grade(task.dir, tmp_path/'none.csv').status, grade(task.dir, tmp_path/'none.csv').reason) == ('missing', 'missing_submission')


def test_friendly_spellings(task, tmp_path):
    answers = load_answers(task.dir)
    text = submission_text(answers.form, answers.ids, right_answers(answers))
    (tmp_path/'bom.csv').write_bytes(b'\xef\xbb\xbf' + text.replace('\n', '\r\n').encode())
    assert grade(task.dir, tmp_path/'bom.csv').score == answers.metric.optimum


def test_parts_are_disjoint_and_differ(task, tmp_path):
    answers = load_answers(task.dir)
    assert sorted(answers.parts) == ['feedback']*task.spec.n_feedback + ['reward']*task.spec.n_reward
    truth = right_answers(answers)
    wrong = [*truth[7:], *truth[:7]]
    mixed = [w if part == 'feedback' else t for t, w, part in zip(truth, wrong, answers.parts)]
    (tmp_path/'mixed.csv').write_text(submission_text(answers.form, answers.ids, mixed))
    assert grade(task.dir, tmp_path/'mixed.csv').score == answers.metric.optimum
    assert is_strictly_better(answers.metric, answers.metric.optimum, grade(task.dir, tmp_path/'mixed.csv', part='feedback').score)


def test_a_broken_task_is_our_fault(task, tmp_path):
    copy = Path(shutil.copytree(task.dir, tmp_path/task.task_id))
    (copy/'private'/'threshold.json').write_text('{}')
    with pytest.raises(GradeError, match='threshold.json'): grade(copy, copy/'public'/'sample_submission.csv')
    (copy/'private'/'answer.csv').unlink()
    with pytest.raises(GradeError, match='answer.csv'): grade(copy, copy/'public'/'sample_submission.csv')


# Calibration

def test_ladders_are_strict_reachable_and_no_lottery():
    reasons = []
    for index in range(4):
        spec = draw_spec(23, index, modalities=['tabular', 'text'] if index == 1 else ['tabular'])
        found, metric = calibrate(spec), get_metric(spec.metric)
        reasons.append(found.reason)
        if not found.is_accepted: continue
        for rungs in (found.thresholds, found.population):
            assert all(is_strictly_better(metric, rungs[b], rungs[a]) and rungs[b] == round(rungs[b], 5) for a, b in pairwise(TIERS))
        assert reaches(metric, found.insider_score, found.thresholds['gold'])
        assert not reaches(metric, found.sample_score, found.thresholds['bronze'])
        assert max(found.random_rates.values()) <= .05
        used = {p['tier']: p for p in found.pool if p['tier']}
        assert {tier: used[tier]['score'] for tier in TIERS[:3]} == {tier: found.thresholds[tier] for tier in TIERS[:3]}
        assert not any(reaches(metric, p['population_score'], found.population['gold']) for p in found.pool)
        json.dumps(found.provenance(), allow_nan=False)
    assert reasons.count('ok') > len(reasons)/2


def test_calibration_is_a_pure_function():
    spec = draw_spec(23, 1, modalities=['tabular'])
    once, again = calibrate(spec), calibrate(spec)
    assert once == again and compile_task(spec, once) == compile_task(spec, again)


def test_tiers_need_gaps():
    population = {'constant': 0., 'a': .6, 'b': .8, 'c': .81, 'insider': 1.}
    steady = {name: np.full(20, q) for name, q in population.items()}
    assert choose_tiers(population, steady) == ('a', 'b')
    rng = np.random.default_rng(0)
    assert choose_tiers(population, {name: q + rng.normal(size=20) for name, q in steady.items()}) is None, 'noise hides the gaps'
    assert choose_tiers({**population, 'insider': .82}, steady) is None, 'gold within reach of the pool'


def test_luck_is_found():
    spec = next(s for s in (draw_spec(23, i, modalities=['tabular']) for i in range(99)) if s.family == 'tabular.regime')
    metric, rng = get_metric(spec.metric), np.random.default_rng(1)
    y, truth = rng.integers(0, 2, 100), rng.integers(0, 2, 200)
    worst = float('inf') if metric.is_lower_better else -float('inf')
    form = submission_form(spec, truth)
    assert set(luck_rates(spec, form, y, truth, worst).values()) == {1.0}
    assert set(luck_rates(spec, form, y, truth, metric.optimum).values()) == {0.0}
    assert random_predictions(form, [1, 2, 3], 5, 9) == random_predictions(form, [1, 2, 3], 5, 9)
    assert sorted(hidden_parts(2, 3, 1)) == ['feedback']*2 + ['reward']*3
    groups = list('abcabcabc')
    parts = hidden_parts(3, 6, 1, groups)
    assert len({(g, p) for g, p in zip(groups, parts)}) == 3 and sorted(parts) == ['feedback']*3 + ['reward']*6


# Folders

def test_a_refused_calibration_writes_nothing():
    spec = draw_spec(23, 0, modalities=['tabular'])
    with pytest.raises(SpecError, match='lottery'): compile_task(spec, Calibration(reason='lottery', form={}))


def test_tasks_verify_and_hide(corpus):
    assert {t.spec.modality for t in corpus.tasks} == {'tabular', 'text', 'image'}
    for task in corpus.tasks:
        assert verify_task(task.dir) == []
        manifest = json.loads((task.dir/'task.json').read_text())
        assert manifest['task_id'] == task_id_of(manifest) == task.dir.name
        public = {name: data for name, data in contents(task.public_dir).items() if not name.endswith('.png')}
        assert set(public) == {'description.md', 'train.csv', 'test.csv', 'sample_submission.csv'}
        secret = [task.spec.hidden_rule_logic, str(task.spec.seed), task.task_id, 'feedback', 'answer.csv', 'threshold', 'insider', 'evaluator']
        assert not any(s.encode() in data for data in public.values() for s in secret)
        hidden = set(load_answers(task.dir).ids)
        assert not hidden & set(line.split(',')[0] for line in public['train.csv'].decode().splitlines())
        page = public['description.md'].decode()
        metric = get_metric(task.metric)
        assert metric.formula in page and ('Lower is better' if metric.is_lower_better else 'Higher is better') in page
        assert all(f'`{name}`' in page for name in task.spec.feature_mapping)


def test_a_stranger_rebuilds_the_folder(task, tmp_path):
    subprocess.run([sys.executable, '-I', str(task.dir/'private'/'generate_task_env.py'), '--out', str(tmp_path/'again')], check=True)
    assert contents(tmp_path/'again') == contents(task.dir)
    script = (task.dir/'private'/'generate_task_env.py').read_text()
    assert 'sandsmith.' not in script and 'import sandsmith' not in script


def test_a_failing_script_is_reported():
    with pytest.raises(SpecError, match='error'): rebuild_files('raise SystemExit(3)')


def edit_json(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


TAMPERS = {
    'changed_file': lambda d: (d/'public'/'train.csv').write_text((d/'public'/'train.csv').read_text().replace('1', '2', 1)),
    'missing_file': lambda d: (d/'public'/'sample_submission.csv').unlink(),
    'extra_file': lambda d: (d/'public'/'notes.txt').write_text('psst'),
    'odd_file': lambda d: ((d/'public'/'test.csv').rename(d/'t.csv'), (d/'public'/'test.csv').symlink_to(d/'t.csv')),
    'bad_id': lambda d: edit_json(d/'task.json', lambda t: t['spec'].update(domain='Elsewhere')),
    'other_bytes': lambda d: (d/'public'/'description.md').write_text('# Nothing\n'),
    'not_rebuilt': lambda d: (d/'private'/'generate_task_env.py').write_text('1/0'),
    'leak': lambda d: (d/'public'/'description.md').write_text('see answer.csv'),
    'bad_ladder': lambda d: edit_json(d/'private'/'threshold.json', lambda t: t.update(gold_threshold=t['bronze_threshold'])),
    'insider_below_gold': lambda d: (d/'private'/'insider.py').write_text('print("sorry")'),
    'evaluator_disagrees': lambda d: (d/'private'/'evaluator.py').write_text('import json; print(json.dumps({"score": 1.0}))'),
    'broken_task': lambda d: (d/'task.json').write_text('{'),
}


@pytest.mark.parametrize('code', TAMPERS)
def test_tampering_is_found(task, tmp_path, code):
    copy = Path(shutil.copytree(task.dir, tmp_path/task.task_id))
    TAMPERS[code](copy)
    assert code in {p.code for p in verify_task(copy)}


# Exploits

def test_exploits_earn_no_tier_they_should_not(corpus, tmp_path):
    for task in corpus.tasks:
        answers = load_answers(task.dir)
        form, n = answers.form, len(answers.ids)
        y = encode_rows(form, read_truth(form, read_columns(task.public_dir/'train.csv')))
        constant, known = ([form['classes'][v] for v in guess] if form['kind'] == 'label' else np.asarray(guess).tolist()
                           for guess in (repeat_guess(constant_prediction(form, y, answers.metric), n), perfect_guess(form['kind'], y)))
        truth, rng = right_answers(answers), np.random.default_rng(5)
        tries = {'constant': constant, **{f'random{i}': [known[int(j)] for j in rng.integers(len(known), size=n)] for i in range(10)},
                 **{f'shuffled{i}': [truth[int(j)] for j in rng.permutation(n)] for i in range(10)}}
        verdicts = grade_all(task.dir, {name: submission_text(form, answers.ids, guess) for name, guess in tries.items()})
        assert all(v.status == 'scored' for v in verdicts.values())
        lucky = [name for name, v in verdicts.items() if 'bronze' in v.tiers]
        assert len(lucky) <= 2 and 'constant' not in lucky, (task.task_id, lucky)


# Corpora

def test_same_bytes_after_half_is_lost_and_with_one_worker(corpus, tmp_path):
    assert sum(map(len, corpus.split.values())) == FOLDERS['n'] and len(corpus.split['validation']) == 1
    copy = tmp_path/'corpus'
    shutil.copytree(corpus.dir, copy)
    (copy/'corpus.json').unlink()
    shutil.rmtree(copy/'tasks'/corpus.tasks[0].task_id)
    (copy/'tasks'/corpus.tasks[1].task_id/'public'/'train.csv').write_text('torn')
    (copy/'tasks'/'.writing-x').mkdir()
    notes = []
    again = build_corpus(copy, n=3, seed=FOLDERS['seed'], workers=1, progress=lambda *note: notes.append(note))
    assert contents(copy) == contents(corpus.dir)
    assert [t.task_id for t in again.tasks] == [t.task_id for t in load_corpus(copy).tasks]
    assert notes and notes[-1][0] == 3


def test_finished_candidates_are_kept_through_a_kill(tmp_path):
    how = dict(n=2, seed=4, modalities=['tabular'], workers=1)
    command = [sys.executable, '-c', 'import sys\nfrom sandsmith.sand.corpus import build_corpus\n'
               f'build_corpus(sys.argv[1], **{how}, progress=lambda *note: print(note, flush=True))', str(tmp_path/'killed')]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline()
        process.kill()
    assert not (tmp_path/'killed'/'corpus.json').exists()
    with pytest.raises(SpecError, match='finished corpus'): load_corpus(tmp_path/'killed')
    notes = []
    build_corpus(tmp_path/'killed', **how, progress=lambda *note: notes.append(note[2]))
    assert notes and not any(note.startswith('candidate 0:') for note in notes)
    build_corpus(tmp_path/'whole', **how)
    assert contents(tmp_path/'killed') == contents(tmp_path/'whole')


def test_a_finished_corpus_is_not_built_again_nor_mixed(corpus):
    notes = []
    build_corpus(corpus.dir, **FOLDERS, progress=lambda *note: notes.append(note))
    assert notes == []
    with pytest.raises(RunError, match='seed 11'): build_corpus(corpus.dir, n=3, seed=12)
    with pytest.raises(RunError, match='holds 3 tasks'): build_corpus(corpus.dir, n=2, seed=11)
    with pytest.raises(SpecError, match='n ≥ 1'): build_corpus(corpus.dir, n=0, seed=11)
    with pytest.raises(SpecError, match='workers'): build_corpus(corpus.dir, n=3, seed=11, workers=0)


def test_funnel_tells_every_candidate(corpus):
    funnel = corpus.funnel
    assert funnel['index'].to_list() == list(range(len(funnel)))
    assert funnel['is_accepted'].sum() == 3 and funnel['is_accepted'][-1]
    assert [t.task_id for t in corpus.tasks] == funnel.filter(funnel['is_accepted'])['task_id'].to_list()
    assert (funnel['reason'] == 'ok').to_list() == funnel['is_accepted'].to_list()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(['text', 'image', 'tabular']), min_size=1, max_size=12), st.data())
def test_splits_cover_all_and_keep_the_order(modalities, data):
    ids, k = [f't{i}' for i in range(len(modalities))], data.draw(st.integers(0, len(modalities) - 1))
    split = split_tasks(ids, modalities, n_validation=k, seed=3)
    assert sorted(split['train'] + split['validation']) == sorted(ids) and len(split['validation']) == k
    assert split['train'] == [t for t in ids if t in split['train']]
    if k >= len(set(modalities)): assert {modalities[ids.index(t)] for t in split['validation']} == set(modalities)


# Players

@pytest.mark.parametrize('modality', ['tabular', 'text', 'image'])
def test_players_are_ordered(corpus, tmp_path, modality):
    task = next(t for t in corpus.tasks if t.spec.modality == modality)
    reached = {}
    for name in {'tabular': ('constant', 'insider'), 'text': ('linear', 'insider'), 'image': ('forest', 'insider')}[modality]:
        played = run(player_code(name, task), files={'data': task.public_dir}, limits=Limits(timeout_s=90, memory_mb=4096), collect=['submission.csv'])
        assert played.status == 'ok', played.stderr
        (tmp_path/f'{name}.csv').write_bytes(played.files['submission.csv'])
        verdict = grade(task.dir, tmp_path/f'{name}.csv')
        assert verdict.status == 'scored'
        reached[name] = len(verdict.tiers)
    assert reached['insider'] == 4 and reached.get('constant', 0) <= 1 and reached.get('forest', 0) < 4


def test_a_scripted_policy_takes_three_turns(task):
    policy, talk = scripted_policy('constant'), [{'role': 'user', 'content': 'page'}]
    for _ in range(4): talk += [policy.act(talk, tools=[], rng=None), {'role': 'tool', 'content': ''}]
    said = [m for m in talk if m['role'] == 'assistant']
    assert [m['tool_calls'][0]['function']['name'] for m in said] == ['python', 'score', 'submit', 'submit']
    assert all(m['content'].startswith('<think>') and json.loads(m['tool_calls'][0]['function']['arguments']) is not None for m in said)
    assert policy.act(talk[:1]) == policy.act(talk[:1]) and policy.name == 'scripted:constant'
