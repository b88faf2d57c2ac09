"""What people's code does works inside a job: processes, threads, data frames, training, plots, and the interpreter's own looking glass."""
import os

import pytest

from sandsmith.core import Limits
from sandsmith.sandbox import run
from sandsmith.zygote import PRELOADS
from test_sandbox import TIER, WAYS, WEAKER, use

pytestmark = pytest.mark.skipif(TIER != 'A', reason='this machine does not allow all layers')
PROGRAMS = {} # by name: the program, and what it prints

PROGRAMS['asyncio'] = r'''
import asyncio
async def main():
    p = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)
    out, _ = await p.communicate(b'hello'); print(out, await asyncio.gather(*(asyncio.sleep(.01, i) for i in range(3))))
    print((await asyncio.to_thread(sum, [1, 2])))
asyncio.run(main())
''', "b'hello' [0, 1, 2]\n3\n"

PROGRAMS['dev_stdout'] = r'''
print('x', file=open('/dev/stdout', 'w'), flush=True)
''', 'x\n'

PROGRAMS['files'] = r'''
import pathlib, tempfile, shutil, pickle, zipfile, os, mmap, csv, gzip
p = pathlib.Path('a/b'); p.mkdir(parents=True); (p/'c').write_text('x'); shutil.copytree('a', 'd'); shutil.copy2('a/b/c', 'e'); shutil.move('e', 'f')
with tempfile.TemporaryDirectory() as d: shutil.make_archive(d + '/z', 'zip', 'a'); print(zipfile.ZipFile(d + '/z.zip').namelist())
class A: pass
a = A(); a.x = 1
print(pickle.loads(pickle.dumps(a)).x, os.path.isabs(tempfile.gettempdir()))
with tempfile.NamedTemporaryFile() as f: f.write(b'1'*10); f.flush(); print(mmap.mmap(f.fileno(), 0)[:2])
os.chmod('f', 0o755); shutil.rmtree('a'); print(oct(os.stat('f').st_mode & 0o777))
''', "['b/', 'b/c']\n1 True\nb'11'\n0o755\n"

PROGRAMS['forest'] = r'''
import numpy as np
from sklearn.ensemble import RandomForestClassifier, HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_score
r = np.random.default_rng(0); x = r.normal(size=(120, 4)); y = x[:, 0] > 0
print(cross_val_score(RandomForestClassifier(5, random_state=0), x, y, cv=2, n_jobs=2).mean() > .7, HistGradientBoostingClassifier(max_iter=5).fit(x, y).score(x, y) > .8)
''', 'True True\n'

PROGRAMS['futures'] = r'''
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
def f(x): return x + 1
with ProcessPoolExecutor(2) as p: print(list(p.map(f, range(3))))
with ThreadPoolExecutor(2) as p: print(list(p.map(f, range(3))))
''', '[1, 2, 3]\n[1, 2, 3]\n'

PROGRAMS['inspect'] = r'''
import inspect, traceback, sys, getpass, os
def f():
    return 1/0
print(repr(inspect.getsource(f)), inspect.getsourcelines(f)[1])
class K:
    def m(self): pass
print(len(inspect.getsource(K)))
try: f()
except ZeroDivisionError: print('    return 1/0' in traceback.format_exc())
print(getpass.getuser(), os.path.expanduser('~') != '~', os.path.exists(__file__), sys.argv, __name__)
''', "'def f():\\n    return 1/0\\n' 3\n31\nTrue\nuser True True ['main.py'] __main__\n"

PROGRAMS['joblib'] = r'''
from joblib import Parallel, delayed
import numpy as np
print(sum(Parallel(n_jobs=2)(delayed(np.sum)(np.full(3, i)) for i in range(4))))
''', '18\n'

PROGRAMS['joblib_threads'] = r'''
from joblib import Parallel, delayed
print(Parallel(n_jobs=2, prefer='threads')(delayed(abs)(-i) for i in range(4)))
''', '[0, 1, 2, 3]\n'

PROGRAMS['lightgbm'] = r'''
import lightgbm as lgb, numpy as np
r = np.random.default_rng(0); x = r.normal(size=(200, 4)); y = x[:, 0] > 0
m = lgb.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=2).fit(x, y)
print(m.score(x, y) > .9)
''', 'True\n'

PROGRAMS['matplotlib'] = r'''
import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(2, 2)); ax.plot([1, 2]); ax.set_title('x'); fig.savefig('x.png')
print(open('x.png', 'rb').read(4))
''', "b'\\x89PNG'\n"

PROGRAMS['user_database'] = '''
import os, pathlib, pwd
print(pwd.getpwuid(os.getuid()).pw_name, pathlib.Path.home())
''', 'user /tmp\n'

PROGRAMS['pandas'] = r'''
import pandas as pd
df = pd.DataFrame({'a': [1, 2], 'd': pd.to_datetime(['2020-01-01', '2020-01-02'])}); df.to_csv('x.csv', index=False); print(pd.read_csv('x.csv', parse_dates=['d']).a.sum(), pd.Timestamp('2020', tz='Europe/Berlin'))
''', '3 2020-01-01 00:00:00+01:00\n'

PROGRAMS['polars'] = r'''
import polars as pl
df = pl.DataFrame({'a': [1, 2, 1], 'b': [1., 2., 3.]})
df.write_csv('x.csv'); df.write_parquet('x.parquet')
print(pl.scan_csv('x.csv').group_by('a').agg(pl.col('b').sum()).sort('a').collect().rows(), pl.scan_parquet('x.parquet').select(pl.col('b').mean()).collect().item())
''', '[(1, 4.0), (2, 2.0)] 2.0\n'

PROGRAMS['pool_fork'] = r'''
import multiprocessing as mp
def f(x): return x*x
if __name__ == '__main__':
    with mp.get_context('fork').Pool(2) as p: print(p.map(f, range(5)))
''', '[0, 1, 4, 9, 16]\n'

PROGRAMS['pool_forkserver'] = r'''
import multiprocessing as mp
def f(x): return x*x
if __name__ == '__main__':
    with mp.get_context('forkserver').Pool(2) as p: print(p.map(f, range(5)))
    with mp.Manager() as m: d = m.dict(a=1); print(d['a'])
''', '[0, 1, 4, 9, 16]\n1\n'

PROGRAMS['pool_spawn'] = r'''
import multiprocessing as mp
def f(x): return x*x
if __name__ == '__main__':
    with mp.get_context('spawn').Pool(2) as p: print(p.map(f, range(5)))
''', '[0, 1, 4, 9, 16]\n'

PROGRAMS['shared_memory'] = r'''
from multiprocessing import shared_memory, Process, Queue, Lock
s = shared_memory.SharedMemory(create=True, size=100); s.buf[0] = 7
t = shared_memory.SharedMemory(s.name); print(t.buf[0]); t.close(); s.close(); s.unlink()
def f(q): q.put(3)
q = Queue(); p = Process(target=f, args=(q,)); p.start(); print(q.get()); p.join()
''', '7\n3\n'

PROGRAMS['sqlite'] = r'''
import sqlite3
c = sqlite3.connect('x.db'); c.execute('create table t (a)'); c.executemany('insert into t values (?)', [(i,) for i in range(5)]); c.commit()
print(c.execute('select sum(a) from t').fetchone())
''', '(10,)\n'

PROGRAMS['subprocess'] = r'''
import subprocess, sys
def shown(*args, **kw): return subprocess.run(args if len(args) > 1 else args[0], capture_output=True, text=True, **kw)
print(shown(sys.executable, '-c', 'import numpy, sys; print(numpy.ones(2).sum(), sys.prefix)').stdout.split() == ['2.0', sys.prefix])
done = shown('echo $((1+1)); python -c "print(3)"; echo err >/dev/stderr; echo out >/dev/stdout', shell=True)
print(done.stdout.split(), done.stderr.split())
open('mod.py', 'w').write('if __name__ == "__main__": print("as a module")')
print(shown(sys.executable, 'mod.py').stdout == shown(sys.executable, '-m', 'mod').stdout == 'as a module\n')
''', "True\n['2', '3', 'out'] ['err']\nTrue\n"

PROGRAMS['sympy'] = r'''
import sympy as sp
x = sp.symbols('x'); print(sp.solve(x**2 - 2, x), sp.integrate(x**2, x))
''', '[-sqrt(2), sqrt(2)] x**3/3\n'

PROGRAMS['threads'] = r'''
import threading, queue, signal
q = queue.Queue(); threading.Thread(target=lambda: q.put(threading.current_thread().name)).start(); print(q.get())
signal.signal(signal.SIGALRM, lambda *a: print('alarm')); signal.setitimer(signal.ITIMER_REAL, .01); signal.pause()
''', 'Thread-1 (<lambda>)\nalarm\n'

PROGRAMS['torch'] = r'''
import torch, os
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(2)
x = torch.randn(64, 8); y = x.sum(1, keepdim=True)
m = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
o = torch.optim.Adam(m.parameters())
for a, b in DataLoader(TensorDataset(x, y), batch_size=16, num_workers=2):
    o.zero_grad(); loss = ((m(a) - b)**2).mean(); loss.backward(); o.step()
print(torch.get_num_threads(), torch.isfinite(loss).item())
torch.save(m.state_dict(), 'm.pt'); print(len(torch.load('m.pt')))
''', '2 True\n4\n'

PROGRAMS['unclosed'] = r'''
f = open('o', 'w'); f.write('kept'); g = open('p', 'wb'); g.write(b'kept')
''', ''


LIGHT = [name for name in PROGRAMS if name not in ('joblib', 'joblib_threads', 'torch', 'lightgbm', 'forest', 'matplotlib', 'polars', 'pandas', 'sympy')]
ONLY_A = 'user_database', # without mounts of the job's own the file of users is empty
NEEDS_SOCKETS = ('pool_forkserver',) # connect to each other by a path, which tier C cannot tell from one of the host


@pytest.mark.parametrize('name, way', [(name, way) for name in PROGRAMS for way in (WAYS + WEAKER*(name not in ONLY_A) if name in LIGHT else WAYS[:1])
    if not (way[0] == 'C' and name in NEEDS_SOCKETS)])
def test_program(name, way, monkeypatch):
    use(monkeypatch, way)
    program, expected = PROGRAMS[name]
    result = run(program, limits=Limits(timeout_s=60), collect=['o', 'p'])
    assert (result.status, result.stdout) == ('ok', expected), result.stderr
    assert name == 'matplotlib' or not result.stderr # building the list of fonts may take long enough for a remark
    if name == 'unclosed': assert result.files == {'o': b'kept', 'p': b'kept'}


# ---- forks of a process that has loaded packages

USES = dict(
    bare='import random; print(sorted(random.sample(range(9), 3)) != [])',
    math='import numpy, sympy; x = sympy.Symbol("x"); print(numpy.linalg.solve(numpy.eye(50), numpy.ones(50)).sum() == 50 and sympy.diff(x**2) == 2*x)',
    tabular='''
import numpy as np, polars as pl, lightgbm as lgb
from sklearn.ensemble import RandomForestClassifier
x = np.random.default_rng(0).normal(size=(60, 3)); y = x[:, 0] > 0
forest = RandomForestClassifier(5, n_jobs=2, random_state=0).fit(x, y)
boosted = lgb.LGBMClassifier(n_estimators=3, min_child_samples=5, n_jobs=2, verbose=-1).fit(x, y)
means = pl.DataFrame({'g': y, 'x': x[:, 0]}).group_by('g').agg(pl.col('x').mean())
print(forest.score(x, y) > .8 and boosted.score(x, y) > .8 and means.height == 2)
''',
    torch='''
import torch
torch.set_num_threads(2)
w = torch.ones(300, 300, requires_grad=True); (w @ w).sum().backward()
print(w.grad.shape == (300, 300))
''')
POLARS = {'jemalloc_bg_thd', 'polars-ooc-clea'} # threads that polars starts when it is imported, and starts again after a fork


@pytest.mark.parametrize('preload', PRELOADS)
def test_packages_are_loaded_but_not_used_before_a_fork(preload, monkeypatch):
    "Every package of the set is there, no thread is but those known to come back, and a job after the other can use them."
    pool = use(monkeypatch, WAYS[0])
    zygote = pool.take(preload)
    tree = descendants(zygote.process.pid)
    assert {name for pid in tree for name in threads_of(pid)} <= (POLARS if preload in ('tabular', 'torch') else set())
    pool.give_back(zygote, True)
    modules = [m for name in list(PRELOADS)[:list(PRELOADS).index(preload) + 1] for m in PRELOADS[name]]
    roots = ', '.join(sorted({m.partition('.')[0] for m in PRELOADS[preload]} & {'numpy', 'sklearn', 'torch'})) or 'os'
    assert run(f'import sys; loaded = set(sys.modules)\nimport {roots}\nprint(sorted(set({modules!r}) - loaded))').stdout == '[]\n'
    for _ in range(2 + (preload == 'bare')): assert (result := run(USES[preload], limits=Limits(timeout_s=60))).stdout == 'True\n', result


def descendants(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        with open(f'/proc/{each}/task/{each}/children') as f: found += map(int, f.read().split())
    return found


def threads_of(pid: int) -> list[str]:
    names = []
    for tid in os.listdir(f'/proc/{pid}/task'):
        if int(tid) == pid: continue
        with open(f'/proc/{pid}/task/{tid}/comm') as f: names.append(f.read().strip())
    return names
