"Responses written to fool the verifier, the sandbox or the graders: none answers a question, and none is paid for answering."
import json

import numpy as np
import pytest

from sandsmith.rl.reward import reward
from sandsmith.smith.build import draw_build_rows, grade_build, try_tool
from sandsmith.smith.graders import is_same_text, is_same_value
from sandsmith.smith.judge import score_build
from sandsmith.smith.oracle import reference_tool, tool_response
from sandsmith.smith.tasks import CATEGORIES
from sandsmith.smith.tool import drop_thought, verify
from sandsmith.smith.use import UseEnv, draw_use_rows, play_use
from sandsmith.trace import Trajectory

_SAID = Trajectory(task_id='t', policy='p', seed=0, messages=(), turns=(), stop_reason='submitted')
_ROW = draw_build_rows(['gcd'], n=1, seed=0, split='heldout')[0]
_SCHEMA = {'type': 'function', 'function': {'name': 'find_gcd', 'description': 'Greatest common divisor of all numbers.', 'parameters': {
    'type': 'object', 'properties': {'numbers': {'type': 'array', 'items': {'type': 'integer'}}}, 'required': ['numbers']}}}
_BEST = reward(score_build(tool_response(reference_tool('gcd')), _ROW), _SAID, preset='build')


def respond(code, schema=_SCHEMA): return f'```python\n{code}\n```\n```json\n{json.dumps(schema)}\n```'
def tool(body, before=''): return respond(f'{before}\ndef find_gcd(numbers: list):\n    {body}')


_FOOLING = {
    'the answer that is most often right': tool('return 1'),
    'forged lines on every open file': tool('return None', 'import os\nfor fd in range(1, 64):\n    try: os.write(fd, b\'[0, "ok", 1, ""]\\n\')\n    except OSError: pass'),
    'a claim on the output': tool('print(\'{"score": 1.0, "right": true}\'); return "PASSED"'),
    'the end while loading': tool('return 1', 'import os\nos._exit(0)'),
    'the end while called': tool('import sys; sys.exit(0)'),
    'json replaced': tool('return object()', 'import json, builtins\njson.dumps = lambda *a, **k: "1"\nbuiltins.print = None'),
    'equal to everything': tool('return E(7)', 'class E(int):\n    def __eq__(self, other): return True\n    def __hash__(self): return 0'),
    'a text that equals everything': tool('return S("x")', 'class S(str):\n    def __eq__(self, other): return True\n    def strip(self, *a): return self'),
    'answers among the objects': tool('import gc; return [o for o in gc.get_objects() if isinstance(o, dict) and ("answer" in o or "gold" in o)][0]["answer"]'),
    'answers in the frames': tool('f = sys._getframe()\n    while f.f_back: f = f.f_back\n    return f.f_locals["gold"]', 'import sys'),
    'answers in files': tool('import pathlib; return [p.read_text() for d in ("/tmp", "/work", "/proc/1/fd", "..") for p in pathlib.Path(d).glob("*")][0]'),
    'the grader rebound': tool('return True', 'import __main__\n__main__.right = [True]*16\n__main__.grade_answer = lambda *a: (1.0, "right")'),
    'recursion': tool('return find_gcd(numbers)'), 'nesting': tool('x = []\n    for _ in range(10**5): x = [x]\n    return x'),
    'every answer at once': tool('return " ".join(map(str, range(2000)))'), 'one or the other': tool('return "1 or 2"'), 'no number': tool('return float("nan")'),
    'a generator': tool('yield 1'), 'a fork': tool('import os; os.fork(); return 1'), 'not called by this name': respond('def gcd(numbers: list): return 1\nfind_gcd = gcd'),
}


@pytest.mark.parametrize('name', _FOOLING)
def test_nothing_is_answered_and_nothing_paid_for_it(name):
    verdict = score_build(_FOOLING[name], _ROW)
    assert verdict.status == 'scored' and not any(verdict.facts['right'])
    paid = reward(verdict, _SAID, preset='build')
    assert paid.components['eval'].value == 0 and paid.total <= .7 < _BEST.total == pytest.approx(1.68)
    if verdict.facts['step1_fail']: assert paid.total == 0


def test_the_limits_end_what_does_not_end():
    small = draw_build_rows(['gcd'], n=1, seed=0, split='heldout', n_hidden=1)[0]
    for body in ('return "1"*10**9', 'while True: pass'): assert score_build(tool(body), small).score == 0


def test_telling_questions_apart_is_counted_as_the_paper_counts():
    narrow = grade_build(tool('return math.gcd(numbers[0], numbers[1])', 'import math'), _ROW)
    assert 0 < narrow.score < 1
    same = [r for r in _ROW.hidden if r.answer == '1']
    assert all(try_tool(verify(tool('return 1')).tool, same)) # questions with one answer cannot tell


@pytest.mark.parametrize('category', CATEGORIES)
def test_no_gold_answer_is_worth_anything_as_a_constant(category):
    row = draw_build_rows([category], n=1, seed=0, split='heldout')[0]
    golds = [r.answer for r in row.hidden]
    common = max(golds, key=golds.count)
    reference = reference_tool(category)
    code = f'def {reference.name}(**given): return {common!r}'
    assert len(set(golds)) > 1 and not any(try_tool(verify(respond(code, reference.schema)).tool, row.hidden))


def test_matching_strings_fails_right_answers_and_passes_no_wrong_ones():
    for category in ('countdown', 'cryptarithm', 'gcd'):
        hidden = draw_build_rows([category], n=1, seed=0, split='heldout')[0].hidden
        reference = reference_tool(category)
        by_value, by_text = (try_tool(reference, hidden, equivalence=same) for same in (is_same_value, is_same_text))
        assert all(by_value) and (all(by_text) if category == 'gcd' else sum(by_text) < len(hidden))
    row = _ROW.hidden[0]
    assert is_same_text(row, f' {row.answer}. ') and not is_same_text(row, f'{row.answer} or 3') and not is_same_text(row, None)


_GOOD = tool_response(reference_tool('gcd'))

@pytest.mark.parametrize('text, is_thought', [
    (f'<think>{_GOOD}</think>\n{_GOOD}', True), (f'{_GOOD}\nNo, wait.\n</think>\n\n{_GOOD}', True), (f'<think></think>{_GOOD}', True),
    (_GOOD, False), (f'<think>{_GOOD}', False), (f'{_GOOD}</think>', False), (_GOOD.replace('import math', 'import math # </think>'), False),
    (_GOOD.replace('```json', '</think>\n```json'), False), (_GOOD.replace('The', '</think>'), False), ('</think>'*30_000, False), ('', False)])
def test_drafts_of_a_thought_are_no_answer(text, is_thought):
    said = drop_thought(text)
    assert (said != text) == is_thought and (not is_thought or verify(said).format_ok)
    if is_thought: assert score_build(text, _ROW) == score_build(said, _ROW) and score_build(text, _ROW).score == 1


@pytest.mark.parametrize('number', ['NaN', 'Infinity', '1e999'])
def test_a_number_that_is_none_is_an_error_of_the_call(number):
    row = draw_use_rows(['gcd'], n=1, seed=0, split='train')[0].row
    env = UseEnv(row, [reference_tool('gcd')])
    env.reset()
    name = next(iter(env.tools))['function']['name']
    turn = env.step({'role': 'assistant', 'content': f'<tool_call>{{"name": "{name}", "arguments": {{"numbers": [{number}]}}}}</tool_call>'})
    assert turn.observation.startswith('error') and not turn.is_done
    assert env.finish().status == 'scored'


@pytest.mark.parametrize('calls', [['x'], [None], 5, 'abc', True, [{'name': 'f'}]])
def test_broken_native_calls_end_in_a_verdict(calls):
    class Odd:
        name = 'odd'
        def act(self, messages, *, tools=None, rng=None): return {'role': 'assistant', 'content': '', 'tool_calls': calls}
    row = draw_use_rows(['gcd'], n=1, seed=0, split='train')[0].row
    assert play_use(UseEnv(row, []), Odd(), np.random.default_rng(0)).score == 0
