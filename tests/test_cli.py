"The command line: exit codes, one line an error, JSON where it reports"
import json, os, subprocess, sys
from pathlib import Path
import pytest
import sandsmith.run.cli as cli
from sandsmith.core import RunError, SpecError
from sandsmith.sand.corpus import build_corpus

ROOT = Path(__file__).resolve().parent.parent

def is_one_line(err): return err.startswith('sandsmith: ') and err.count('\n') == 1

# --- wrong usage

@pytest.mark.parametrize('args,expected', [
    ('frob', 'No such command'), ('run --frob', 'No such option'), ('run -p n_tasks', 'expected NAME=VALUE'), ('run --profile quik', 'expected a profile of'),
    ('run -p n_task=3', 'did you mean n_tasks?'), ('run -p n_tasks=many', "n_tasks=many: expected a whole number"), ('run -p seed=-1', 'seed=-1: expected'),
    ('run -p run_dir=x', 'no parameter run_dir'), ('sand', 'Missing command'), ('sand grade', 'Missing argument'), ('sand generate --n 1', "Missing option '--out'"),
    ('sand generate --n 0 --out x', 'greater than or equal to 1'), ('sand verify nowhere', 'does not exist'), ('smith tasks --category lcn --band induction --n 1', 'expected one of'),
    ('smith tasks --category lcm --band hard --n 1', 'induction or evaluation'), ('smith check nowhere', 'does not exist'),
    ('run -p categories=nope', 'categories: expected some with a reference tool'), ('run -p policies=god', 'policies=god: expected some of constant'), ('run -p policies=', 'policies='),
    ('run -p model_dir=/nonexistent', 'model_dir=/nonexistent: expected a Hugging Face model folder'), ('run -p workers=0', 'workers=0: expected at least 1'), ('run -p group_size=1', 'group_size'),
    ('run -p n_tasks=0', 'n_tasks=0: expected at least 1'), ('run --profile ', '--profile: expected a value'), ('run --profile=', 'expected a value'), ('run --out ', '--out: expected a value'),
    ('sand generate --n 1 --out=', 'expected a value'), ('sand verify ', 'expected a value')])
def test_wrong_usage_is_one_line_and_2(shell, args, expected):
    code, out, err = shell(*args.split(' '))
    assert code == 2 and out == '' and is_one_line(err) and expected in err

@pytest.mark.parametrize('error,code,said', [(SpecError('bad spec'), 2, 'bad spec'), (RunError('broken'), 1, 'broken'), (OSError(28, 'No space left on device'), 1, 'No space left'),
    (PermissionError(13, 'Permission denied', 'x/y'), 1, 'Permission denied: x/y'), (KeyboardInterrupt('go on'), 130, 'go on')])
def test_errors_have_their_code(shell, monkeypatch, error, code, said):
    def fail(*args, **kwargs): raise error
    monkeypatch.setattr('sandsmith.run.pipeline.run_pipeline', fail)
    found, _, err = shell('run')
    assert found == code and is_one_line(err) and said in err

def test_an_option_is_suggested_only_when_it_is_near(shell):
    assert shell('run', '--json', '--bogus')[2] == 'sandsmith: No such option: --bogus\n'
    assert '--resume)' in shell('run', '--resum')[2]

def stop(*args, **kwargs): raise KeyboardInterrupt

@pytest.mark.parametrize('args,where', [('doctor', 'sandsmith.run.doctor.examine'), ('sand verify {tmp}', 'sandsmith.sand.verify.verify_task'),
    ('smith tasks --category lcm --band induction --n 1', 'sandsmith.smith.tasks.rows'), ('sand generate --out {tmp} --n 1', 'sandsmith.sand.corpus.build_corpus')])
def test_ctrl_c_is_one_line_and_130(shell, monkeypatch, tmp_path, args, where):
    monkeypatch.setattr(where, stop)
    args = args.format(tmp=tmp_path).split()
    code, out, err = shell(*args)
    assert code == 130 and out == '' and is_one_line(err) and 'interrupted' in err
    if 'generate' in args: assert err.endswith(f'sandsmith sand generate --out {tmp_path} --n 1 --resume`\n')

def test_debug_shows_the_traceback(monkeypatch):
    def fail(*args, **kwargs): raise RunError('broken')
    monkeypatch.setattr('sandsmith.run.pipeline.run_pipeline', fail)
    for args in (['--debug', 'run'], ['run', '--debug']):
        with pytest.raises(RunError): cli.main(args)

def test_help_and_version(shell):
    assert shell('--version') == (0, '0.1.0\n', '') and shell('run', '--help')[0] == 0
    assert shell()[1] == shell('--help')[1] and all(name in shell()[1] for name in ('run', 'doctor', 'sand', 'smith'))

def test_a_closed_pipe_is_no_error_message():
    code = 'import sys; from sandsmith.run.cli import main; main(sys.argv[1:])'
    command = f"{sys.executable} -c '{code}' smith tasks --category lcm --band induction --n 200 | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.count('\n') == 1 and 'Traceback' not in done.stderr and 'sandsmith:' not in done.stderr

# --- doctor

def test_doctor_reports(shell):
    code, out, _ = shell('doctor', '--json')
    report = json.loads(out)
    assert code == (0 if report['can_run'] else 1)
    parts = {f['part']: f for f in report['findings']}
    assert {'python', 'cores', 'memory', 'disk', 'cache', 'isolation', 'model', 'kernel', 'torch', 'gpu', 'unsloth', 'vllm', 'quarto'} == parts.keys()
    assert all(f['note'] for f in parts.values())
    assert shell('doctor')[1].count('\n') == len(parts) + 1

def test_doctor_names_what_is_lacking(shell, monkeypatch):
    monkeypatch.setattr('sandsmith.run.doctor.explain_isolation', lambda: {'tier': 'none', 'layers': [], 'faults': [['A', 'no bwrap']]})
    code, out, _ = shell('doctor')
    assert code == 1 and 'LACK isolation' in out and 'CANNOT' in out

def test_doctor_lists_everything_without_a_cache(shell, monkeypatch):
    monkeypatch.setenv('SANDSMITH_CACHE', '/dev/null/cache')
    code, out, err = shell('doctor')
    assert code == 1 and err == '' and 'LACK cache' in out and 'SANDSMITH_CACHE' in out and 'quarto' in out and 'CANNOT' in out
    assert shell('smith', 'tasks', '--category', 'lcm', '--band', 'induction', '--n', 1)[2].startswith('sandsmith: cannot make the cache folder /dev/null/cache')

# --- sand

@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    return build_corpus(tmp_path_factory.mktemp('corpus')/'corpus', n=1, seed=3, modalities=['tabular'], workers=1)

def test_sand_looks_at_a_corpus(shell, corpus):
    task = corpus.tasks[0]
    code, out, _ = shell('sand', 'stats', corpus.dir, '--json')
    assert code == 0 and json.loads(out)['n_tasks'] == 1 and json.loads(out)['n_broken_ladders'] == 0
    assert 'tabular 1' in shell('sand', 'stats', corpus.dir)[1]
    code, out, _ = shell('sand', 'show', task.dir, '--json')
    assert code == 0 and list(json.loads(out)['thresholds']) == ['median', 'bronze', 'silver', 'gold']
    assert task.spec.hidden_rule_logic in shell('sand', 'show', task.dir)[1]

def test_sand_verify(shell, corpus, tmp_path):
    code, out, _ = shell('sand', 'verify', corpus.dir, '--json')
    assert (code, json.loads(out)) == (0, {'n_tasks': 1, 'problems': []})
    broken = tmp_path/corpus.tasks[0].task_id
    subprocess.run(['cp', '-r', corpus.tasks[0].dir, broken], check=True)
    with (broken/'public'/'train.csv').open('a') as f: f.write('1,2\n')
    code, out, _ = shell('sand', 'verify', broken, '--json')
    assert code == 1 and 'train.csv' in json.dumps(json.loads(out)['problems'])
    assert shell('sand', 'verify', tmp_path)[0] == 1

def test_sand_grade(shell, corpus, tmp_path):
    task = corpus.tasks[0]
    code, out, _ = shell('sand', 'grade', task.dir, task.public_dir/'sample_submission.csv', '--json')
    assert code == 0 and json.loads(out)['status'] == 'scored'
    assert shell('sand', 'grade', task.dir, tmp_path/'none.csv') == (1, 'missing: missing_submission: expected a submission file, found none\n', '')

def test_sand_generate(shell, tmp_path):
    args = ('sand', 'generate', '--out', tmp_path/'c', '--n', 1, '--seed', 3, '--workers', 1, '--json')
    code, out, err = shell(*args)
    assert code == 0 and json.loads(out)['n'] == 1 and err == ''
    code, _, err = shell(*args)
    assert code == 2 and 'not empty' in err
    before = sorted((p, p.read_bytes()) for p in (tmp_path/'c').rglob('*') if p.is_file())
    assert shell(*args, '--resume')[0] == 0
    assert before == sorted((p, p.read_bytes()) for p in (tmp_path/'c').rglob('*') if p.is_file())

# --- smith

def test_smith_rows_and_grades(shell, tmp_path):
    code, out, _ = shell('smith', 'tasks', '--category', 'lcm', '--band', 'evaluation', '--n', 3, '--seed', 1)
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(rows) == 3 and {'id', 'category', 'band', 'question', 'answer', 'grader'} <= rows[0].keys()
    (tmp_path/'rows.jsonl').write_text(out)
    answers = [{'id': rows[0]['id'], 'answer': rows[0]['answer']}, {'id': rows[1]['id'], 'answer': 'no idea'}]
    (tmp_path/'answers.jsonl').write_text('\n'.join(map(json.dumps, answers)))
    code, out, _ = shell('smith', 'grade', tmp_path/'rows.jsonl', tmp_path/'answers.jsonl', '--json')
    assert code == 0 and [r['score'] for r in json.loads(out)] == [1., 0., 0.] and json.loads(out)[2]['why'] == 'no answer'
    (tmp_path/'answers.jsonl').write_text('{"id": "nobody", "answer": 1}')
    assert shell('smith', 'grade', tmp_path/'rows.jsonl', tmp_path/'answers.jsonl')[0] == 2
    (tmp_path/'answers.jsonl').write_text('{"id": 1}\n')
    assert 'line 1: expected an object with id and answer' in shell('smith', 'grade', tmp_path/'rows.jsonl', tmp_path/'answers.jsonl')[2]

_GOOD = '''```python
def lcm(numbers: list):
    return 1
```
```json
{"type": "function", "function": {"name": "lcm", "description": "Lcm.", "parameters": {"type": "object",
 "properties": {"numbers": {"type": "array", "items": {"type": "integer"}, "description": "Numbers."}}, "required": ["numbers"]}}}
```'''

def test_smith_check(shell, tmp_path):
    (tmp_path/'good.md').write_text(_GOOD)
    (tmp_path/'some.jsonl').write_text('\n'.join(json.dumps({'id': i, 'response': text}) for i, text in enumerate([_GOOD, 'nothing'])))
    assert shell('smith', 'check', tmp_path/'good.md')[0] == 0
    code, out, _ = shell('smith', 'check', tmp_path/'good.md', tmp_path/'some.jsonl', '--json')
    assert code == 1 and [v['step1_fail'] for v in json.loads(out)] == [False, False, True] and json.loads(out)[2]['id'] == '1'
    (tmp_path/'bad.jsonl').write_text('{')
    assert shell('smith', 'check', tmp_path/'bad.jsonl')[0] == 2

_LINES = {'no UTF-8': b'{"id": "a\xff", "response": 1}', 'nested': b'['*100_000, 'list id': b'{"id": [1], "response": 1}', 'truth id': b'{"id": true, "response": 1}',
    'long number': b'{"id": 1' + b'0'*5000 + b', "response": 1}', 'list': b'[1]', 'half': b'{"id": 1, "resp'}

@pytest.mark.parametrize('line', _LINES.values(), ids=_LINES)
def test_bad_lines_are_named(shell, tmp_path, line):
    (tmp_path/'bad.jsonl').write_bytes(b'{"id": 1, "response": ""}\n' + line + b'\n')
    code, out, err = shell('smith', 'check', tmp_path/'bad.jsonl')
    assert code == 2 and out == '' and is_one_line(err) and 'bad.jsonl line 2' in err

def test_lines_end_with_a_newline_alone(shell, tmp_path):
    (tmp_path/'some.jsonl').write_text(json.dumps({'id': 'a\u2028b', 'response': _GOOD}, ensure_ascii=False) + '\r\n\n')
    code, out, _ = shell('smith', 'check', tmp_path/'some.jsonl', '--json')
    assert code == 0 and json.loads(out)[0]['id'] == 'a\u2028b'

def test_ids_of_two_kinds_are_compared_as_text(shell, tmp_path):
    row = dict(category='lcm', band='induction', question='lcm of 2 and 3?', answer='6', grader='integer', args={'numbers': [2, 3]}, metadata={})
    (tmp_path/'rows.jsonl').write_text(json.dumps({'id': '7', **row}) + '\n' + json.dumps({'id': 'x', **row}))
    (tmp_path/'answers.jsonl').write_text('{"id": 7, "answer": "6"}\n{"id": "x", "answer": "5"}')
    code, out, _ = shell('smith', 'grade', tmp_path/'rows.jsonl', tmp_path/'answers.jsonl', '--json')
    assert code == 0 and [r['score'] for r in json.loads(out)] == [1., 0.]
    (tmp_path/'answers.jsonl').write_text('{"id": 8, "answer": "6"}\n{"id": "y", "answer": "5"}')
    assert shell('smith', 'grade', tmp_path/'rows.jsonl', tmp_path/'answers.jsonl')[0] == 2

def test_the_installed_command_works():
    done = subprocess.run([Path(sys.executable).with_name('sandsmith'), '--version'], capture_output=True, text=True, env={**os.environ, 'COLUMNS': '80'})
    assert done.returncode == 0 and done.stdout == '0.1.0\n'
