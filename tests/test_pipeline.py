"The pipeline runner: parameters, resuming, and every way to fail, on toy stages; then the real notebooks with their tiny defaults"
import contextlib, fcntl, json, os, signal, subprocess, sys, time
from pathlib import Path
import nbformat, polars as pl, pytest
from hypothesis import given, strategies as st
from sandsmith.core import RunError, SpecError
from sandsmith.run.parameters import Profile, load_profile, load_stages, parse_value, profile_names, resolve_parameters
from sandsmith.run.pipeline import begin_run, command, read_manifest, run_pipeline

ROOT = Path(__file__).resolve().parent.parent

def write_stage(folder, name, *cells, parameters=''):
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c, id=f'cell-{i}') for i, c in enumerate((f"run_dir = ''\nseed = 0\n{parameters}", *cells))])
    nb.cells[0].metadata.tags = ['parameters']
    nbformat.write(nb, folder/f'{name}.ipynb')

@pytest.fixture
def toy(tmp_path):
    "One stage that does what the test says."
    (tmp_path/'stages').mkdir()
    write_stage(tmp_path/'stages', '02_wait', "import time, os, sys, signal\nfrom pathlib import Path", "exec(do)", parameters="do = ''\nnames = ['a']")
    return tmp_path/'stages'

@pytest.fixture
def two(toy):
    "A stage before it that counts how often it ran."
    write_stage(toy, '01_count', "from pathlib import Path", "with Path(run_dir, 'count.txt').open('a') as f: f.write('x'*n)", parameters='n = 1\nrate = 1e-3')
    return toy

def start(stages, *args, env=None, **kwargs):
    "The command line, in a process of its own, on these stages."
    code = ('import functools, sys\nfrom pathlib import Path\nimport sandsmith.run.pipeline as p\n'
        'p.run_pipeline = functools.partial(p.run_pipeline, stages_dir=Path(sys.argv[1]))\n'
        'from sandsmith.run.cli import main\nmain(["run", *sys.argv[2:]])')
    command = [sys.executable, '-c', code, str(stages), *map(str, args)]
    return subprocess.Popen(command, cwd=stages.parent, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)

def finish(process, timeout=600):
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err

def one_line(err): return [line for line in err.splitlines() if line.startswith('sandsmith: ')]

def wait_for(path, process, timeout=600):
    end = time.monotonic() + timeout
    while not path.exists():
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(.05)

# --- parameters

@given(st.integers(0, 10**12))
def test_whole_numbers_pass_as_text(n): assert parse_value('n', str(n), 3) == n and parse_value('n', n, 3) == n

@given(st.floats(0, 1e12))
def test_numbers_pass_as_text(x): assert parse_value('x', str(x), 1.) == x

@given(st.one_of(st.text(), st.booleans(), st.none(), st.lists(st.integers()), st.floats(), st.integers(max_value=-1)))
def test_a_value_of_another_type_is_refused_or_read(value):
    try: parsed = parse_value('n', value, 3)
    except SpecError as e: assert str(e).startswith('n=')
    else: assert type(parsed) is int and parsed >= 0

@pytest.mark.parametrize('value,default,expected', [('a,b', ['x'], ['a', 'b']), ('["a"]', ['x'], ['a']), ('1,2', [0], [1, 2]), ('True', False, True),
    ('false', True, False), ('1e-5', .1, 1e-5), ('2', .1, 2.), ('1e-5', 'text', '1e-5'), ('', 'text', ''), ('-3', -1, -3), ('none', None, None)])
def test_text_is_read_like_the_default(value, default, expected):
    assert parse_value('x', value, default) == expected and type(parse_value('x', value, default)) is type(expected)

@pytest.mark.parametrize('value,default', [('2.5', 1), ('-1', 1), ('nan', .5), ('inf', .5), ('yes', True), ('1', True), ('a,1', [1]), (True, 1), (1, 'text')])
def test_wrong_values_are_named(value, default):
    with pytest.raises(SpecError, match=f'x={value}: expected .*{default!r}'.replace('[', r'\[').replace(']', r'\]')): parse_value('x', value, default)

@pytest.mark.parametrize('name', profile_names())
def test_profiles_fit_the_notebooks(name):
    resolve_parameters(load_stages(), load_profile(name), {})
    assert load_profile(name).minutes.keys() <= {s.name for s in load_stages()}

def test_unknown_names_name_the_nearest(two):
    stages = load_stages(two)
    with pytest.raises(SpecError, match='did you mean rate'): resolve_parameters(stages, Profile(name='p'), {'rates': '1'})
    with pytest.raises(SpecError, match='expected one of'): resolve_parameters(stages, Profile(name='p'), {'zzzz': '1'})
    with pytest.raises(SpecError, match='run_dir'): resolve_parameters(stages, Profile(name='p'), {'run_dir': '/'})
    with pytest.raises(SpecError, match='stage count'): resolve_parameters(stages, Profile(name='p', parameters={'count': {'do': ''}}), {})
    with pytest.raises(SpecError, match='no parameter cuont'): resolve_parameters(stages, Profile(name='p', parameters={'cuont': {}}), {})

def test_stages_must_declare_what_we_set(tmp_path):
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell('1')]), tmp_path/'01_bare.ipynb')
    with pytest.raises(RunError, match='run_dir and seed'): load_stages(tmp_path)
    with pytest.raises(RunError, match='found none'): load_stages(tmp_path/'none')

# --- a run

def test_a_run_keeps_everything(two, tmp_path):
    code, out, err = finish(start(two, '--profile', 'tiny', '-p', 'n=3', '-p', 'seed=5', '--out', 'a {b}', '--json'))
    assert code == 0, err
    run, manifest = tmp_path/'a {b}', json.loads(out)
    assert manifest == read_manifest(run) and manifest['status'] == 'done' and manifest['seeds'] == {'count': 5, 'wait': 5}
    assert manifest['parameters']['count'] == {'n': 3, 'rate': .001, 'seed': 5}
    assert [s['stage'] for s in manifest['stages']] == ['count', 'wait'] and all(s['seconds'] > 0 and s['peak_mb'] > 10 for s in manifest['stages'])
    assert pl.read_parquet(run/'records'/'stages.parquet').columns == ['stage', 'seconds', 'peak_mb']
    assert (run/'count.txt').read_text() == 'xxx' and (run/'01_count.html').exists()
    assert str(tmp_path) not in (run/'01_count.ipynb').read_text() + (run/'01_count.html').read_text()
    assert '1/2 count: begun' in err and '2/2 wait: done' in err and not list(run.glob('*.log'))

def test_a_folder_is_not_used_twice(toy, tmp_path):
    stages, profile = load_stages(toy), load_profile('tiny')
    runs = [begin_run(stages, profile, {}, None, tmp_path/'reports') for _ in range(3)]
    assert len({path for path, _ in runs}) == 3 and all(m['run_id'].endswith('-tiny') for _, m in runs)
    with pytest.raises(SpecError, match='not empty'): begin_run(stages, profile, {}, runs[0][0], tmp_path)
    (tmp_path/'file').touch()
    with pytest.raises(RunError, match='cannot write to .*name another folder'): begin_run(stages, profile, {}, tmp_path/'file'/'run', tmp_path)

def test_the_kernel_is_this_python(toy, tmp_path):
    "A user's own kernel called python3 and start-up files change nothing; cells that are not to run do not."
    spec = tmp_path/'jupyter'/'kernels'/'python3'/'kernel.json'
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({'argv': ['/bin/false', '{connection_file}'], 'display_name': 'x', 'language': 'python'}))
    startup = tmp_path/'home'/'.ipython'/'profile_default'/'startup'
    startup.mkdir(parents=True)
    (startup/'00.py').write_text('import builtins; builtins.spoiled = True')
    write_stage(toy, '02_wait', "#| eval: false\nraise RuntimeError", "import nbdev; nbdev.nbdev_export(); raise RuntimeError",
        "import builtins, os, sys\nfrom pathlib import Path\nfacts = sys.executable, hasattr(builtins, 'spoiled'), os.environ['HF_HUB_OFFLINE']",
        "Path(run_dir, 'who.txt').write_text(repr(facts))")
    env = {'JUPYTER_PATH': str(tmp_path/'jupyter'), 'JUPYTER_PREFER_ENV_PATH': '0', 'HOME': str(tmp_path/'home')}
    code, _, err = finish(start(toy, '--profile', 'tiny', '--out', 'run', env=env))
    assert code == 0, err
    assert (tmp_path/'run'/'who.txt').read_text() == repr((sys.executable, False, '1'))

# --- every way to stop

@pytest.mark.parametrize('do,error,expected', [
    ("raise ValueError('broken\\nin two lines')", RunError, r'stage wait failed in cell \[4\] of .*02_wait.ipynb: ValueError: broken in two lines$'),
    ("from sandsmith.core import SpecError; raise SpecError('batch: expected a multiple of 4')", SpecError, 'batch: expected a multiple of 4'),
    ("os.kill(os.getpid(), signal.SIGKILL)", RunError, r'stage wait lost its kernel in cell \[4\]'),
    ("open('/dev/full', 'w').write('x'*10**6)", RunError, 'no space left on the disk of')])
def test_a_failed_stage_says_where(toy, tmp_path, do, error, expected):
    with pytest.raises(error, match=expected) as caught: run_pipeline('tiny', overrides={'do': do}, out_dir=tmp_path/'run', stages_dir=toy)
    assert '\n' not in str(caught.value)
    manifest = read_manifest(tmp_path/'run')
    assert manifest['status'] == 'failed' and manifest['stages'] == [] and manifest['error'] == str(caught.value)
    assert nbformat.read(tmp_path/'run'/'02_wait.ipynb', 4).cells

def test_a_failed_run_goes_on_as_it_began(two, tmp_path):
    again = dict(resume=True, reports_dir=tmp_path/'reports', stages_dir=two)
    do = "assert Path(run_dir, 'mended').exists()"
    with pytest.raises(RunError): run_pipeline('tiny', overrides={'n': '2', 'do': do}, reports_dir=tmp_path/'reports', stages_dir=two)
    run = next((tmp_path/'reports').iterdir())
    for change in ({'n': '3'}, {'seed': '1'}, {'do': ''}):
        with pytest.raises(SpecError, match='keeps its parameters'): run_pipeline(overrides=change, **again)
    with pytest.raises(SpecError, match='has profile tiny'): run_pipeline('quickstart', **again)
    with pytest.raises(RunError, match='no manifest'): run_pipeline(out_dir=tmp_path, **again)
    with (run/'.lock').open('w') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        with pytest.raises(RunError, match='another process'): run_pipeline(**again)
    write_stage(two, '03_more')
    with pytest.raises(RunError, match='other stages'): run_pipeline(**again)
    (two/'03_more.ipynb').unlink()
    (run/'mended').touch()
    assert run_pipeline('tiny', overrides={'n': '2'}, **again) == run
    assert (run/'count.txt').read_text() == 'xx' and read_manifest(run)['status'] == 'done' and read_manifest(run)['error'] is None
    with pytest.raises(RunError, match='no unfinished run'): run_pipeline(**again)

_MANIFESTS = {'list': '[]', 'null': 'null', 'object': '{}', 'status': '{"status": "running"}', 'half': '{"run_id": "x', 'no UTF-8': b'"\xff"'}

@pytest.mark.parametrize('text', _MANIFESTS.values(), ids=_MANIFESTS)
def test_a_damaged_manifest_is_one_line(toy, tmp_path, text):
    run = tmp_path/'reports'/'run'
    run.mkdir(parents=True)
    (run/'manifest.json').write_bytes(text if isinstance(text, bytes) else text.encode())
    for out_dir in (run, None):
        with pytest.raises(RunError, match='manifest.json.*start a new run') as caught:
            run_pipeline(out_dir=out_dir, resume=True, stages_dir=toy, reports_dir=tmp_path/'reports')
        assert '\n' not in str(caught.value)

def test_a_manifest_that_lost_a_part_is_one_line(two, tmp_path):
    begun = begin_run(load_stages(two), load_profile('tiny'), {}, tmp_path/'run', tmp_path)[1]
    def resume(manifest):
        (tmp_path/'run'/'manifest.json').write_text(json.dumps(manifest))
        with pytest.raises(RunError, match='start a new run'): run_pipeline(out_dir=tmp_path/'run', resume=True, stages_dir=two)
    for name in ('run_id', 'profile', 'status', 'parameters', 'stages'): resume({k: v for k, v in begun.items() if k != name})
    resume({**begun, 'parameters': {**begun['parameters'], 'count': {'n': 1, 'seed': 0}}})
    resume({**begun, 'parameters': {**begun['parameters'], 'count': 1}})
    resume({**begun, 'stages': ['count']})
    resume({**begun, 'profile': 'gone'})

def is_alive(pid):
    try: return Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[0] != 'Z'
    except (FileNotFoundError, ProcessLookupError): return False

def test_a_run_that_is_stopped_goes_on(two, tmp_path):
    "A rude kill, a polite one and Ctrl-C: no process stays, nothing that was finished is lost or redone."
    do, run = "Path(run_dir, 'pid').write_text(str(os.getpid())); Path(run_dir, 'mended').exists() or time.sleep(1000)", tmp_path/'a run'
    with contextlib.chdir(tmp_path): hint = command('run', '--resume', '--out', 'a run') # as the run sees it
    assert hint.endswith("sandsmith run --resume --out 'a run'")
    for sent in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        args = ('--resume',) if run.exists() else ('--profile', 'tiny', '-p', f'do={do}')
        process = start(two, *args, '--out', 'a run', start_new_session=True)
        wait_for(run/'pid', process)
        time.sleep(.2)
        if sent == signal.SIGINT: os.killpg(process.pid, sent) # as a terminal does it
        else: process.send_signal(sent)
        code, _, err = finish(process)
        kernel, end = int((run/'pid').read_text()), time.monotonic() + 60
        while is_alive(kernel): assert time.monotonic() < end, 'the kernel outlived its run'
        (run/'pid').unlink()
        if sent == signal.SIGKILL: assert code == -9 and read_manifest(run)['status'] == 'running'
        else:
            assert code == 130 and read_manifest(run)['status'] == 'interrupted'
            assert one_line(err) == [f'sandsmith: interrupted: go on with `{hint}`'] and 'Traceback' not in err
    (run/'mended').touch()
    run_pipeline(out_dir=run, resume=True, stages_dir=two)
    assert (run/'count.txt').read_text() == 'x' and read_manifest(run)['status'] == 'done'

# --- the real notebooks

@pytest.fixture(scope='module')
def tiny_run(tmp_path_factory):
    return run_pipeline('tiny', out_dir=tmp_path_factory.mktemp('tiny')/'run')

def test_the_real_pipeline_runs_with_tiny_parameters(tiny_run):
    manifest = read_manifest(tiny_run)
    assert [s['stage'] for s in manifest['stages']] == ['generate', 'inspect', 'train', 'evaluate', 'report'] and manifest['status'] == 'done'
    assert manifest['versions']['torch'] and manifest['versions']['trl']
    assert '<h1' in (tiny_run/'index.html').read_text()

_RECORDS = {
    'tasks': 'task_id family modality task_type metric direction n_train n_feedback n_reward title domain median bronze silver gold sample_score n_draws',
    'funnel': 'index family modality stage reason is_accepted',
    'pool': 'task_id baseline score population_score tier',
    'smith_rows': 'id category band question answer grader',
    'train_steps': 'phase step n loss step1_fail fn_mismatch param_mismatch syntax_error format eval_reward env_reward reward zero_variance clipped_ratio mean_tokens seconds',
    'rollouts': 'step prompt_id category sample response step1_fail fn_mismatch param_mismatch syntax_error format eval_reward env_reward n_tokens is_truncated',
    'heldout': 'stage prompt_id category sample response step1_fail fn_mismatch param_mismatch syntax_error format eval_reward env_reward n_tokens '
        'is_truncated',
    'episodes': 'task_id modality policy status score tier reason reward format execute median bronze silver gold n_turns seconds tier_isolation',
    'stages': 'stage seconds peak_mb'}

@pytest.mark.parametrize('name', _RECORDS)
def test_records_have_their_columns(tiny_run, name):
    df = pl.read_parquet(tiny_run/'records'/f'{name}.parquet')
    assert df.columns == _RECORDS[name].split() and df.height > 0

def test_executed_notebooks_hold_no_absolute_paths(tiny_run):
    for path in [*tiny_run.glob('*.ipynb'), *tiny_run.glob('*.html')]:
        text = path.read_text(encoding='utf-8')
        assert 'GGUF tensors' not in text, 'a progress bar is no result'
        assert str(tiny_run) not in text and str(ROOT) not in text, path.name
