"""Records survive a round trip unchanged, and a broken one is noticed."""
import json, math

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from polars.testing import assert_frame_equal

from sandsmith.core import GradeError, SpecError
from sandsmith.trace import (Trajectory, Turn, Verdict, from_jsonl, from_record, to_jsonl, to_record, trajectories_frame,
    write_parquet_atomic)

text = st.text(max_size=20) # with lone surrogates and line separators
numbers = st.integers(-2**53, 2**53) | st.floats(allow_nan=False, allow_infinity=False)
facts = st.dictionaries(text, numbers | text | st.booleans() | st.none() | st.lists(numbers, max_size=3), max_size=3)
messages = st.fixed_dictionaries({'role': st.sampled_from(['system', 'user', 'assistant', 'tool']), 'content': text})
tool_calls = st.fixed_dictionaries({'type': st.just('function'), 'function': st.fixed_dictionaries({'name': text, 'arguments': text})})
replies = st.fixed_dictionaries({'role': st.just('assistant'), 'content': text | st.none()},
    optional={'tool_calls': st.lists(tool_calls, max_size=2)})
runs = st.fixed_dictionaries({'status': st.sampled_from(['ok', 'timeout']), 'seconds': st.floats(0, 90), 'peak_mb': st.floats(0, 9999),
    'tier': st.just('A')})
turns = st.builds(Turn, message=replies, observation=text | st.none(), run=runs | st.none(), is_done=st.booleans())
trajectories = st.builds(Trajectory, task_id=text, policy=text, seed=st.integers(0, 2**63 - 1),
    messages=st.lists(messages, max_size=3).map(tuple), turns=st.lists(turns, max_size=3).map(tuple), stop_reason=text,
    timed_out=st.booleans())
tiers = st.lists(st.sampled_from(['median', 'bronze', 'silver', 'gold']), unique=True).map(tuple)
verdicts = st.builds(Verdict, status=st.just('scored'), score=numbers, tiers=tiers, reason=text, facts=facts) | \
    st.builds(Verdict, status=st.sampled_from(['missing', 'malformed', 'unscored']), reason=text, facts=facts)


@given(verdicts)
def test_verdict_round_trip(verdict):
    back = from_record(Verdict, json.loads(json.dumps(to_record(verdict))))
    assert back == verdict and type(back.tiers) is tuple


@settings(max_examples=60, deadline=None)
@given(st.lists(trajectories, max_size=3))
def test_jsonl_round_trip(items):
    lines = to_jsonl(items)
    assert from_jsonl(lines) == items and to_jsonl(from_jsonl(lines)) == lines
    assert lines.isascii() and lines.count('\n') == len(items)


@settings(max_examples=60, deadline=None)
@given(st.lists(trajectories, max_size=3))
def test_frame_has_one_row_a_turn(items):
    df = trajectories_frame(items)
    assert df.height == sum(len(t.turns) for t in items) and df.schema == trajectories_frame([]).schema
    assert df['is_done'].to_list() == [turn.is_done for t in items for turn in t.turns]


@pytest.mark.parametrize('status, score', [('scored', None), ('scored', math.nan), ('scored', math.inf), ('scored', '1'), ('unscored', 0.),
    ('missing', .5), ('malformed', math.nan), ('unscored', 'x'), ('won', 1.)])
def test_verdict_refuses(status, score):
    with pytest.raises(GradeError, match='expected'): Verdict(status=status, score=score)


def test_broken_lines_are_named():
    t = Trajectory(task_id='t', policy='p', seed=0, messages=(), turns=(), stop_reason='max_turns')
    good = to_jsonl([t])
    for bad in ('{', '[]', '3', '{"task_id": "t"}', good.strip()[:-1] + ', "extra": 1}'):
        with pytest.raises(SpecError, match='line 2: expected a trajectory'): from_jsonl(good + bad)
    with pytest.raises(SpecError, match='finite JSON'): to_jsonl([Trajectory(**{**vars(t), 'messages': ({'content': math.nan},)})])


def test_parquet_is_whole(tmp_path):
    df = pl.DataFrame({'task_id': ['a', None], 'score': [.5, None]})
    path = write_parquet_atomic(df, tmp_path/'deep/x.parquet')
    assert_frame_equal(pl.read_parquet(path), df)
    assert [p.name for p in path.parent.iterdir()] == ['x.parquet']
    first = path.read_bytes()
    assert write_parquet_atomic(df, path).read_bytes() == first
