"Playing sand tasks: what an agent sees, keeps and earns; who may play; the command"
import json, os, shutil, sys, threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from sandsmith.core import Limits, PolicyError, SandboxError, SpecError, checkout_dir
from sandsmith.react import LocalPolicy, as_text, read_transcripts, replay_policy, with_calls
from sandsmith.rl.environment import SandEnv, Submissions, rollout
from sandsmith.rl.observe import count_chars, describe_score, fit_context, hide_machine, turn_messages
from sandsmith.rl.play import Episode, PlaySettings, append_record, parse_policy, play_episode, play_many, read_records, show_episode
from sandsmith.rl.play import turns_frame
from sandsmith.rl.reward import format_rate, reward
from sandsmith.sand.calibrate import TIERS
from sandsmith.sand.cheats import any_player, cheat_names
from sandsmith.sand.corpus import build_corpus
from sandsmith.sand.form import encode_truth
from sandsmith.sand.grade import load_answers, submission_text
from sandsmith.sand.metrics import get_metric, is_strictly_better, metric_names, reaches
from sandsmith.sand.players import player_code, player_names
from sandsmith.sand.spec import load_task
from sandsmith.sandbox import Session
from sandsmith.trace import Trajectory, Turn, Verdict, to_jsonl
from test_rl import tiny_model  # noqa: F401 (a fixture)

QUICK = Limits(timeout_s=20)


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    return build_corpus(tmp_path_factory.mktemp('play')/'corpus', n=2, seed=1, modalities=['tabular'], workers=1)


@pytest.fixture(scope='module')
def task(corpus):
    return corpus.tasks[0]


def say(tool, thought='Next.', **arguments):
    call = {'id': 'call_1', 'type': 'function', 'function': {'name': tool, 'arguments': json.dumps(arguments)}}
    return {'role': 'assistant', 'content': f'<think>{thought}</think>', 'tool_calls': [call]}


def python(code): return say('python', code=code)
def hand_in(text): return python(f'open("submission.csv", "w").write({text!r})')


class Script:
    "Says its messages, the last for ever."
    def __init__(self, *messages, name='scripted:test'): self.messages, self.name, self.seen = messages, name, []
    def act(self, messages, *, tools=None, rng=None):
        self.seen.append(list(messages))
        return self.messages[min(len(self.seen), len(self.messages)) - 1]


def play(task, *messages, max_turns=20, budget=None, **how):
    return rollout(SandEnv(task, **{'limits': QUICK, **how}), Script(*messages), task_id=task.task_id, seed=0, max_turns=max_turns, budget=budget)


@pytest.fixture(scope='module')
def texts(task):
    "Submissions of known quality: the truth, the truth with noise, a constant."
    answers = load_answers(task.dir)
    truth, rng = np.array(encode_truth(answers.form, answers.targets), float), np.random.default_rng(0)
    noise = rng.normal(size=truth.shape)*truth.std()
    made = {f'noise {k}': submission_text(answers.form, answers.ids, (truth + k*noise).tolist()) for k in (0, .2, .5, 1., 3.)}
    return {**made, 'constant': submission_text(answers.form, answers.ids, [float(truth.mean())]*len(truth))}


# ---- rewards

LADDERS = st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 5)), min_size=4, max_size=4, unique=True)
PRESETS = ('paper', 'release', 'sparse')


def tiers_of(metric, score, rungs): return tuple(t for t, rung in zip(TIERS, rungs) if reaches(metric, score, rung))
def scored(metric, score, rungs): return Verdict(status='scored', score=score, tiers=tiers_of(metric, score, rungs), facts={'metric': metric.name})


def spoken(*messages, timed_out=False):
    return Trajectory(task_id='t', policy='p', seed=0, messages=(), turns=tuple(Turn(message=m) for m in messages), stop_reason='submitted', timed_out=timed_out)


POLITE = spoken(say('submit'))


@pytest.mark.parametrize('preset,table', [('paper', [.4, .5, .7, .9, 1.]), ('release', [.3, .4, .8, .9, 1.]), ('sparse', [.1, .1, .1, .1, 1.])])
def test_presets_are_the_tables(preset, table):
    verdicts = [Verdict(status='scored', score=.5, tiers=TIERS[:n]) for n in range(5)]
    assert [reward(v, POLITE, preset=preset).total for v in verdicts] == table
    silent = spoken({'role': 'assistant', 'content': 'No thought.'})
    assert [reward(v, silent, preset=preset).total for v in verdicts] == [round(x - .1, 6) for x in table]
    assert reward(Verdict(status='malformed', reason='bad_ids'), POLITE, preset=preset).total == .1


@given(LADDERS, st.floats(-2e3, 2e3), st.floats(-2e3, 2e3), st.sampled_from(PRESETS), st.sampled_from(['accuracy', 'rmse']))
def test_a_better_score_never_pays_less(rungs, a, b, preset, name):
    metric = get_metric(name)
    ladder = sorted(rungs, reverse=metric.is_lower_better)
    paid = {s: reward(scored(metric, s, ladder), POLITE, preset=preset).total for s in (a, b)}
    if is_strictly_better(metric, a, b): assert paid[a] >= paid[b]
    assert all(0 <= total <= 1 for total in paid.values())


@given(LADDERS, st.floats(-2e3, 2e3), st.sampled_from(PRESETS))
def test_the_direction_of_the_metric_changes_nothing(rungs, score, preset):
    up, down, ladder = get_metric('accuracy'), get_metric('rmse'), sorted(rungs)
    mirrored = scored(down, -score, [-r for r in ladder])
    assert reward(scored(up, score, ladder), POLITE, preset=preset).total == reward(mirrored, POLITE, preset=preset).total


@given(st.sampled_from(PRESETS), st.integers(0, 4), st.text(max_size=40))
def test_equal_verdicts_are_paid_equally_whatever_was_said(preset, n, text):
    verdict = Verdict(status='scored', score=.5, tiers=TIERS[:n])
    other = replace(POLITE, messages=({'role': 'tool', 'content': text},), policy=text, seed=7)
    assert reward(verdict, other, preset=preset) == reward(verdict, POLITE, preset=preset)


def test_rewards_fall_with_noise_on_a_real_task(task, texts):
    totals = [reward(play(task, hand_in(texts[f'noise {k}']), say('submit'))[1], POLITE, preset='paper').total for k in (0, .2, .5, 1., 3.)]
    assert totals[0] == 1 and totals == sorted(totals, reverse=True) and totals[-1] < 1


def test_a_timeout_leaves_the_group(task, texts):
    said, verdict = play(task, hand_in(texts['noise 0']), python('import time\nopen("submission.csv", "w").write("id,")\ntime.sleep(60)'), limits=Limits(timeout_s=1))
    assert (said.stop_reason, said.timed_out, len(said.turns)) == ('timeout', True, 2)
    assert verdict.tiers == TIERS and verdict.facts['n_timeouts'] == 1      # what was good is not lost
    masked, group = reward(verdict, said, preset='paper'), [reward(Verdict(status='scored', score=.5, tiers=TIERS[:n]), POLITE, preset='paper') for n in (0, 2, 4)]
    assert not masked.is_scored and masked.total is None
    assert [r.total for r in (*group, masked) if r.is_scored] == [r.total for r in group] # mean and deviation are those of the rest


def test_format_is_counted_by_preset():
    talk = spoken(say('submit'), {'role': 'assistant', 'content': '<think>Wait.</think> I wait.'}, {'role': 'assistant', 'content': 'I <think>wait</think>.'},
                  {'role': 'assistant', 'content': '<think> </think>', 'tool_calls': say('submit')['tool_calls']}, {'role': 'assistant', 'content': None})
    assert (format_rate(talk), format_rate(talk, preset='release')) == (.2, .4)


# ---- the environment

def test_state_lasts_for_one_episode(task):
    steps = [python('open("a.txt", "w").write("mine")'), python('print(open("a.txt").read())'), say('submit')]
    look = python('import os\nprint(sorted(os.listdir("."))); open("/tmp/note", "w").write("x")')
    assert 'mine' in play(task, *steps)[0].turns[1].observation
    assert "['data']" in play(task, look, say('submit'))[0].turns[0].observation


def test_an_episode_has_twenty_turns_unless_told_otherwise(task):
    said, verdict = play(task, say('score'))
    assert (len(said.turns), said.stop_reason, verdict.status, verdict.reason) == (20, 'max_turns', 'missing', 'missing_submission')
    assert len(play(task, say('score'), max_turns=3)[0].turns) == 3
    assert SandEnv(task).limits.timeout_s == 90


def test_messages_are_answered_as_tool_results(task):
    said, _ = play(task, python('print(7)'), say('submit'))
    assert [m['role'] for m in said.messages] == ['system', 'user', 'assistant', 'tool', 'assistant']
    assert said.messages[3] == {'role': 'tool', 'tool_call_id': 'call_1', 'content': 'status: ok\n7\nsubmission.csv: not found'}


ODD = {'no call': {'role': 'assistant', 'content': 'Hm.'}, 'two calls': {**say('score'), 'tool_calls': say('score')['tool_calls']*2},
       'no code': say('python'), 'code is a list': say('python', code=['x']), 'unknown': say('rm -rf'),
       'broken arguments': {'role': 'assistant', 'content': None, 'tool_calls': [{'id': '1', 'function': {'name': 'python', 'arguments': '{"code": '}}]},
       'no function': {'role': 'assistant', 'content': '', 'tool_calls': [{'id': '1', 'function': None}]}, 'not an object': {'role': 'assistant', 'content': '', 'tool_calls': [{'id': '1', 'function': 'x'}]}}


@pytest.mark.parametrize('message', ODD.values(), ids=ODD)
def test_odd_messages_get_a_hint_and_end_nothing(task, message):
    env = SandEnv(task, limits=QUICK)
    env.reset()
    turn = env.step(message)
    env.close()
    assert turn.run is None and not turn.is_done and ('exactly one tool' in turn.observation or 'Unknown call' in turn.observation)


def test_the_agent_reaches_its_three_tools_and_nothing_else(task):
    env = SandEnv(task, limits=QUICK)
    env.reset()
    names = {t['function']['name'] for t in env.tools}
    assert names == {'python', 'score', 'submit'}
    for name in sorted({n for n in dir(env) if not n.startswith('__')} - names | {'reset', 'finish', 'close', '__init__'}):
        assert 'Unknown call' in env.step(say(name)).observation
    assert env.step(python('print(1)')).run['status'] == 'ok' # still open
    env.close()


def test_calls_written_as_text_are_played(task, texts):
    code = f'open("submission.csv", "w").write({texts["constant"]!r})'
    written = [f'<think>Go.</think>\n<tool_call>\npython\n<code>\n{code}\n</code>\n</tool_call>', '<think>Look.</think><tool_call>{"name": "Score"}',
               '<think>Done.</think><answer>submission</answer>']
    said, verdict = play(task, *({'role': 'assistant', 'content': text} for text in written))
    assert (verdict.status, said.stop_reason, format_rate(said)) == ('scored', 'submitted', 1.)
    assert said.messages[3]['role'] == 'tool' and said.messages[3]['tool_call_id'] == said.messages[2]['tool_calls'][0]['id']


# ---- what is shown

def test_observations_are_bounded_and_the_same_everywhere(task):
    code = 'import sys, json, sklearn.linear_model as m\nprint(object(), sys.prefix, sys.path, sys.executable)\nprint("x"*100_000)\nm.Ridge().fit([[1]], ["a", "b"])'
    seen = {play(task, python(code), say('submit'))[0].turns[0].observation for _ in range(2)}
    text, = seen # twice the same
    assert len(text) < 4500 and 'characters left out' in text and 'ValueError' in text and 'sklearn/' in text
    assert not [trace for trace in (sys.prefix, sys.base_prefix, str(checkout_dir()), 'at 0x7', '/tmp/sandsmith') if trace in text]


@pytest.mark.parametrize('text,shown', [('File "/jobs/session-ab_1/run-x9/main.py", line 2', 'File "./main.py", line 2'), ('/tmp/w/session-k2/job/data/train.csv', './data/train.csv'),
    ('<a.B object at 0x7f00deadbeef>', '<a.B object at 0x…>'), (f'{sys.prefix}', ''), ('colour 0xff00aa, ./job/x, http://a/job/1', 'colour 0xff00aa, ./job/x, http://a/job/1')])
def test_traces_of_the_machine_are_cut(text, shown):
    assert hide_machine(text) == shown


def test_feedback_never_depends_on_the_reward_rows(task, texts):
    answers = load_answers(task.dir)
    rows = texts['noise 0.5'].splitlines()
    kept = {i for i, part in zip(answers.ids, answers.parts) if part == 'feedback'}
    spoiled = '\n'.join([rows[0], *(row if row.split(',')[0] in kept else row.split(',')[0] + ',0' + ',0'*(row.count(',') - 1) for row in rows[1:])]) + '\n'
    for feedback in ('public', 'tier', 'paper', 'none'):
        replies = [play(task, hand_in(text), say('score'), say('submit'), feedback=feedback) for text in (texts['noise 0.5'], spoiled)]
        assert replies[0][0].turns[1].observation == replies[1][0].turns[1].observation and replies[0][1].score != replies[1][1].score


@given(st.floats(-1e6, 1e6).map(lambda x: round(x, 5)), st.sampled_from(['accuracy', 'rmse']))
def test_public_scores_have_two_digits(score, name):
    text = describe_score(Verdict(status='scored', score=score, facts={'metric': name, 'direction': get_metric(name).direction}))
    shown = float(text.split(': ')[1].split(' ')[0])
    assert shown == float(f'{score:.2g}') and (f'{name}, lower' in text) == (name == 'rmse')


def test_settings_are_checked(task):
    for how in ({'feedback': 'all'}, {'submission': 'first'}):
        with pytest.raises(SpecError, match='expected one of'): SandEnv(task, **how)


# ---- which submission counts

def test_best_is_kept_by_feedback_and_last_is_the_papers(task, texts):
    steps = [hand_in(texts['noise 1.0']), hand_in(texts['noise 0']), hand_in(texts['noise 3.0']), hand_in('id\n'), python('import os; os.remove("submission.csv")'), say('submit')]
    for rule, status in (('last', 'missing'), ('best', 'scored')):
        said, verdict = play(task, *steps, submission=rule)
        assert verdict.status == status and verdict.facts['submission'] == rule
    assert verdict.tiers == TIERS and [t.score for t in said.turns[1:]] == [said.turns[1].score]*5
    assert ['an earlier one counts' in t.observation for t in said.turns[:5]] == [False, False, False, True, True]
    assert play(task, *steps[:3], say('submit'))[1].tiers != TIERS


def test_which_one_is_kept_tells_no_score(task, texts):
    "Without feedback, the observation after a better and after a worse submission are the same."
    shown = [play(task, hand_in(texts['noise 0.5']), hand_in(texts[f'noise {k}']), say('submit'), submission='best', feedback='none')[0].turns[1].observation for k in (.2, 1.)]
    assert shown[0] == shown[1]


@pytest.mark.parametrize('end,status', [('raise SystemExit(3)', 'error'), ('import os, signal; os.kill(os.getpid(), signal.SIGSEGV)', 'killed'),
    ('import os; os.remove("submission.csv"); x = bytearray(10**10)', 'memory'), ('while True: pass', 'timeout')])
@pytest.mark.parametrize('rule', ['last', 'best'])
def test_a_failing_step_loses_nothing_good(task, texts, end, status, rule):
    torn = python('open("submission.csv", "w").write("id,").real\n' + end)
    said, verdict = play(task, hand_in(texts['noise 0']), torn, python('print("on")'), say('submit'), submission=rule, limits=Limits(timeout_s=1))
    assert said.turns[1].run['status'] == status and verdict.tiers == TIERS
    assert said.turns[1].observation.endswith('an earlier one counts')


GRADES = st.one_of(st.none(), st.just(b'broken'), st.integers(0, 9).map(lambda n: str(n).encode()))


@given(st.lists(st.tuples(GRADES, st.booleans()), max_size=12))
def test_best_never_falls_and_failures_never_take_away(steps):
    def grade(content):
        if content is None: return Verdict(status='missing', reason='missing_submission')
        if content == b'broken': return Verdict(status='malformed', reason='unreadable')
        return Verdict(status='scored', score=float(content), facts={'metric': 'accuracy'})
    held = {rule: Submissions(grade, rule) for rule in ('last', 'best')}
    best = []
    for content, is_ok in steps:
        before = held['last'].counted[1]
        for h in held.values(): h.take(content, is_ok)
        best.append(held['best'].counted[1].score)
        if not is_ok and before.status == 'scored': assert held['last'].counted[1].status == 'scored'
    assert all(b is not None and b >= a for a, b in pairwise(best) if a is not None)


# ---- faults of ours

def test_a_broken_sandbox_or_grader_is_unscored(task, tmp_path, monkeypatch):
    copy = shutil.copytree(task.dir, tmp_path/task.task_id)
    (copy/'private'/'threshold.json').write_text('{}')
    said, verdict = play(replace(task, dir=copy), python('print(1)'), say('score'), say('submit'))
    assert (verdict.status, verdict.reason) == ('unscored', 'grader_failed') and 'threshold.json' in verdict.facts['error']
    assert reward(verdict, said, preset='paper').total is None and str(copy) not in said.turns[1].observation
    def fail(*args, **kwargs): raise SandboxError('no more processes')
    monkeypatch.setattr(Session, 'run', fail)
    said, verdict = play(task, python('print(1)'))
    assert (said.stop_reason, verdict.status, len(said.turns)) == ('unavailable', 'unscored', 1)


# ---- context

def turn(i, status, n):
    return Turn(message={**python(f'step {i}'), 'content': f'turn {i}'}, observation='x'*n, run={'status': status} if status else None)


HISTORY = st.lists(st.tuples(st.sampled_from(['ok', 'error', 'memory', 'killed', None]), st.integers(0, 300)), min_size=1, max_size=9)


@given(HISTORY, st.integers(0, 4000))
def test_failed_executions_leave_first(history, budget):
    prompt, turns = [{'role': 'user', 'content': 'Predict.'}], [turn(i, status, n) for i, (status, n) in enumerate(history)]
    messages = fit_context(prompt, turns, budget=budget)
    left = [int(m['content'].split()[1]) for m in messages if m['role'] == 'assistant']
    assert messages == [*prompt, *(m for i in left for m in turn_messages(turns[i]))] # whole turns, in their order
    assert (left[-1] == len(turns) - 1 and sum(map(count_chars, messages)) <= budget) or left == [len(turns) - 1]
    gone, is_failed = sorted(set(range(len(turns))) - set(left)), [s not in ('ok', None) for s, _ in history]
    if any(not is_failed[i] for i in gone): assert not any(is_failed[i] for i in left[:-1])
    for kind in (True, False): # of each kind, the oldest are gone
        ours = [i for i in range(len(turns) - 1) if is_failed[i] is kind]
        assert [i for i in ours if i in gone] == ours[:sum(i in gone for i in ours)]


def test_a_rollout_shows_what_fits_and_records_all(task):
    policy = Script(*(python(f'print({i})\n' + 'raise ValueError'*(i in (1, 2))) for i in range(5)), say('submit'))
    whole = rollout(SandEnv(task, limits=QUICK), policy, task_id=task.task_id, seed=0)[0]
    budget = sum(map(count_chars, policy.seen[-1])) - 10
    short = Script(*policy.messages)
    said, _ = rollout(SandEnv(task, limits=QUICK), short, task_id=task.task_id, seed=0, budget=budget)
    assert said.messages == whole.messages and max(sum(map(count_chars, seen)) for seen in short.seen) <= budget
    assert 'print(1)' not in json.dumps(short.seen[-1]) and 'print(0)' in json.dumps(short.seen[-1])


# ---- reasons

def test_each_way_to_be_wrong_has_its_reason_and_pays_the_format_only(task, texts):
    header, *rows = texts['constant'].splitlines()
    wrong = {'missing_submission': None, 'unreadable': '', 'bad_columns': '\n'.join([header + 'x', *rows]), 'duplicate_ids': '\n'.join([header, *rows, rows[0]]),
             'bad_ids': '\n'.join([header, *rows[1:]]), 'bad_values': '\n'.join([header, rows[0].split(',')[0] + ',many', *rows[1:]]),
             'not_finite': '\n'.join([header, rows[0].split(',')[0] + ',inf', *rows[1:]])}
    for reason, text in wrong.items():
        said, verdict = play(task, hand_in(text) if text is not None else python('pass'), say('score'), say('submit'))
        assert (verdict.reason, reward(verdict, said, preset='paper').total) == (reason, .1), reason
        assert reason in said.turns[1].observation


# ---- policies

@pytest.mark.parametrize('name', [n for n in (*player_names(), *cheat_names()) if n != 'sleeper'])
def test_every_scripted_policy_ends_an_episode(task, name):
    episode = play_episode(task, parse_policy(f'scripted:{name}')(task), PlaySettings(timeout_s=30))
    assert episode.trajectory.stop_reason == 'submitted' and episode.reward.is_scored
    expected = {'crasher': .1, 'wrong-columns': .1, 'nan': .1, 'insider': 1.}
    if name in expected: assert episode.reward.total == expected[name]
    assert f'scripted:{name}' in show_episode(episode)


def test_the_sleeper_is_masked(task):
    episode = play_episode(task, any_player('sleeper'), PlaySettings(timeout_s=1))
    assert episode.trajectory.timed_out and episode.reward.total is None and 'leaves its group' in show_episode(episode)


@pytest.mark.parametrize('text,said', [('', 'scripted:NAME'), ('forest', 'chat:URL#MODEL'), ('scripted:', 'score-forger'), ('scripted:god', 'boosting'), ('replay:', 'replay:FILE'),
    ('replay:/nonexistent', 'No such file'), ('local:', 'local:DIR'), ('local:/nonexistent', 'config.json'), ('chat:8000', 'URL#MODEL'), ('Scripted:forest', 'scripted:NAME')])
def test_wrong_policies_say_what_was_expected(text, said):
    with pytest.raises(PolicyError, match=said): parse_policy(text)


def test_a_recorded_episode_plays_again(task, tmp_path):
    first = play_episode(task, any_player('linear'), PlaySettings())
    append_record(tmp_path/'a.jsonl', first)
    (tmp_path/'b.jsonl').write_text(to_jsonl([first.trajectory]))
    for name in 'ab':
        again = play_episode(task, parse_policy(f'replay:{tmp_path}/{name}.jsonl')(task), PlaySettings())
        assert (again.verdict, again.reward) == (first.verdict, first.reward) and again.trajectory.messages == first.trajectory.messages
    assert again.trajectory.policy == 'replay:scripted:linear'
    with pytest.raises(PolicyError, match=task.task_id): replay_policy(read_transcripts(tmp_path/'a.jsonl'), 'other')
    (tmp_path/'c.jsonl').write_text('{"task_id": 1}\n')
    with pytest.raises(PolicyError, match='recorded trajectory'): read_transcripts(tmp_path/'c.jsonl')


def test_a_local_model_speaks_text(tiny_model):  # noqa: F811
    policy = LocalPolicy(tiny_model, max_new_tokens=6)
    rngs = [np.random.default_rng(0) for _ in range(2)]
    said = [policy.act([{'role': 'user', 'content': 'Say hello.'}], tools=SandEnv.tools, rng=rng) for rng in rngs]
    assert said[0] == said[1] and said[0]['role'] == 'assistant' and isinstance(said[0]['content'], str) and policy.name == f'local:{tiny_model.name}'
    with pytest.raises(PolicyError, match='tokens of conversation'): policy.act([{'role': 'user', 'content': 'word '*9000}])


@given(st.text(max_size=60), st.sampled_from(['', '<think>a</think>', '<think>', '<tool_call>', '<tool_call>python<code>', '<tool_call>{"name": "score"', '</think>']))
def test_any_text_is_read(text, start):
    message = with_calls({'role': 'assistant', 'content': start + text})
    assert all(isinstance(c['function']['name'], str) and isinstance(json.loads(c['function']['arguments']), dict | list | str | int | float | None)
               for c in message.get('tool_calls', ()))
    assert [m['role'] for m in as_text([message], SandEnv.tools)] == ['assistant']


@given(st.text(max_size=60).filter(lambda t: '<code>' not in t and '</code>' not in t and 'tool_call>' not in t and t == t.strip('\n') and t))
def test_code_survives_the_way_through_text(code):
    back = with_calls(as_text([python(code)])[0] | {'role': 'assistant'})
    assert json.loads(back['tool_calls'][0]['function']['arguments'])['code'] == code


# ---- an OpenAI-compatible server

class Stub:
    "Answers with native tool calls, in turn; a number is an HTTP error."
    def __init__(self, *replies):
        self.asked, left = [], list(replies)
        outer = self
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args): pass
            def do_POST(self):
                outer.asked.append(json.loads(self.rfile.read(int(self.headers['Content-Length']))))
                reply = left[min(len(outer.asked), len(left)) - 1]
                code = reply if isinstance(reply, int) else 200
                body = {'error': {'message': 'no'}} if code != 200 else {'id': 'x', 'object': 'chat.completion', 'created': 0, 'model': 'm',
                    'choices': [{'index': 0, 'finish_reason': 'stop', 'message': reply}], 'usage': {'prompt_tokens': 1, 'completion_tokens': 1, 'total_tokens': 2}}
                data = json.dumps(body).encode()
                self.send_response(code)
                self.send_header('Content-Type', 'application/json')
                self.send_header('Content-Length', str(len(data)))
                self.end_headers()
                self.wfile.write(data)
        self.http = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.name = f'chat:http://127.0.0.1:{self.http.server_port}/v1#m'
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
    def __enter__(self): return self
    def __exit__(self, *exc):
        self.http.shutdown()
        self.http.server_close()


def test_a_model_behind_an_endpoint_plays(task, texts, shell):
    with Stub(hand_in(texts['noise 0']), say('score'), say('submit')) as server:
        code, out, err = shell('sand', 'play', task.dir, '--policy', server.name, '--json')
    found = json.loads(out)
    assert code == 0 and err == '' and found['reward']['total'] == 1 and found['trajectory']['policy'] == server.name
    assert {t['function']['name'] for t in server.asked[0]['tools']} == {'python', 'score', 'submit'}
    assert server.asked[1]['messages'][-1]['role'] == 'tool' and len(server.asked) == 3


def test_an_endpoint_that_fails_is_one_line(task, corpus, shell):
    with Stub(400) as server:
        code, out, err = shell('sand', 'play', task.dir, '--policy', server.name)
        assert code == 1 and out == '' and err.startswith('sandsmith: ') and err.count('\n') == 1 and 'got 400' in err
        code, out, _ = shell('sand', 'play', corpus.dir, '--policy', server.name, '--json')
    assert code == 1 and json.loads(out)['summary'] == {'n': 2, 'n_unscored': 2, 'n_timed_out': 0, 'n_valid': 0, 'n_median': 0, 'n_medal': 0, 'n_gold': 0, 'mean_total': None}


# ---- many

def test_many_episodes_come_in_order_and_a_few_are_held(corpus):
    begun = []
    def tasks():
        for i in range(12):
            begun.append(i)
            yield corpus.tasks[i % 2]
    episodes = play_many(tasks(), parse_policy('scripted:constant'), PlaySettings(), workers=3)
    first = next(episodes)
    assert len(begun) == 6
    ids = [e.task.task_id for e in (first, *episodes)]
    assert ids == [corpus.tasks[i % 2].task_id for i in range(12)]


def test_parallel_episodes_are_those_played_one_by_one(corpus):
    found = [[(e.trajectory.messages, e.verdict, e.reward) for e in play_many(corpus.tasks, parse_policy('scripted:linear'), PlaySettings(), workers=w)] for w in (1, 4)]
    assert found[0] == found[1]


# ---- the command


def test_a_trajectory_as_a_person_reads_it(task, shell):
    code, out, err = shell('sand', 'play', task.dir, '--policy', 'scripted:boosting')
    assert code == 0 and err == ''
    order = [out.index(part) for part in (task.task_id, 'turn 1', 'thought', 'python', 'observation', 'status: ok', 'score so far', 'turn 2', 'turn 3', 'verdict', 'reward', 'total')]
    assert order == sorted(order)
    code, out, _ = shell('sand', 'play', task.dir, '--policy', 'scripted:crasher')
    assert code == 0 and 'malformed: bad_ids' in out # a bad policy is no failure of the command


@pytest.mark.parametrize('args,said', [('--policy forest', '--policy forest: expected'), ('--policy scripted:forest --feedback all', '--feedback all: expected one of'),
    ('--policy scripted:forest --submission first', 'last, best'), ('--policy scripted:forest --preset build', 'paper, release, sparse'), ('--policy scripted:forest --timeout 0', '--timeout 0'),
    ('--policy scripted:forest --out x.csv', 'FILE.parquet or FILE.jsonl'), ('--policy scripted:forest --resume', '--resume'), ('--policy scripted:forest --context 10', '--context'),
    ('--policy scripted:forest --max-turns 0', 'greater than or equal'), ('', "Missing option '--policy'")])
def test_wrong_usage_is_2(task, shell, args, said):
    code, out, err = shell('sand', 'play', task.dir, *args.split())
    assert code == 2 and out == '' and err.count('\n') == 1 and said in err


def test_a_corpus_is_played_kept_and_resumed(corpus, shell, tmp_path):
    lines, table = tmp_path/'played.jsonl', tmp_path/'played.parquet'
    args = ('sand', 'play', corpus.dir, '--policy', 'scripted:forest', '--submission', 'best')
    code, out, _ = shell(*args, '--out', lines)
    assert code == 0 and out.count('\n') == 3 and out.splitlines()[-1].startswith('n 2, unscored 0')
    whole = lines.read_bytes()
    lines.write_bytes(whole[:whole.index(b'\n') + 40]) # killed in the second line
    assert shell(*args, '--out', lines)[0] == 2
    code, out, _ = shell(*args, '--out', lines, '--resume')
    assert code == 0 and out.count('\n') == 2 and 'n 2,' in out
    drop = lambda text: [{**json.loads(line), 'trajectory': None} for line in text.splitlines()]
    assert drop(lines.read_bytes()) == drop(whole) and [r['task_id'] for r in read_records(lines)] == [t.task_id for t in corpus.tasks]
    assert shell('sand', 'play', corpus.dir, '--policy', 'scripted:constant', '--out', lines, '--resume')[0] == 2
    assert shell('sand', 'play', corpus.dir, '--policy', f'replay:{lines}', '--submission', 'best', '--out', table, '--json')[0] == 0
    df = pl.read_parquet(table)
    assert df['task_id'].n_unique() == 2 and df.height == 6 and set(df['total']) == {json.loads(line)['reward']['total'] for line in lines.read_text().splitlines()}


def test_odd_text_reaches_terminal_and_files_whole(task, tmp_path):
    from sandsmith.rl.play import Episode
    said, verdict = play(task, say('submit', thought='\ud800 \x1b[2J \u202e'))
    episode = Episode(task=task, settings=PlaySettings(), trajectory=said, verdict=verdict, reward=reward(verdict, said, preset='paper'))
    story = show_episode(episode)
    assert '\x1b' not in story and '\u202e' not in story and story.encode()
    append_record(tmp_path/'odd.jsonl', episode)
    assert read_transcripts(tmp_path/'odd.jsonl') == [said]
    assert turns_frame([episode]).height == 1


def test_players_know_every_metric(tmp_path):
    namespace = {}
    exec(player_code('boosting').splitlines()[0], namespace)
    assert sorted(namespace['KINDS']) == sorted(metric_names()) and os.path.basename(tmp_path)


# ---- what endpoints and people do

@pytest.mark.parametrize('calls', [['x'], 5, {'a': 1}, [None, None], [{'function': {'name': 'python', 'arguments': '['*10**5}}]])
def test_calls_that_are_none_get_a_hint(task, calls):
    said, verdict = rollout(SandEnv(task), Script({'role': 'assistant', 'content': '', 'tool_calls': calls}), task_id='t', seed=0, max_turns=2)
    assert verdict.reason == 'missing_submission' and all(turn.observation.startswith(('Unknown call', 'Call exactly')) for turn in said.turns)
    episode = Episode(task=task, settings=PlaySettings(), trajectory=said, verdict=verdict, reward=reward(verdict, said, preset='paper'))
    assert 'turn 2' in show_episode(episode)


def test_arguments_may_be_an_object(task):
    call = {'id': 'a', 'type': 'function', 'function': {'name': 'python', 'arguments': {'code': 'print(6*7)'}}}
    said, _ = rollout(SandEnv(task), Script({'role': 'assistant', 'content': '', 'tool_calls': [call]}), task_id='t', seed=0, max_turns=1)
    assert '42' in said.turns[0].observation and '6*7' in said.turns[0].message['tool_calls'][0]['function']['arguments']


def test_an_episode_must_be_open(task):
    with pytest.raises(SandboxError, match='call reset'): SandEnv(task).step(say('score'))
    with pytest.raises(SandboxError, match='call reset'): SandEnv(task).finish()


def test_paths_are_hidden_in_linear_time():
    assert hide_machine('/'*300_000) == '/'*300_000


def test_no_file_but_a_record_is_cut(corpus, tmp_path):
    notes = tmp_path/'notes.jsonl'
    notes.write_text('mine\nand more')
    with pytest.raises(SpecError, match='expected recorded episodes'): read_records(notes)
    assert notes.read_text() == 'mine\nand more'


def test_a_task_that_is_damaged_does_not_end_the_corpus(corpus, tmp_path):
    copy = tmp_path/'task'
    shutil.copytree(corpus.tasks[0].dir, copy)
    (copy/'public'/'description.md').unlink()
    episodes = list(play_many([load_task(copy), corpus.tasks[1]], parse_policy('scripted:constant'), PlaySettings()))
    assert [e.verdict.reason for e in episodes] == ['task_failed', 'ok'] and 'description.md' in episodes[0].verdict.facts['error']
