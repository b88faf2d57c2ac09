"Marks: gated by the verifier, read out of any reply, the same every time."
import json

import pytest
from hypothesis import given, strategies as st

from sandsmith.core import PolicyError
from sandsmith.rl.environment import BuildEnv
from sandsmith.rl.reward import JUDGE_MARKS, reward
from sandsmith.smith.build import draw_build_rows
from sandsmith.smith.judge import MARKS, chat_judge, judge_messages, judge_tool, read_marks, rule_marks
from sandsmith.smith.oracle import reference_tool, tool_response
from sandsmith.smith.tasks import CATEGORIES
from sandsmith.smith.tool import verify
from sandsmith.trace import Trajectory

_ROW = draw_build_rows(['lcm'], n=1, seed=0, split='train', n_shown=3, n_hidden=4)[0]
_GOOD = tool_response(reference_tool('lcm'))
_FULL = dict.fromkeys(MARKS, 5)


class Speaker:
    name = 'scripted:speaker'
    def __init__(self, *replies): self.replies, self.asked = list(replies), []
    def act(self, messages, *, tools=None, rng=None):
        self.asked.append(messages)
        return {'role': 'assistant', 'content': self.replies.pop(0)}


def test_reward_and_judge_speak_of_the_same_marks(): assert MARKS == JUDGE_MARKS


@pytest.mark.parametrize('response', [
    _GOOD.replace('def find_lcm', 'def lcm_of'), _GOOD.replace('(numbers)', '(values)'), _GOOD.replace('):', ')'), 'no tool', ''])
def test_what_the_verifier_fails_has_no_marks_and_no_judge_sees_it(response):
    policy = Speaker()
    assert judge_tool(verify(response), _ROW, chat_judge(policy)) == dict.fromkeys(MARKS, 0.) and not policy.asked


def test_a_model_judges_and_its_overall_mark_is_bounded():
    policy = Speaker('Sure!', f'```json\n{json.dumps(_FULL | {"code_correctness": 1})}\n```')
    assert judge_tool(verify(_GOOD), _ROW, chat_judge(policy)) == {m: 5. for m in MARKS} | {'code_correctness': 1., 'overall_quality': 2.}
    assert len(policy.asked) == 2 and 'top-level def' in policy.asked[0][0]['content'] and 'find_lcm_of_numbers' in policy.asked[0][0]['content']
    with pytest.raises(PolicyError, match='expected one JSON object'): judge_tool(verify(_GOOD), _ROW, chat_judge(Speaker('a', 'b')))


def test_the_judge_sees_shown_questions_and_no_hidden_ones():
    text = json.dumps(judge_messages(reference_tool('lcm'), _ROW))
    assert json.dumps(_ROW.shown[0].question)[1:-1] in text and not any(json.dumps(r.question)[1:-1] in text for r in _ROW.hidden)


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.integers(), lambda x: st.dictionaries(
    st.sampled_from(MARKS), x, max_size=5) | st.lists(x)).map(json.dumps))
def test_any_reply_is_marks_or_an_error_of_ours(reply):
    try: marks = read_marks(reply)
    except PolicyError: return
    assert set(marks) == set(MARKS) and all(0 <= mark <= 5 for mark in marks.values())


@pytest.mark.parametrize('category', CATEGORIES)
def test_typed_references_please_and_one_opaque_string_does_not(category):
    typed, asked = (rule_marks(reference_tool(category, i), _ROW) for i in ('typed', 'solve_question'))
    assert typed == rule_marks(reference_tool(category), _ROW) and typed['overall_quality'] >= 2
    assert asked['code_clarity'] == 1 and sum(asked.values()) <= sum(typed.values())


def test_the_build_environment_takes_every_setting():
    def play(text, preset='build', **how):
        env = BuildEnv(_ROW, **how)
        env.reset()
        env.step({'role': 'assistant', 'content': text})
        verdict = env.finish()
        return verdict, reward(verdict, Trajectory(task_id='t', policy='p', seed=0, messages=(), turns=(), stop_reason='submitted'), preset=preset)
    assert set(play(_GOOD)[1].components) == {'format', 'eval'} and play(_GOOD)[1].total == 1.5
    assert play(_GOOD, judge=rule_marks)[1].total > 1.5 and play('Here.\n' + _GOOD, allow_text=False)[1].total == 1.
    assert play(_GOOD, evaluate=lambda tool, row: [True, False, False, False])[1].total == .75
    assert play(_GOOD.replace('def find_lcm', 'def f'), judge=rule_marks)[1].total == 0
    down, paid = play(_GOOD, judge=chat_judge(Speaker('a', 'b')))
    assert (down.status, down.reason, paid.total) == ('unscored', 'model_failed', None)


@pytest.mark.parametrize('old, new, mark', [
    ('return math.lcm(*numbers)', 'return 12', 'code_correctness'), ('return math.lcm(*numbers)', 'pass', 'code_correctness'),
    ('return math.lcm(*numbers)', 'return helper(numbers)\n\ndef helper(x):\n    import math\n    return math.lcm(*x)', 'code_clarity'),
    ('find_lcm', 'solve', 'code_clarity'), ('"description"', '"note"', 'schema_quality')])
def test_faults_cost_marks(old, new, mark):
    good, bad = (rule_marks(verify(text).tool, _ROW) for text in (_GOOD, _GOOD.replace(old, new)))
    assert bad[mark] < good[mark] and bad['overall_quality'] <= good['overall_quality']


@pytest.mark.parametrize('code, mark', [
    ('raise NotImplementedError', 1), ('try: return math.lcm(*numbers)\n    except: pass', 2), ('try: return math.lcm(*numbers)\n    except Exception: pass', 2),
    ('try: return math.lcm(*numbers)\n    except: return None', 3), ('try: return math.lcm(*numbers)\n    except ValueError: return None', 4), ('return 1', 1)])
def test_what_a_reviewer_would_mark_down(code, mark):
    marks = rule_marks(verify(_GOOD.replace('return math.lcm(*numbers)', code)).tool, _ROW)
    assert marks['code_correctness'] == mark and marks['overall_quality'] <= mark + 1
    assert marks['schema_code_alignment'] == (2 if mark == 1 else 5) # a schema promises what a stub does not do


def test_answers_of_the_examples_in_the_code_are_seen():
    caesar = draw_build_rows(['caesar_cipher'], n=1, seed=1, split='train')[0]
    known = max((r.answer for r in caesar.shown), key=len)
    text = tool_response(reference_tool('lcm')).replace('return math.lcm(*numbers)', f'return {known!r} if numbers else 0')
    assert len(known) > 3 and rule_marks(verify(text).tool, caesar)['code_correctness'] == 2


def test_counterexamples_and_hard_rule_of_the_paper():
    asked = judge_messages(reference_tool('lcm'), _ROW)[0]['content']
    for words in ('letter for letter', 'schema_code_alignment and overall_quality are 0', 'find_lcm_of_numbers', 'thin wrapper', 'at most 2', 'code_correctness + 1'): assert words in asked
    drifted = _GOOD.replace('def find_lcm', 'def find_lcm_of_numbers') # example D: every mark is 0, whoever judges
    assert set(judge_tool(verify(drifted), _ROW, lambda tool, row: dict.fromkeys(MARKS, 5.)).values()) == {0.}
    wrapped = _GOOD.replace('return math.lcm(*numbers)', 'return work(numbers)\n\ndef work(xs):\n    import math\n    return math.lcm(*xs)') # example E
    assert rule_marks(verify(wrapped).tool, _ROW)['code_clarity'] == 2


def test_another_rubric_is_what_the_model_reads():
    policy = Speaker(json.dumps(_FULL))
    judge_tool(verify(_GOOD), _ROW, chat_judge(policy, rubric='Mark as you like.'))
    assert 'Mark as you like.' in policy.asked[0][0]['content'] and 'Hard rules' not in policy.asked[0][0]['content']


@pytest.mark.parametrize('unit, n', [('-', 900), ('not ', 2500), ('x.', 2900), ('lambda: ', 900)])
def test_deep_code_has_marks_or_none_but_never_raises(unit, n):
    text = _GOOD.replace('```python\n', f'```python\ny = lambda x: {unit*n}x\n')
    assert set(judge_tool(verify(text), _ROW)) == set(MARKS)
