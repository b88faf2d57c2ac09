"Pages of tasks, candidates, episodes, builds and training runs: what they show, what they escape, and that clicks are state"
import json
from pathlib import Path
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from test_look import EVIL, Checker, corpus_dir # noqa: F401 (a fixture)
from sandsmith.core import RunError, SpecError, checkout_dir
from sandsmith.look.builds import blamed_lines, inspect_build, inspect_builds, view_build
from sandsmith.look.episodes import list_episodes, load_episode, play_episodes, view_episode
from sandsmith.look.explore import explore_corpus, filter_candidates, filter_choices, read_candidates, view_candidate
from sandsmith.look.frames import read_index
from sandsmith.look.samples import draw_line, draw_picture, place_nodes, view_features, view_samples, wrap_page
from sandsmith.look.training import read_training, step_alerts, step_curves, view_completions, view_training, watch_training
from sandsmith.look.widgets import grade_file, say_verdict, view_verdict
from sandsmith.sand.spec import load_task
from sandsmith.smith.build import draw_build_rows
from sandsmith.smith.tool import verify
from sandsmith.trace import Trajectory, Turn, Verdict, to_jsonl

EXAMPLE = checkout_dir()/'reports'/'example'


# samples

PNG = (b'\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR' + (4).to_bytes(4) + (3).to_bytes(4))


@pytest.mark.parametrize('mask, cells', [('', 0), ('1 3', 3), ('2 1 10 2', 3)])
def test_a_mask_lies_on_the_pixels_that_its_runs_name(mask, cells):
    drawn = draw_picture(PNG, words='w', mask=mask, size=(3, 4))
    assert drawn.count('h1v1h-1z') == cells
    if mask == '1 3': assert all(f'M0 {y}h1' in drawn for y in range(3)) # runs go down the columns


def test_boxes_are_drawn_at_their_corners_and_their_labels_are_data():
    drawn = draw_picture(PNG, words=EVIL, boxes='<b> 0.5 1 0 3 2')
    assert 'x="1" y="0" width="2" height="2"' in drawn and '<b>' not in drawn and '<script' not in drawn
    assert 'viewBox="0 0 4 3"' in drawn


@given(st.lists(st.none() | st.floats(-1e6, 1e6), max_size=40))
@settings(max_examples=60, deadline=None)
def test_a_gap_in_a_series_stays_a_gap(values):
    drawn = draw_line(values)
    starts = sum(v is not None and (i == 0 or values[i - 1] is None) for i, v in enumerate(values))
    assert drawn.split('<path d="')[1].split('"')[0].count('M') == starts and 'nan' not in drawn


@given(st.integers(1, 24), st.data())
@settings(max_examples=25, deadline=None)
def test_every_graph_has_a_finite_place_for_each_node(n, data):
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    edges = data.draw(st.lists(pairs, max_size=40))
    at = place_nodes(n, edges)
    assert at.shape == (n, 2) and np.isfinite(at).all() and at.min() >= -1e-9 and at.max() <= 1 + 1e-9
    assert (at == place_nodes(n, edges)).all()


def test_samples_and_features_of_a_table_escape_their_names(corpus_dir, tmp_path): # noqa: F811
    import shutil
    task_dir = Path(shutil.copytree(sorted((corpus_dir/'tasks').iterdir())[0], tmp_path/'task'))
    path = task_dir/'public'/'train.csv'
    header, *rows = path.read_text().split('\n')
    names = header.split(',')
    path.write_text('\n'.join([header.replace(names[1], '<b>x</b>'), *rows]))
    page = wrap_page(view_samples(load_task(task_dir)) + view_features(load_task(task_dir)))
    assert '<b>' not in page and 'x' in Checker(page).text


# grading a file

def test_a_file_is_graded_in_words(corpus_dir): # noqa: F811
    task_dir = sorted((corpus_dir/'tasks').iterdir())[0]
    from sandsmith.look.frames import tasks_frame
    row = tasks_frame([load_task(task_dir)]).row(0, named=True)
    good = (task_dir/'public'/'sample_submission.csv').read_bytes()
    assert f'{row["metric"]}' in say_verdict(grade_file(task_dir, good), row)
    for data, code in ((b'', 'unreadable'), (EVIL.encode(), 'bad_columns'), (b'a,b\n1,2\n', 'bad_columns'), (b''.join(good.splitlines(keepends=True)[:-9]), 'bad_ids')):
        verdict = grade_file(task_dir, data)
        page = view_verdict(verdict, row, EVIL)
        assert verdict.reason == code and code in Checker(page).text and 'alert(1)' in Checker(page).text
    ours = Verdict(status='unscored', reason='sandbox_failed')
    assert 'not the file' in say_verdict(ours, row)
    gold = Verdict(status='scored', score=row['gold'], tiers=('median', 'bronze', 'silver', 'gold'), facts={'n_rows': 200})
    assert 'nothing above gold' in say_verdict(gold, row) and view_verdict(gold, row).count('<svg') == 1


# candidates

def test_an_index_reads_what_the_tasks_say_and_names_a_broken_one(corpus_dir, tmp_path): # noqa: F811
    import shutil
    index = read_index(corpus_dir)
    for row in index.to_dicts():
        spec = load_task(corpus_dir/'tasks'/row['task_id']).spec
        assert (row['title'], row['family'], row['metric'], row['n_train']) == (spec.title, spec.family, spec.metric, spec.n_train)
    copy = Path(shutil.copytree(corpus_dir, tmp_path/'corpus'))
    broken = copy/'tasks'/index['task_id'][1]/'task.json'
    for text in ('{', '{"task_id": "a"}', '[]'):
        broken.write_text(text)
        with pytest.raises(SpecError, match=index['task_id'][1]): read_index(copy)


def test_filters_say_how_many_are_left():
    df = read_candidates(EXAMPLE)
    for column in ('modality', 'task_type', 'family', 'verdict'):
        for label, value in filter_choices(df, column, {})[1:]:
            assert label == f'{value} ({len(filter_candidates(df, {column: value}))})'
    explorer = explore_corpus(EXAMPLE)
    explorer.filters['modality'].value = 'text'
    assert len(explorer.choice.options) == len(df.filter(modality='text')) and 'Choose' in explorer.page.value
    explorer.choice.set_state({'index': 0})
    Checker(explorer.page.value)
    Checker(explorer._repr_mimebundle_()['text/html'])


def test_a_rejected_candidate_is_planned_again(tmp_path):
    from sandsmith.sand.strategist import plan_task
    spec = plan_task(5, 3).spec
    (tmp_path/'tasks').mkdir()
    (tmp_path/'corpus.json').write_text(json.dumps({'seed': 5, 'author': 'compiler', 'profile': 'balanced', 'modalities': None}))
    row = {'index': 3, 'verdict': 'lottery', 'stage': 'calibrate', 'family': spec.family, 'task_id': None}
    text = Checker(view_candidate(tmp_path, row)).text
    assert spec.title in text and 'know nothing' in text and spec.hidden_rule_logic in text


# episodes

def an_episode(i=0, late=False):
    call = {'id': 'c', 'type': 'function', 'function': {'name': 'python', 'arguments': json.dumps({'code': f'print({EVIL!r})'})}}
    odd = {'id': 'c', 'type': 'function', 'function': {'name': EVIL, 'arguments': '{broken'}}
    run = {'status': 'timeout' if late else 'ok', 'seconds': .5, 'peak_mb': None, 'tier': 'C'}
    turns = (Turn(message={'role': 'assistant', 'content': f'<think>{EVIL}</think> so', 'tool_calls': [call]}, observation=EVIL, run=run),
             Turn(message={'role': 'assistant', 'content': None, 'tool_calls': [odd]}, observation='score on a sample of the hidden rows: 0.61'),
             Turn(message={'role': 'assistant', 'content': ''}, is_done=True))
    return Trajectory(task_id=f'task-{i}', policy='scripted:linear' if i % 2 else EVIL, seed=i, turns=turns, stop_reason='submitted',
                      messages=({'role': 'system', 'content': EVIL}, {'role': 'user', 'content': 'page'}), timed_out=late)


def test_an_episode_shows_and_escapes_everything():
    page = view_episode(an_episode(), verdict=Verdict(status='scored', score=.5, tiers=('median',)), reward=.5)
    text = Checker(page).text
    assert text.count('alert(1)') >= 5 and '0.61' in text and 'reward 0.5' in text and text.count('trained on') == 3
    assert 'trained on' not in Checker(view_episode(an_episode(late=True))).text # a late step masks all
    assert '7 tokens' in view_episode(an_episode(), count_tokens=lambda _: 7)


def test_a_file_of_trajectories_is_read_line_by_line(tmp_path):
    said = [an_episode(i) for i in range(5)]
    path = tmp_path/'played.jsonl'
    lines = to_jsonl(said).split('\n')
    path.write_text('\n'.join([lines[0], '', *lines[1:]]).rstrip('\n')) # an empty line, and no line end at the end
    index = list_episodes(path)
    assert [load_episode(path, row)[0] for row in index.to_dicts()] == said
    player = play_episodes(path)
    player.policy.value = 'scripted:linear'
    assert [label.split(' · ')[1] for label, _ in player.choice.options] == ['task-1', 'task-3']
    player.turn.set_state({'value': 2})
    assert player.page.value == view_episode(said[1], turn=2)
    player.search.value = 'nowhere'
    assert player.choice.options == ()
    for bad in ('', 'not json\n', '{"policy": "p"}\n'):
        path.write_text(bad)
        with pytest.raises(SpecError, match='trajectory'): list_episodes(path)


def test_a_run_without_trajectories_shows_its_record():
    player = play_episodes(EXAMPLE)
    assert 'not its words' in Checker(player.page.value).text and len(player.df) == 96


# builds

def a_response(code='def add(a, b):\n    return a + b', name='add', properties='"a": {"type": "integer"},\n  "b": {"type": "integer"}', required='"a", "b"'):
    schema = (f'{{"type": "function", "function": {{"name": "{name}",\n "parameters": {{"type": "object", "properties": {{\n'
              f'  {properties}}},\n  "required": [{required}]}}}}}}')
    return f'Words first.\n```python\n{code}\n```\n\n```json\n{schema}\n```\n'


@pytest.mark.parametrize('text, line', [
    (a_response(name='sum_of'), '"name": "sum_of"'),
    (a_response(code='import math\ndef add(a, b)\n    return a'), 'def add(a, b)'),
    (a_response(code='def add(a, b):\n    return a\nadd = 3'), 'add = 3'),
    (a_response(properties='"a": {"type": "integer"},\n  "b": {"type": "whole"}'), '"b": {"type": "whole"}'),
    (a_response(required='"a", "c"'), '"required"'),
    (a_response(code='def add(a, b, c):\n    return a'), 'def add(a, b, c)'),
    (a_response(properties='"a": {"type": "integer"},\n  "b": {"type": "integer"},,'), ',,')])
def test_faults_are_found_on_their_line(text, line):
    found = [text.split('\n')[at - 1] for at in blamed_lines(text, verify(text)) if at]
    assert any(line in shown for shown in found), blamed_lines(text, verify(text))


def test_a_build_page_escapes_and_agrees_with_the_record():
    row = draw_build_rows(['gcd'], n=1, seed=0, split='train', n_shown=1, n_hidden=2)[0]
    assert 'alert(1)' in Checker(view_build(inspect_build(EVIL, row))).text
    inspector = inspect_builds(EXAMPLE)
    inspector.when.value = 'held-out, base'
    assert len(inspector.choice.options) == 24 and 'step1_fail' in inspector.page.value
    inspector.flag.value = 'syntax_error'
    Checker(inspector.page.value)


# training

def test_the_monitor_rings_where_the_paper_collapses():
    table = pl.read_csv(checkout_dir()/'data'/'paper'/'table8.csv')
    n = 1000
    rollouts = pl.DataFrame([{'step': r['step'], **{f: i < round(n*r[f]) for f in ('step1_fail', 'fn_mismatch', 'param_mismatch')}}
                             for r in table.to_dicts() for i in range(n)])
    rung = step_alerts(step_curves(rollouts))
    assert ('fn_mismatch', 6) in [(metric, step) for metric, step, _ in rung] and all(step in (6, 7) for _, step, _ in rung)


def test_runs_are_compared_and_a_journal_grows(tmp_path):
    _, rollouts = read_training(EXAMPLE)
    folder = tmp_path/'train'/'grpo'
    folder.mkdir(parents=True)
    monitor = watch_training(EXAMPLE, tmp_path)
    assert monitor.curves.value.count('step 8') >= 7 # the second has no step yet
    lines = [json.dumps({'step': s, 'rollouts': rollouts.filter(step=s).to_dicts()}) + '\n' for s in (1, 2)]
    (folder/'rollouts.jsonl').write_text(lines[0])
    (folder/'steps.jsonl').write_text('{"step": 1}\n')
    monitor.refresh()
    monitor.run.value = tmp_path.name
    assert (monitor.step.max, monitor.step.value) == (1, 1) and f'{tmp_path.name}: 1 steps' in Checker(monitor.curves.value).text
    (folder/'rollouts.jsonl').write_text(lines[0] + lines[1][:50]) # a torn line is not there yet
    assert read_training(tmp_path)[1]['step'].max() == 1
    with pytest.raises(RunError, match='wait'): read_training(tmp_path/'nothing')


def test_answers_of_a_step_are_escaped():
    rollouts = read_training(EXAMPLE)[1].with_columns(response=pl.lit(EVIL), category=pl.lit(EVIL))
    assert Checker(wrap_page(view_completions(rollouts, 1))).text.count('alert(1)') == 12
    Checker(wrap_page(view_training({EVIL: rollouts})))
