"""What the sandbox promises, looked at from outside the job, each with a control that shows that the look itself works."""
import os, resource, time
from pathlib import Path

import pytest

from sandsmith import sandbox, zygote
from sandsmith.core import Limits
from sandsmith.sandbox import call_tool, run, session
from sandsmith.zygote import Pool
from test_sandbox import TIER, WAYS, WEAKER, pool_of, use
from test_sandbox_attacks import tree_of

pytestmark = pytest.mark.skipif(TIER != 'A', reason='this machine does not allow all layers')


# ---- the end of a job is the end of its processes

TREE = '''
import os, signal, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
for kind in range(3): # a child, a daemon in a session of its own, a program
    if os.fork() == 0:
        if kind: os.setsid()
        if kind and os.fork(): os._exit(0)
        if kind == 2: os.execv('/bin/sh', ['sh', '-c', 'trap "" TERM INT HUP; while :; do printf p >> beat; sleep .02; done'])
        while True: open('beat', 'a').write(str(kind)); time.sleep(.02)
while {condition}: time.sleep(.02)
'''


@pytest.mark.parametrize('way', WAYS + WEAKER)
def test_the_whole_tree_is_dead_when_run_returns(way, monkeypatch):
    use(monkeypatch, way)
    with session(limits=Limits(timeout_s=1)) as s:
        result = s.run(TREE.format(condition=True), ['beat'])
        seen = tree_of(way), s.collect(['beat'])['beat']
        assert result.status == 'timeout' and result.seconds >= 1
        print(f'{way}: reported {1000*(result.seconds - 1):.0f} ms after the limit')
        time.sleep(.2)
        assert [name for name in seen[0] if name] == [] and s.collect(['beat'])['beat'] == seen[1]
        assert set(seen[1]) >= set(b'01') # the control: they ran
    with session(limits=Limits(timeout_s=20)) as s: # the same when the job ends by itself
        result = s.run(TREE.format(condition="not os.path.exists('beat') or len(set(open('beat').read())) < 3"), ['beat'])
        assert result.status == 'ok' and len(set(result.files['beat'])) == 3 and [name for name in tree_of(way) if name] == []


def test_the_look_at_processes_works():
    "The control of all that look for processes that are left: a job that runs is seen."
    import threading
    thread = threading.Thread(target=run, args=('import os, time\nif os.fork(): time.sleep(1.5)\nelse: os.execv("/bin/sleep", ["look-at-me", "9"])',))
    pool = sandbox.get_pool()
    thread.start()
    names, end = [], time.monotonic() + 10
    while not any('look-at-me' in name for name in names) and time.monotonic() < end:
        names = [p.read_bytes().decode() for z in list(pool._all) for p in cmdlines(z.process.pid)]
    assert any('look-at-me' in name for name in names)
    thread.join()
    assert not any('look-at-me' in p.read_bytes().decode() for z in pool._all for p in cmdlines(z.process.pid))


def cmdlines(pid: int) -> list[Path]:
    found = [pid]
    for each in found:
        try: found += map(int, Path(f'/proc/{each}/task/{each}/children').read_text().split())
        except OSError: pass
    return [p for each in found if (p := Path(f'/proc/{each}/cmdline')).exists()]


# ---- memory, disk, files

HOGS = '''
import os, time
r, w = os.pipe()
for _ in range({n}):
    if os.fork() == 0:
        held = bytearray(os.urandom(1 << 20)*{mb})
        os.write(w, b'x')
        time.sleep(60)
os.close(w)
for _ in range({n}): os.read(r, 1)
time.sleep(.4)
print('all of them')
'''


@pytest.mark.parametrize('way', WAYS)
@pytest.mark.parametrize('counted_by', ['kernel', 'zygote'])
def test_memory_of_the_tree(way, counted_by, monkeypatch):
    "Where control groups cannot be made, the zygote adds up by itself."
    if counted_by == 'kernel' and not pool_of(way).take('bare').group.dirs: pytest.skip('no control group can be made here')
    if counted_by == 'zygote': monkeypatch.setattr(zygote, '_cgroup_dirs', lambda: [])
    pool = Pool(pool_of(way).shell)
    monkeypatch.setattr(sandbox, 'get_pool', lambda unsafe=False: pool)
    limits = Limits(memory_mb=128, disk_mb=8, timeout_s=4)
    assert run(HOGS.format(n=3, mb=12), limits=limits).stdout == 'all of them\n' # the control
    result = run(HOGS.format(n=8, mb=60), limits=limits)
    assert result.stdout == '' and result.status in ('memory', 'timeout')
    assert counted_by == 'kernel' or result.status == 'memory'
    assert run('print(1)', limits=limits).stdout == '1\n'
    pool.close()


@pytest.mark.parametrize('way', WAYS)
def test_disk_and_files_are_bounded(way, monkeypatch):
    use(monkeypatch, way)
    code = '''
import errno, os, sys
def fill(act):
    n = 0
    try:
        while n < 5000: act(n); n += 1
    except OSError as e: return n, errno.errorcode[e.errno]
    return n, ''
def write(i):
    with open(f'{folder}/big{i}', 'wb', 0) as f:
        if f.write(bytes(1 << 19)) < 1 << 19: raise OSError(errno.ENOSPC, '')
for folder in ('.', '/tmp', '/dev/shm'):
    n_mb, why = fill(write)
    print(folder, n_mb//2, why)
    for i in range(n_mb + 1): os.unlink(f'{folder}/big{i}')
    n_files, why = fill(lambda i: open(f'{folder}/n{i}', 'x').close())
    print(folder, n_files, why)
    for i in range(n_files): os.unlink(f'{folder}/n{i}')
'''
    lines = run(code, limits=Limits(disk_mb=8, n_files=60, file_mb=2, timeout_s=30)).stdout.splitlines()
    assert [line.split()[2] for line in lines] == ['ENOSPC']*6
    assert [line.split()[1] for line in lines[::2]] == ['8', '7', '7'] or [int(line.split()[1]) for line in lines[::2]] == [8, 8, 8]
    assert all(50 <= int(line.split()[1]) <= 66 for line in lines[1::2])


def test_disk_without_a_folder_that_fills(monkeypatch):
    "What is handed in does not count against the quota."
    code = 'import os\nprint(os.path.getsize("big"), open("more", "wb").write(bytes(3 << 20)))'
    assert run(code, files={'big': bytes(20 << 20)}, limits=Limits(disk_mb=4)).stdout == f'{20 << 20} {3 << 20}\n'


# ---- the same again

DRAWS = '''
import random, os, json
import numpy as np
names = {'b', 'a', 'x1', 'zeta', 'y'}
print(random.random(), random.sample(range(99), 3), np.random.rand(2).tolist(), np.random.permutation(5).tolist(), hash('text'), hash((1, 'a')), list(names), list({1.5, 'q', None, 7}), os.getpid())
'''


@pytest.mark.parametrize('way', WAYS)
def test_same_seed_same_output(way, monkeypatch):
    pool = use(monkeypatch, way)
    first = run(DRAWS, seed=3).stdout
    assert [run(DRAWS, seed=3).stdout for _ in range(3)] == [first]*3 and run(DRAWS, seed=4).stdout != first
    other = Pool(pool.shell) # another zygote
    monkeypatch.setattr(sandbox, 'get_pool', lambda unsafe=False: other)
    assert run(DRAWS, seed=3).stdout == first
    other.close()
    tool = 'import random\ndef f(): return [random.random(), list({"a", "b", "c"})]'
    assert call_tool(tool, 'f', [{}, {}], seed=1) == call_tool(tool, 'f', [{}, {}], seed=1) != call_tool(tool, 'f', [{}, {}], seed=2)


# ---- a thousand jobs later

LOOK = '''
import os, random, sys
print(random.random(), sorted(sys.modules), [sorted(os.listdir(d)) for d in ('.', '/tmp', '/dev/shm')], sorted(os.environ), os.getpid())
print([n for n in os.listdir('/proc') if n.isdigit()], len(os.listdir('/proc/self/fd')), len(open('/proc/self/mounts').read().splitlines()))
'''
BUSY = '''
import os, sys
open('x', 'w').write('x'); open('/tmp/y', 'w').write('y'); open('/dev/shm/z', 'w').write('z')
sys.path.append('elsewhere'); os.environ['LEFT'] = '1'; import decimal; decimal.getcontext().prec = 3
import random; random.seed(9); random.random = lambda: 0
if os.fork() == 0: os.setsid(); os.pause() if hasattr(os, 'pause') else __import__('signal').pause()
'''


@pytest.mark.parametrize('way', WAYS[:1])
def test_a_thousand_jobs_later(way, monkeypatch):
    pool = Pool(pool_of(way).shell)
    monkeypatch.setattr(sandbox, 'get_pool', lambda unsafe=False: pool)
    def state() -> tuple[object, ...]:
        [z] = pool._all
        inside = [p.parent.name for p in cmdlines(z.process.pid)]
        n_fds = [len(os.listdir(f'/proc/{pid}/fd')) for pid in inside]
        n_mounts = [len(Path(f'/proc/{pid}/mountinfo').read_text().splitlines()) for pid in inside]
        return len(inside), n_fds, n_mounts, len(os.listdir('/proc/self/fd')), len(os.listdir('/tmp')), len(os.listdir('/dev/shm'))
    def settled() -> tuple[object, ...]: # the first process for the next job starts after the report
        end = time.monotonic() + 5
        while len(cmdlines(next(iter(pool._all)).process.pid)) < expected and time.monotonic() < end: time.sleep(.01)
        return state()
    first = run(LOOK).stdout
    time.sleep(.3)
    expected = len(cmdlines(next(iter(pool._all)).process.pid))
    before, memory = settled(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    zygote_kb = memory_of(pool)
    for i in range(1000):
        result = run(BUSY if i % 4 == 0 else 'print(1)', limits=Limits(n_processes=16))
        assert result.status == 'ok', result
    assert run(LOOK).stdout == first
    after = settled()
    assert after[:4] == before[:4] and after[4] <= before[4] + 5 and after[5] == before[5], (before, after)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 20_000 and memory_of(pool) - zygote_kb < 5_000 # KiB
    pool.close()


def memory_of(pool: Pool) -> int: # KiB
    def rss(path: Path) -> int:
        return sum(int(line.split()[1]) for line in (path.parent/'status').read_text().splitlines() if line.startswith('VmRSS'))
    return sum(rss(p) for z in pool._all for p in cmdlines(z.process.pid))
