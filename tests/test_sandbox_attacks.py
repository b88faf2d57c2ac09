"""Attacks of our own, in every way that jobs are run here. Each first does something harmless of the same kind, so that a sandbox in which
nothing works fails; what is left is looked for from outside; and after each the next job finds all as the first one did."""
import functools, json, os, resource, socket, time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sandsmith.core import Limits
from sandsmith.sandbox import call_tool, run, session
from test_sandbox import TIER, TOKEN, WAYS, WEAKER, owned_by, pool_of, use, world  # noqa: F401 (a fixture)

ATTACKS = Path(__file__).parent/'attacks_sandbox'
pytestmark = pytest.mark.skipif(TIER != 'A', reason='this machine does not allow all layers')
PRELUDE = '''
CTX = C = {!r}
ANSWER, TOKEN = C['answer'], C['token']
def pwn(message): print('PWNED', message, flush=True)
def blocked(message): print('blocked', str(message)[:200], flush=True)
def control(worked): print('control', bool(worked), flush=True)
'''
LIMITS = Limits(timeout_s=8, memory_mb=128, n_processes=16, file_mb=4, disk_mb=16, n_files=200)


@dataclass(frozen=True, kw_only=True)
class Case:
    "How an attack is run, and what its end may be."
    ends: tuple[str, ...] = ('ok',)
    ways: tuple[str, ...] = (*WAYS, *WEAKER)
    limits: Limits = LIMITS
    ctx: dict = field(default_factory=dict)
    collect: tuple[str, ...] = ()


def limits(**changes) -> Limits: return Limits(**{**vars(LIMITS), **changes})


CASES = dict(
    memory_of_children=Case(ways=tuple(WAYS), ends=('ok', 'memory', 'killed'), ctx=dict(n=8, mb=60)),
    memory_shared=Case(ways=tuple(WAYS), ends=('ok', 'memory', 'killed'), ctx=dict(n=8, mb=60)),
    memory_files=Case(ways=tuple(WAYS), limits=limits(file_mb=9), ctx=dict(most_mb=2*16 + 1)),
    disk_total=Case(ways=tuple(WAYS), ctx=dict(most_mb=16 + 1)),
    inode_bomb=Case(ways=tuple(WAYS), ctx=dict(tries=500, most=2*200 + 10)),
    sparse_files=Case(collect=('*.bin', 'out.txt')),
    stubborn_daemons=Case(collect=('beat',)),
    exec_chain=Case(collect=('beat',)),
    stopped_tree=Case(ends=('timeout',), limits=limits(timeout_s=.8)),
    rename_race=Case(collect=('*.csv', 'dir/**', 'dir/answer.csv', 'deep/x', '**')),
    hard_links=Case(collect=('*.csv',)),
    odd_names=Case(collect=('**',)),
    deep_folders=Case(ctx=dict(depth=180), collect=('**',)),
    kernel_calls=Case(), other_abis=Case(), namespaces=Case(), mounts=Case(), other_processes=Case(), open_files=Case(),
    forged_channel=Case(ends=('error',)), raise_limits=Case(), terminal=Case(), sockets=Case(), leftovers=Case(),
    interpreter_hooks=Case(ends=('error',)), privileges=Case(), kernel_files=Case(), change_outside=Case(),
    many_open_files=Case(ends=('ok', 'memory', 'killed')),
    thread_bomb=Case(ways=tuple(w for w in (*WAYS, *WEAKER) if w != 'C user'), ctx=dict(tries=200)),
)
OWN_TEST = ('memory_search', 'poison_next_step', 'tool_forger', 'tool_floods', 'tool_hangs', 'tool_odd_results')


def test_every_attack_is_used():
    files = sorted(ATTACKS.glob('*.py'))
    assert sorted([*CASES, *OWN_TEST]) == [p.stem for p in files]
    assert all(p.read_text().startswith('# MUST: ') for p in files)


@pytest.fixture
def aim(world, tmp_path):  # noqa: F811
    "What attacks are after; a local socket with a path, too, which nobody may knock at."
    path = f'/tmp/sandsmith-knock-{os.getpid()}'
    Path(path).unlink(missing_ok=True)
    before = os.stat(world['answer'])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        os.chmod(path, 0o777)
        s.settimeout(.05)
        yield {**world, 'path': path}
        with pytest.raises(TimeoutError): s.recv(10)
    Path(path).unlink()
    after = os.stat(world['answer'])
    assert (before.st_mode, before.st_mtime, before.st_uid, before.st_ctime) == (after.st_mode, after.st_mtime, after.st_uid, after.st_ctime)


def attack_code(name: str, ctx: dict, end: str = '') -> str: return PRELUDE.format(ctx) + (ATTACKS/f'{name}.py').read_text() + end


FIRST_LOOK = '''
import os, random, sys, threading
def entries(folder):
    try: return sorted(os.listdir(folder))
    except OSError: return 'shut'
print([(d, entries(d)) for d in ('.', '/tmp', '/dev/shm', '/run', '/jobs', '/')], os.getcwd()[:5], sorted(os.environ), sys.argv)
print(random.random(), hash('text'), sorted(sys.modules), threading.active_count(), len(os.listdir('/proc/self/fd')), os.getpriority(os.PRIO_PROCESS, 0))
print(os.umask(0o22), open('/proc/self/oom_score_adj').read().strip())
'''


@functools.cache
def first_look(way: str) -> str: return run(FIRST_LOOK).stdout


def tree_of(way: str) -> list[str]:
    "Processes that descend from the zygotes, but for those and their waiting first processes."
    parents, names = {}, {}
    for p in Path('/proc').glob('[0-9]*'):
        try: parents[int(p.name)], names[int(p.name)] = int((p/'stat').read_text().rpartition(')')[2].split()[1]), (p/'cmdline').read_bytes()
        except OSError: pass
    ours = {z.process.pid for z in pool_of(way)._all}
    def is_ours(pid: int) -> bool:
        while pid:
            if pid in ours: return True
            pid = parents.get(pid, 0)
        return False
    return [names[pid].decode() for pid in parents if is_ours(pid) and b'child.py' not in names[pid] and not names[pid].startswith(b'init\0infinity')]


def check_after(way: str, place) -> None:
    "Nothing is left of the job, and the next one finds what the first one found."
    assert place.uid is None or not owned_by(place.uid)
    assert [name for name in tree_of(way) if name] == []
    assert place.top is None or not place.top.exists()
    assert run(FIRST_LOOK).stdout == first_look(way)


@pytest.mark.parametrize('name, way', [(name, way) for name, case in CASES.items() for way in case.ways])
def test_attack(name, way, aim, monkeypatch):
    use(monkeypatch, way)
    case = CASES[name]
    first_look(way)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with session(limits=case.limits) as s:
        result = s.run(attack_code(name, {**aim, **case.ctx, 'tier': way[0]}), case.collect)
        check_files(name, s, result)
        place = s._place
    shown = result.stdout + result.stderr
    assert result.status in case.ends, shown
    assert 'control True' in result.stdout and ('blocked' in result.stdout or result.status in ('memory', 'killed')), shown
    assert 'PWNED' not in shown and TOKEN not in shown, shown
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000 # KiB
    check_after(way, place)


def check_files(name: str, s, result) -> None:
    "What came out of the folder, and that it no longer changes."
    files = result.files
    json.dumps({name: len(data) for name, data in files.items()}, ensure_ascii=False).encode()
    assert not any(TOKEN.encode() in data or b'root:' in data for data in files.values())
    if name == 'sparse_files': assert {n: len(d) for n, d in files.items()} == {'big.bin': 0, 'edge.bin': 1 << 22, 'huge.bin': 0}
    if name == 'rename_race': assert files['plain.csv'] == b'mine' and set(files.values()) <= {b'mine', b''} and not any('/' in n and 'tmp' not in n for n in files)
    if name == 'hard_links': assert files == {}
    if name == 'odd_names': assert files['plain.csv'] == b'mine' and set(files) > {'-rf.csv', '*.csv', 'n'*251 + '.csv'}
    if name in ('stubborn_daemons', 'exec_chain'):
        assert len(files['beat']) >= 4
        time.sleep(.15)
        assert s.collect(['beat']) == {'beat': files['beat']}


# ---- over two jobs

@pytest.mark.parametrize('way', WAYS + WEAKER)
def test_nothing_of_an_earlier_job_is_in_memory(way, aim, monkeypatch):
    use(monkeypatch, way)
    parts = 'q7Zk1xVn', 'T4mWb9Ls', 'p3Rt8cHd'
    secret = parts[0] + parts[1]
    earlier = f'import sys\nx = "{secret}"*1000\nprint(x[:64], len(sys.argv))\nopen("f", "w").write(x)'
    for _ in range(3): assert secret in run(earlier, args=[secret], files={'g': secret}, collect=['f']).stdout
    assert call_tool(f'def f(a): return a + "{secret}"', 'f', [dict(a=secret)])[0].value == secret*2
    result = run(attack_code('memory_search', {**aim, 'parts': parts}))
    assert result.status == 'ok' and 'control True' in result.stdout, result.stderr
    assert 'blocked 0 places' in result.stdout, result.stdout
    planted = run(f'planted = ("{secret[:4]}" + "{secret[4:]}").encode()\n' + attack_code('memory_search', {**aim, 'parts': parts}))
    assert 'PWNED' in planted.stdout # the search itself finds what is there


@pytest.mark.parametrize('way', WAYS + WEAKER)
def test_poisoned_next_step(way, aim, monkeypatch):
    use(monkeypatch, way)
    with session(limits=limits(file_mb=8)) as s:
        assert 'blocked poisoned' in s.run(attack_code('poison_next_step', aim)).stdout
        step = 'import json, random, traceback, re\ntry: 1/0\nexcept ZeroDivisionError: traceback.print_exc()\nprint(json.dumps(random.random()))'
        result = s.run(step, ['ran'])
        assert result.status == 'ok' and 'PWNED' not in result.stdout + result.stderr and result.files == {}
        assert result.stdout == run(step).stdout
    assert run(FIRST_LOOK).stdout == first_look(way)


# ---- tools

def tool_code(name: str, **ctx) -> str: return attack_code(name, dict(answer='', token=TOKEN, **ctx))


@pytest.mark.parametrize('way', WAYS + WEAKER)
def test_a_tool_forges_nothing_but_its_values(way, monkeypatch):
    use(monkeypatch, way)
    calls = [dict(i=i) for i in range(4)]
    results = call_tool(tool_code('tool_forger', dots=3), 'tool', calls)
    assert len(results) == 4 and {r.status for r in results} <= {'ok', 'error'} and {r.value for r in results} <= {None, 1, 99}
    assert [r.value for r in call_tool(tool_code('tool_forger', search=True), 'tool', calls)] == [True]*4 # the control: its own text is there
    start = time.monotonic()
    slow = 'def tool(i):\n    import os, time\n    while True: os.write(4, b"."); time.sleep(.05)'
    statuses = [r.status for r in call_tool(slow, 'tool', calls[:2], call_timeout_s=.2)]
    assert statuses == ['timeout']*2 and time.monotonic() - start < 30


@pytest.mark.parametrize('way', WAYS)
def test_a_flooded_channel(way, monkeypatch):
    use(monkeypatch, way)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results = call_tool(tool_code('tool_floods'), 'tool', [dict(i=i) for i in range(6)], limits=Limits(memory_mb=256, output_kb=16))
    assert next(r.value for r in results if r.status == 'ok') == 0 and len(results) == 6
    assert results[4].status == 'error' and results[5].value == 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000


@pytest.mark.parametrize('way', WAYS + WEAKER)
def test_hanging_calls(way, monkeypatch):
    use(monkeypatch, way)
    hows = ['a', 'blocked', 'b', 'ignored', 'disarmed', 'caught', 'c', 'stopped', 'child', 'thread', 'str', 'exit', 'two', 'd']
    results = call_tool(tool_code('tool_hangs'), 'tool', [dict(how=h) for h in hows], call_timeout_s=.3)
    expected = ['ok' if len(h) == 1 or h == 'two' else 'error' if h == 'exit' else 'timeout' for h in hows]
    assert [r.status for r in results] == expected, [(r.status, r.error) for r in results]
    assert [r.value for r in results if r.status == 'ok'] == ['a', 'b', 'c', 'two', 'd']
    assert [name for name in tree_of(way) if name] == [] and run(FIRST_LOOK).stdout == first_look(way)


def test_odd_results():
    hows = ['nan', 'large', 'negative', 'inside', 'deep', 'loop', 'digits', 'bad', 'badkey', 'error', 'base', 'recursion']
    results = call_tool(tool_code('tool_odd_results'), 'tool', [dict(how=h) for h in hows], limits=Limits(memory_mb=512))
    assert [(r.status, r.value) for r in results] == [('error', None)]*len(hows) and len(json.dumps([r.error for r in results])) < 60_000
    [shared] = call_tool(tool_code('tool_odd_results'), 'tool', [dict(how='shared')], limits=Limits(memory_mb=256), call_timeout_s=.5)
    assert shared.status in ('timeout', 'memory')
    odd = call_tool(tool_code('tool_odd_results'), 'tool', [dict(how=h) for h in ('surrogate', 'key', 'text')])
    assert [r.value for r in odd] == [['?', {'?': 'x'}], {'key': 1}, 'x'*10] and type(odd[2].value) is str
