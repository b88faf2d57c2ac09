"Models as authors: a scripted server that errs in every way, and the small model behind a real one"
import json
import threading
import time
from collections import Counter, defaultdict
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from sandsmith.chat import ChatPolicy, Price, generate, load_model, prepare_model
import sandsmith.run.cli as cli
from sandsmith.core import PolicyError
from sandsmith.sand import agents, develop
from sandsmith.sand.agents import write_agent_task
from sandsmith.sand.corpus import load_corpus
from sandsmith.sand.grade import grade
from sandsmith.sand.hybrid import Desk, Fault, hybrid_spec
from sandsmith.sand.spec import TaskSpec
from sandsmith.sand.verify import verify_task

# ---------------------------------------------------------------- an OpenAI-compatible server

class Server:
    "Answers chat completions by `reply(messages) → text`, after as many failures as are queued."
    def __init__(self, reply):
        self.failures, self.seen, outer = [], [], self
        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'
            def log_message(self, *args): pass
            def send(self, code, data):
                body = json.dumps(data).encode()
                self.send_response(code)
                for name, value in (('Content-Type', 'application/json'), ('Content-Length', str(len(body)))): self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
                outer.seen.append(asked | {'key': self.headers['Authorization']})
                if outer.failures:
                    failure = outer.failures.pop(0)
                    if failure == 'slow': time.sleep(1.5)
                    else: return self.send(failure, {'error': {'message': f'no {failure}'}})
                text = reply(asked['messages'])
                usage = {'prompt_tokens': 100, 'completion_tokens': 10, 'total_tokens': 110}
                choice = {'index': 0, 'finish_reason': 'stop', 'message': {'role': 'assistant', 'content': text}}
                try: self.send(200, {'id': 'x', 'object': 'chat.completion', 'created': 0, 'model': asked['model'], 'choices': [choice], 'usage': usage})
                except BrokenPipeError: pass
        self.http = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.http.daemon_threads = True
        self.endpoint = f'chat:http://127.0.0.1:{self.http.server_port}/v1#scripted'
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
    def __enter__(self): return self
    def __exit__(self, *exc):
        self.http.shutdown()
        self.http.server_close()

ASK = [{'role': 'user', 'content': 'Hello'}]

def test_calls_are_counted_and_priced(monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', 'sesame')
    with Server(lambda messages: f'{len(messages)} heard') as server:
        policy = ChatPolicy(server.endpoint, price=Price(prompt=2., completion=10.))
        assert policy.act(ASK, rng=np.random.default_rng(0)) == {'role': 'assistant', 'content': '1 heard'}
    usage, = policy.usages
    assert (usage.n_prompt_tokens, usage.n_completion_tokens, usage.n_retries) == (100, 10, 0) and usage.cost == pytest.approx(3e-4)
    asked, = server.seen
    assert asked['key'] == 'Bearer sesame' and asked['model'] == 'scripted' and 0 <= asked['seed'] < 2**31 and policy.name == server.endpoint

@pytest.mark.parametrize('failures,n_retries', [([429], 1), ([503, 500], 2), (['slow'], 1)])
def test_busy_servers_are_asked_again(failures, n_retries):
    with Server(lambda messages: 'at last') as server:
        server.failures = list(failures)
        policy = ChatPolicy(server.endpoint, timeout_s=1.)
        assert policy.act(ASK)['content'] == 'at last' and policy.usages[0].n_retries == n_retries
        assert policy.usages[0].cost is None

@pytest.mark.parametrize('failures,said', [([401], 'OPENAI_API_KEY'), ([404], 'does it serve'), ([429]*9, 'try later'), ([400], 'got 400')])
def test_failures_end_in_one_line_with_advice(failures, said):
    with Server(lambda messages: 'never') as server:
        server.failures = list(failures)
        with pytest.raises(PolicyError, match=said): ChatPolicy(server.endpoint, n_retries=1).act(ASK)
    with pytest.raises(PolicyError, match='is the server running'): ChatPolicy(server.endpoint, n_retries=0, timeout_s=1.).act(ASK)
    with pytest.raises(PolicyError, match='URL#MODEL'): ChatPolicy('chat:qwen3')

# ---------------------------------------------------------------- four agents

SPEC = {'title': 'Valve Watch', 'domain': 'Water works', 'task_type': 'binary', 'metric': 'roc_auc', 'classes': [0, 1], 'n_train': 80,
        'target': {'name': 'fails', 'description': '1 when the valve failed within a month'},
        'features': {n: {'description': f'{n} of the valve', 'generation_logic': 'standard normal'} for n in ('wear', 'heat', 'age')},
        'hidden_rule_logic': 'fails when wear + 1.5 wear heat - 0.5 age + noise > 0', 'thresholds_logic': 'constant, one term, two terms, all terms'}
DEVELOPER = '''
import argparse, json, random
from pathlib import Path
import numpy as np
out = argparse.ArgumentParser()
out.add_argument('--out')
out = Path(out.parse_args().out)
rng = np.random.default_rng(7)
def auc(y, s): return float(np.mean(s[y == 1][:, None] > s[y == 0]) + np.mean(s[y == 1][:, None] == s[y == 0])/2)
X = rng.standard_normal((340, 3))
s = X[:, 0] + 1.5*X[:, 0]*X[:, 1] - .5*X[:, 2]
y = (s + .8*rng.standard_normal(340) > 0).astype(int)
part = rng.permutation(['feedback']*60 + ['reward']*200)
def write(name, header, rows):
    (out/name).parent.mkdir(parents=True, exist_ok=True)
    (out/name).write_text('\\n'.join(','.join(map(str, row)) for row in [header, *rows]) + '\\n')
names = ['wear', 'heat', 'age']
cells = [[i, *x.round(3).tolist()] for i, x in enumerate(X)]
write('public/train.csv', ['id', *names, 'fails'], [[*c, t] for c, t in zip(cells[:80], y)])
write('public/test.csv', ['id', *names], cells[80:])
write('public/sample_submission.csv', ['id', 'fails'], [[i, round(float(p), 3)] for i, p in zip(range(80, 340), rng.random(260))])
write('hidden/answer.csv', ['id', 'fails', 'part'], list(zip(range(80, 340), y[80:], part)))
keep = np.flatnonzero(part == 'reward') + 80
terms = [np.zeros(340), X[:, 0], X[:, 0] + .6*X[:, 0]*X[:, 1], s]
scores = [auc(y[keep], t[keep]) for t in terms]
ladder = dict(zip(('median_threshold', 'bronze_threshold', 'silver_threshold', 'gold_threshold'), scores))
(out/'hidden/threshold.json').write_text(json.dumps(ladder))
'''
EVALUATOR = '''
import argparse, csv, json, math, sys
from pathlib import Path
here = Path(__file__).resolve().parent
parser = argparse.ArgumentParser()
parser.add_argument('--submission_path', default='sample_submission.csv')
def main(path):
    truth = {r['id']: r for r in csv.DictReader(open(here/'answer.csv'))}
    rows = list(csv.DictReader(open(path)))
    if not rows or set(rows[0]) != {'id', 'fails'}: raise ValueError('columns')
    ids = [r['id'] for r in rows]
    if len(set(ids)) != len(ids) or set(ids) != set(truth): raise ValueError('ids')
    guess = {r['id']: float(r['fails']) for r in rows}
    if not all(map(math.isfinite, guess.values())): raise ValueError('not finite')
    keep = [i for i in truth if truth[i]['part'] == 'reward']
    pos, neg = ([guess[i] for i in keep if truth[i]['fails'] == t] for t in '10')
    score = sum((a > b) + (a == b)/2 for a in pos for b in neg)/(len(pos)*len(neg))
    return {'score': round(score, 5), **json.loads((here/'threshold.json').read_text()), 'is_lower_better': False}
try: said = main(parser.parse_args().submission_path)
except Exception as e: said = {'error': str(e) or type(e).__name__}
print(json.dumps(said))
sys.exit(0)
'''
PAGE = ('# Valve Watch\n\nWhich valve fails? Learn from train.csv, predict `fails` for test.csv.\n\nScored by ROC AUC; higher is better.\n\n'
        'Hand in a file like sample_submission.csv:\n\n```\nid,fails\n80,0.5\n```')
def fenced(code): return f'Sure.\n```python\n{code}```\nDone.'

def dna_of(messages):
    "A reply to the first question that keeps what the seed fixes."
    card = json.JSONDecoder().raw_decode(messages[1]['content'].split('): ', 1)[1])[0]
    return json.dumps(card | {'features': ['continuous, symmetric']*3})

GOOD = {
    'dna': dna_of,
    'scenarios': json.dumps({'scenarios': [{'domain': f'Works {i}', 'scenario': 'valves', 'justification': 'sensors at each valve'}
                                           for i in range(5)], 'choice': 2}),
    'mutations': json.dumps({'mutations': [{'name': n, 'severity': 2, 'words': 'two in a hundred'} for n in ('gaps', 'slips', 'noise')]}),
    'spec': json.dumps(SPEC), 'developer': fenced(DEVELOPER), 'engineer': fenced(EVALUATOR), 'writer': PAGE}
MARKS = {'dna': 'Forget its story', 'scenarios': 'Name five different', 'mutations': 'Name three ways', 'spec': 'Write the concrete spec',
         'developer': 'generate_task_env.py, that makes', 'engineer': 'evaluator.py, that scores', 'writer': 'the page of this competition'}

def agents_server(**first):
    "A server whose first replies of a role are those given; then it is right."
    queues = {role: list(first.get(role, ())) for role in GOOD}
    def reply(messages):
        role = next(r for r, mark in MARKS.items() if mark in messages[1]['content'])
        text = queues[role].pop(0) if queues[role] else GOOD[role]
        return text(messages) if callable(text) else text
    return Server(reply)

def author(tmp_path, **first):
    "(task or the fault, stage, outcomes by role)"
    stages = []
    with agents_server(**first) as server:
        desk = Desk(policy=ChatPolicy(server.endpoint, price=Price(prompt=1., completion=1.)), log_path=tmp_path/'calls.jsonl', index=3)
        try: found = write_agent_task(desk, 5, 0, tmp_path/'tasks', modalities=['tabular'], enter=stages.append)
        except Fault as fault: found = fault
    outcomes = defaultdict(list)
    for call in desk.calls: outcomes[call['role'].split(' ')[0]].append(call['outcome'])
    assert [json.loads(line) for line in (tmp_path/'calls.jsonl').read_text().splitlines()] == desk.calls
    return found, stages[-1], dict(outcomes)

def edit(code, old, new):
    assert old in code
    return fenced(code.replace(old, new))

BAD_DEVELOPERS = {
    'no_code': 'I would rather not.',
    'syntax_error': fenced('import os as\n'),
    'crash': edit(DEVELOPER, "names = ['wear'", "1/0\nnames = ['wear'"),
    'timeout': fenced('while True: pass\n'),
    'wrong_files': edit(DEVELOPER, 'keep = np', "write('public/answer.csv', ['id'], [])\nkeep = np"),
    'wrong_columns': edit(DEVELOPER, "['id', *names], cells[80:]", "['id', *names, 'fails'], [[*c, t] for c, t in zip(cells[80:], y[80:])]"),
    'wrong_rows': edit(DEVELOPER, 'zip(cells[:80], y)', 'zip(cells[:70], y)'),
    'bad_answers': edit(DEVELOPER, 'y[80:], part', 'y[80:] + 4, part'),
    'bad_sample': edit(DEVELOPER, 'round(float(p), 3)', "'maybe'"),
    'bad_thresholds': edit(DEVELOPER, 'json.dumps(ladder)', "'[]'"),
    'not_monotone': edit(DEVELOPER, 'scores = [auc(y[keep], t[keep]) for t in terms]', 'scores = [.5, .9, .8, .95]'),
    'lottery': edit(DEVELOPER, 'json.dumps(ladder)', "json.dumps({**ladder, 'median_threshold': .5, 'bronze_threshold': .52})"),
    'not_repeatable': edit(DEVELOPER, 'default_rng(7)', 'default_rng()'),
}
@pytest.fixture(autouse=True)
def short_limits(monkeypatch):
    "Hanging scripts are stopped early."
    limits = develop.LIMITS['developer']
    monkeypatch.setitem(develop.LIMITS, 'developer', type(limits)(timeout_s=3, memory_mb=limits.memory_mb))
    monkeypatch.setitem(develop.LIMITS, 'evaluator', type(limits)(timeout_s=2))

def test_a_model_that_is_right_makes_a_sound_task(tmp_path):
    task, stage, outcomes = author(tmp_path)
    assert stage == 'write' and outcomes == {'strategist': ['ok']*4, 'developer': ['ok'], 'engineer': ['ok'], 'writer': ['ok']}
    assert verify_task(task.dir) == []
    manifest = json.loads((task.dir/'task.json').read_text())
    assert manifest['author'] == 'agents' and max(manifest['calibration']['random_rates'].values()) <= .05
    assert sorted(p.name for p in task.public_dir.iterdir()) == ['description.md', 'sample_submission.csv', 'test.csv', 'train.csv']
    assert task.spec.family == 'agents' and 'gaps' in task.spec.mutations[0]
    assert grade(task.dir, task.public_dir/'sample_submission.csv', part='feedback').status == 'scored'

@pytest.mark.parametrize('reason', BAD_DEVELOPERS)
def test_the_developer_recovers_from_each_fault(tmp_path, reason):
    if reason in ('syntax_error', 'not_monotone', 'timeout'): # the whole way, over HTTP
        task, _, outcomes = author(tmp_path, developer=[BAD_DEVELOPERS[reason]])
        assert outcomes['developer'] == [reason, 'ok'] and not isinstance(task, Fault)
    else:
        with pytest.raises(Fault) as fault: develop.check_developer(BAD_DEVELOPERS[reason], spec_of())
        assert fault.value.reason == reason, fault.value

def spec_of() -> TaskSpec:
    "The spec that the scripted strategist writes."
    reply = agents.SpecReply.model_validate(SPEC)
    return agents._as_spec(reply, agents.plan_task(5, 0, modalities=['tabular']), ['gaps'], 5, 0)

def test_five_attempts_are_all_that_the_developer_has(tmp_path):
    fault, stage, outcomes = author(tmp_path, developer=[BAD_DEVELOPERS['no_code']]*4 + [BAD_DEVELOPERS['crash']])
    assert isinstance(fault, Fault) and stage == 'develop' and fault.reason == 'crash' and 'ZeroDivisionError' in str(fault)
    assert outcomes['developer'] == ['no_code']*4 + ['crash'] and 'engineer' not in outcomes
    assert not (tmp_path/'tasks').exists()

@cache
def built_once() -> dict:
    "What the right developer makes."
    return develop.check_developer(GOOD['developer'], spec_of())

BAD_ENGINEERS = {
    'syntax_error': fenced('def main(:\n'),
    'crash': edit(EVALUATOR, "sys.exit(0)", "sys.exit(3)"),
    'bad_output': edit(EVALUATOR, 'print(json', "print('scoring …')\nprint(json"),
    'timeout': edit(EVALUATOR, 'try: said', 'while True: pass\ntry: said'),
    'accepts_bad': fenced(EVALUATOR.replace('len(set(ids)) != len(ids) or set(ids) != set(truth)', 'not set(ids) <= set(truth)')
                          .replace('in truth if truth[i]', 'in guess if truth[i]')),
    'wrong_score': edit(EVALUATOR, "if truth[i]['part'] == 'reward'", ''),
}

@pytest.mark.parametrize('reason', BAD_ENGINEERS)
def test_the_engineer_is_caught(reason):
    built = built_once()
    with pytest.raises(Fault) as fault: agents.check_engineer(BAD_ENGINEERS[reason], spec_of(), built)
    assert fault.value.reason == reason, fault.value

def test_three_attempts_are_all_that_the_others_have(tmp_path):
    fault, stage, outcomes = author(tmp_path, engineer=[BAD_ENGINEERS['bad_output']]*3, scenarios=['{}', 'no'])
    assert isinstance(fault, Fault) and (stage, fault.reason) == ('evaluate', 'bad_output') and outcomes['engineer'] == ['bad_output']*3
    assert Counter(outcomes['strategist']) == {'ok': 4, 'no_json': 2}

@pytest.mark.parametrize('page,reason', [
    ('Good luck.', 'page_incomplete'), (PAGE.replace('higher', 'lower'), 'page_incomplete'), (PAGE + '\nSee answer.csv.', 'page_leaks'),
    (PAGE + f'\n{SPEC["hidden_rule_logic"]}', 'page_leaks')])
def test_pages_say_what_they_must_and_no_more(page, reason):
    built = built_once()
    assert agents.check_page(f'```markdown\n{PAGE}\n```', spec_of(), built) == PAGE + '\n'
    with pytest.raises(Fault) as fault: agents.check_page(page, spec_of(), built)
    assert fault.value.reason == reason

@pytest.mark.parametrize('change', [{'metric': 'vibes'}, {'classes': None}, {'classes': [0, 1, 2]}, {'n_train': 5000},
                                    {'target': {'name': 'wear', 'description': 'wear itself'}}])
def test_specs_are_held_to_the_schema(change):
    with pytest.raises(Fault) as fault: agents.read_reply(json.dumps(SPEC | change), agents.SpecReply)
    assert fault.value.reason == 'bad_fields'

# ---------------------------------------------------------------- hybrid with a real small model

def test_a_small_model_decides_or_is_rejected_with_a_reason(tmp_path):
    smol = load_model(prepare_model())
    lock = threading.Lock()
    def reply(messages):
        with lock: return generate(smol, [messages], max_new_tokens=64, temperature=.3, seed=len(server.seen))[0].text
    ended = []
    with Server(reply) as server:
        for index in (1,):
            desk = Desk(policy=ChatPolicy(server.endpoint), log_path=tmp_path/'calls.jsonl', index=index)
            try: ended.append(hybrid_spec(desk, 11, index).family)
            except Fault as fault: ended.append(fault.reason)
            assert desk.totals()['n_calls'] == len(desk.calls) >= 2
    rows = [json.loads(line) for line in Path(tmp_path/'calls.jsonl').read_text().splitlines()]
    assert len(rows) == len(server.seen) and {r['index'] for r in rows} == {1}
    assert any('.' in end for end in ended), (ended, [(r['role'], r['outcome']) for r in rows])

# ---------------------------------------------------------------- corpora and the command line

def run_cli(capsys, *args):
    with pytest.raises(SystemExit) as stop: cli.main([str(a) for a in args])
    out, err = capsys.readouterr()
    return stop.value.code, out, err

def test_a_corpus_by_agents_counts_its_costs(tmp_path, capsys):
    with agents_server(developer=[BAD_DEVELOPERS['no_code']]*5 + [BAD_DEVELOPERS['crash']]) as server:
        args = ['--n', 1, '--out', tmp_path/'c', '--author', 'agents', '--chat', server.endpoint.removeprefix('chat:'), '--price', '1/2', '--workers', 1]
        code, out, err = run_cli(capsys, 'sand', 'generate', *args)
    assert code == 0, err
    assert 'of 2 candidates' in out
    corpus = load_corpus(tmp_path/'c')
    assert corpus.funnel.select('stage', 'reason').rows() == [('develop', 'no_code'), ('accepted', 'ok')]
    code, out, _ = run_cli(capsys, 'sand', 'stats', tmp_path/'c', '--json')
    said = json.loads(out)
    assert [row['n'] for row in said['funnel']] == [2, 1, 1, 1] and [row['paper_n'] for row in said['funnel']] == [1200, 1119, 1106, 912]
    n_calls = 4 + 5 + 4 + 2 + 1 + 1
    assert said['cost']['n_calls'] == n_calls == len((tmp_path/'c'/'agent_calls.jsonl').read_text().splitlines())
    assert said['cost']['cost'] == pytest.approx(n_calls*(100 + 20)/1e6)
    assert run_cli(capsys, 'sand', 'verify', tmp_path/'c')[0] == 0
    assert 'evaluator runs' in run_cli(capsys, 'sand', 'stats', tmp_path/'c')[1]

def test_a_server_that_is_gone_is_our_fault_and_one_line(tmp_path, capsys):
    with agents_server() as server: endpoint = server.endpoint
    code, _, err = run_cli(capsys, 'sand', 'generate', '--n', 1, '--out', tmp_path/'c', '--author', 'hybrid', '--chat', endpoint, '--workers', 1)
    assert code == 1 and 'is the server running' in err and len(err.strip().splitlines()) == 1

@pytest.mark.parametrize('args,said', [
    ('--author wizard', 'expected one of'), ('--author agents', '--chat URL#MODEL'), ('--chat http://x#y', 'only by them'), ('--profile fair', 'balanced, paper'),
    ('--author hybrid --chat nowhere', 'URL#MODEL'), ('--split 3', 'two numbers'), ('--split 3/4', 'add up'), ('--split -1/2', 'from 0')])
def test_wrong_options_are_one_line(tmp_path, capsys, args, said):
    code, _, err = run_cli(capsys, 'sand', 'generate', '--n', 1, '--out', tmp_path/'c', *args.split(' '))
    assert code == 2 and said in err and err.count('\n') == 1 and not (tmp_path/'c').exists()
