"The pool under threads, processes and kills, and the rules of the paper's appendix E."
import multiprocessing, os, random, signal, time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sandsmith.core import SpecError
from sandsmith.smith.oracle import reference_tool
from sandsmith.smith.pool import ToolPool, retrieve
from sandsmith.smith.tool import Tool


def make(i, name='f'): return Tool(name=name, code=f'def {name}(n):\n    return n + {i} # é', schema={'type': 'function', 'function': {'name': name}})


def model_pool(marks, cap):
    "The rules in five lines: what must be in the pool, oldest first."
    kept = []
    for i, mark in enumerate(marks):
        if mark == 0: continue
        kept.append((i, mark))
        if len(kept) > cap: kept.remove(min(kept, key=lambda entry: (entry[1], entry[0])))
    return kept


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([0., .25, .5, .75, 1.]), max_size=14), st.integers(1, 4))
def test_eviction_is_worst_first_and_oldest_among_equals(tmp_path_factory, marks, cap):
    pool = ToolPool(tmp_path_factory.mktemp('pool')/'p.sqlite', cap=cap)
    for i, mark in enumerate(marks): pool.admit('gcd', make(i), mark)
    assert [(p.tool.code, p.quality) for p in reversed(pool.tools('gcd'))] == [(make(i).code, mark) for i, mark in model_pool(marks, cap)]


def test_the_newest_is_handed_out_with_two_others(tmp_path):
    pool = ToolPool(tmp_path/'p.sqlite')
    for c in ('gcd', 'lcm', 'ab', 'syllogism'):
        for _ in range(2): pool.admit(c, reference_tool(c), 1.)
    pool.admit('gcd', make(1, 'newest'), .1)
    assert pool.sizes() == {'ab': 1, 'gcd': 2, 'lcm': 1, 'syllogism': 1} # the same tool is kept once
    orders = set()
    for seed in range(30):
        found = retrieve(pool, 'gcd', np.random.default_rng(seed))
        assert [p.tool.name for p in found if p.category == 'gcd'] == ['newest'] and len({p.category for p in found}) == 3
        assert found == retrieve(pool, 'gcd', np.random.default_rng(seed))
        orders.add(tuple(p.category for p in found))
    assert len(orders) > 8
    assert retrieve(pool, 'countdown', np.random.default_rng(0)) == []
    pool.admit('lcm', make(2, 'newest'), 1.) # a name that is taken cannot be told apart in a call
    assert all(len({p.tool.name for p in retrieve(pool, 'gcd', np.random.default_rng(s), m_distractor=3)}) >= 3 for s in range(10))


def test_threads_lose_nothing(tmp_path):
    pool = ToolPool(tmp_path/'p.sqlite', cap=50)
    with ThreadPoolExecutor(8) as threads: list(threads.map(lambda i: pool.admit('gcd', make(i), .5), range(48)))
    assert sorted(p.tool.code for p in pool.tools('gcd')) == sorted(make(i).code for i in range(48))


def _keep_admitting(path, journal, start):
    pool = ToolPool(path, cap=10**6)
    for i in range(start, start + 10**6):
        pool.admit('gcd', make(i), .5)
        with open(journal, 'a') as f: f.write(f'{i}\n')


def test_two_runs_share_a_pool_and_a_kill_loses_no_admitted_tool(tmp_path):
    path, journals = tmp_path/'p.sqlite', [tmp_path/'a', tmp_path/'b']
    ToolPool(path)
    context = multiprocessing.get_context('fork')
    runs = [context.Process(target=_keep_admitting, args=(path, journal, k*10**7)) for k, journal in enumerate(journals)]
    for run in runs: run.start()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not all(j.exists() and j.stat().st_size > 40 for j in journals): time.sleep(.02)
    time.sleep(random.Random(0).random()/10)
    for run in runs: os.kill(run.pid, signal.SIGKILL)
    for run in runs: run.join()
    told = [line for j in journals for line in j.read_text().splitlines(keepends=True) if line.endswith('\n')]
    kept = {p.tool.code for p in ToolPool(path, cap=10**6).tools('gcd')}
    assert len(told) > 10 and {make(int(i)).code for i in told} <= kept


def test_wrong_use_is_an_error(tmp_path):
    (tmp_path/'torn').write_text('this is no database, but it is long enough to be taken for one')
    with pytest.raises(SpecError, match='expected a tool pool'): ToolPool(tmp_path/'torn')
    with pytest.raises(SpecError, match='cap'): ToolPool(tmp_path/'p', cap=0)
    with pytest.raises(SpecError, match=r'0\.\.1'): ToolPool(tmp_path/'p').admit('gcd', make(0), 1.5)
