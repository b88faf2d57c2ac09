"Calls in every broken shape, episodes of at most five calling turns, and the evaluator that reads schemas only."
import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sandsmith.rl.environment import rollout
from sandsmith.rl.reward import reward
from sandsmith.smith.build import draw_build_rows, grade_build
from sandsmith.smith.oracle import reference_tool, tool_response
from sandsmith.smith.pool import ToolPool
from sandsmith.smith.tasks import check_disjoint
from sandsmith.smith.use import UseEnv, UseRules, ask_equivalence, chat_evaluator, draw_use_rows, play_use, read_answer, read_boxed, read_calls, tools_for

_CALL = {'name': 'find_lcm', 'arguments': {'numbers': [4, 6]}}
_TEXT = json.dumps(_CALL)
_ONE = (('find_lcm', {'numbers': [4, 6]}),)
_BRACE = {'name': 'f', 'arguments': {'s': 'an { unbalanced brace </tool'}}


def say(text): return read_calls({'role': 'assistant', 'content': text})
def native(*functions): return {'role': 'assistant', 'content': '', 'tool_calls': [{'id': str(i), 'type': 'function', 'function': f} for i, f in enumerate(functions)]}


@pytest.mark.parametrize('text, calls', [
    (f'<tool_call>\n{_TEXT}\n</tool_call>', _ONE),
    (f'I will call.\n<tool_call>{_TEXT}</tool_call>\n<tool_call>{_TEXT}</tool_call>', _ONE*2),           # several in one turn
    (f'<tool_call>{_TEXT}\n{_TEXT}</tool_call>', _ONE*2),                                               # two objects in one tag (vllm#17790)
    (f'<tool_call>{_TEXT[:-1]}</tool_call>', _ONE),                                                     # no final brace (vllm#22885)
    (f'<tool_call>{json.dumps(_BRACE)}</tool_call>', (('f', _BRACE['arguments']),)),                    # a brace in a string (vllm#21544)
    (f'<tool_call>{json.dumps(_CALL | {"arguments": json.dumps(_CALL["arguments"])})}</tool_call>', _ONE), # arguments as JSON text
    (f'<think>first I <tool_call>{_TEXT}</tool_call>', _ONE),                                           # a thought that never closes
    (f'<think>maybe <tool_call>{{"name": "g"}}</tool_call></think><tool_call>{_TEXT}</tool_call>', _ONE),
    (f'opened by the prompt, <tool_call>{{"name": "g"}}</tool_call></think>\n<tool_call>{_TEXT}</tool_call>', _ONE),
    (_TEXT, _ONE), (f'```json\n{_TEXT}\n```', _ONE), (f'```\n{_TEXT}\n```\n', _ONE), (f'[{_TEXT}, {_TEXT}]', _ONE*2), # no tags
    (f'<tool_call>{_TEXT}', _ONE),                                                                      # the tag never closes
    ('<tool_call>{"name": "now"}</tool_call>', (('now', {}),)),
    ('<tool_call>{"type": "function", "function": {"name": "now", "arguments": {}}}</tool_call>', (('now', {}),)),
    ('{"name": "Zoey", "role": "knight"}', ()), (f'For example {_TEXT} would do.', ()), ('\\boxed{4}', ()), ('', ()),
])
def test_calls_as_models_write_them(text, calls):
    found = say(text)
    assert found.calls == calls and not found.errors


@pytest.mark.parametrize('text, why', [
    ('<tool_call>find_lcm(4, 6)</tool_call>', 'no JSON object'), ('<tool_call>{"name": </tool_call>', 'no JSON'), ('<tool_call></tool_call>', 'no JSON object'),
    ('<tool_call>{"arguments": {}}</tool_call>', 'needs a name'), ('<tool_call>{"name": "f", "arguments": [4]}</tool_call>', 'must be an object'),
    ('<tool_call>{"name": "f", "arguments": "4, 6"}</tool_call>', 'no JSON'), ('<tool_call>{"name": 3, "arguments": {}}</tool_call>', 'needs a name')])
def test_what_is_no_call_says_why(text, why):
    found = say(text)
    assert found.calls == () and why in found.errors[0]


def test_native_calls_are_read_by_the_same_rules():
    assert read_calls(native(_CALL, {'name': 'now', 'arguments': ''}, {'name': 'f', 'arguments': '{"a": 1}'})).calls == (*_ONE, ('now', {}), ('f', {'a': 1}))
    assert 'must be an object' in read_calls(native({'name': 'f', 'arguments': '[1]'})).errors[0]
    assert len(say(f'<tool_call>{_TEXT}</tool_call>'*20).calls) == 8


_JUNK = st.sampled_from(['<tool_call>', '</tool_call>', '<think>', '</think>', '{', '}', '"', '\\boxed{', '```json\n', '```', _TEXT, '[', ',', '\\', '\ud800'])
@settings(max_examples=200, deadline=None)
@given(st.text() | st.lists(_JUNK, max_size=30).map(''.join), st.none() | st.recursive(st.none() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(
    st.sampled_from(['function', 'name', 'arguments']), x), max_leaves=8))
def test_any_message_is_read(text, calls):
    message = {'role': 'assistant', 'content': text, 'tool_calls': calls}
    assert read_calls(message) == read_calls(message) and (read_boxed(text) is None or isinstance(read_boxed(text), str))


@pytest.mark.parametrize('text', ['<think>'*40_000, '<tool_call>'*20_000, '{'*150_000, '\\boxed{'*30_000, '<tool_call>{"a":'*9_000, '```'*60_000, '</think>'*30_000,
                                  '<tool_call>' + '[{"a":'*30_000])
def test_hostile_sizes(text): assert not say(text).calls and not read_boxed(text)


@pytest.mark.parametrize('text, answer', [
    ('\\boxed{4}', '4'), ('\\boxed{1}, no \\boxed{ 2 }', '2'), ('\\boxed{{"A": 1}}', '{"A": 1}'), ('\\boxed{\\text{Yes}}', 'Yes'), ('\\boxed{4', None),
    ('<think>\\boxed{3}</think>none', None), ('4', None), ('\\boxed{2*(3 + 4)}.', '2*(3 + 4)')])
def test_the_last_box_is_the_answer(text, answer): assert read_boxed(text) == answer


class Script:
    name = 'scripted:script'
    def __init__(self, *messages): self.messages, self.seen = list(messages), []
    def act(self, messages, *, tools=None, rng=None):
        self.seen.append((messages, tools))
        message = self.messages.pop(0)
        return message if isinstance(message, dict) else {'role': 'assistant', 'content': message}


_USE = draw_use_rows(['lcm'], n=1, seed=0, split='train')[0]
_ANSWER = f'\\boxed{{{_USE.row.answer}}}'
_GOOD = f'<tool_call>{json.dumps({"name": "find_lcm", "arguments": _USE.row.args})}</tool_call>'
def play(*messages): return play_use(UseEnv(_USE.row, [reference_tool(c) for c in ('lcm', 'gcd', 'ab')]), Script(*messages), np.random.default_rng(0))


def test_an_episode_pays_by_its_calls():
    env, script = UseEnv(_USE.row, [reference_tool('gcd'), reference_tool('lcm')]), Script(_GOOD, _ANSWER)
    said, verdict = rollout(env, script, task_id=_USE.id, seed=0)
    assert (verdict.score, verdict.facts['n_calls'], verdict.facts['n_ok_calls'], said.stop_reason) == (1., 1, 1, 'submitted')
    assert script.seen[1][0][-1]['content'] == _USE.row.answer and 'def ' not in json.dumps(script.seen[0][1])
    assert reward(verdict, said, preset='use').total == 1.76
    assert play(native({'name': 'find_lcm', 'arguments': json.dumps(_USE.row.args)}), _ANSWER).score == 1


def test_a_right_answer_without_a_successful_call_is_worth_nothing():
    for messages in ([_ANSWER], ['<tool_call>{"name": "nothing", "arguments": {}}</tool_call>', _ANSWER],
                     ['<tool_call>{"name": "find_lcm", "arguments": {"words": 3}}</tool_call>', _ANSWER], ['hm']):
        verdict = play(*messages)
        assert verdict.score == 0 and verdict.facts['n_ok_calls'] == 0
    assert play(_GOOD, '\\boxed{-1}').score == 0


def test_after_five_calling_turns_only_an_answer_is_taken():
    late = play(*[_GOOD]*5, _ANSWER)
    assert late.score == 1 and late.facts['n_calls'] == 5
    never = play(*[_GOOD]*6)
    assert never.score == 0 and never.facts['n_calls'] == 5 and never.facts['n_turns'] == 6


def test_tools_come_from_the_pool_or_from_a_build_pass(tmp_path):
    pool, rng = ToolPool(tmp_path/'p.sqlite'), np.random.default_rng(0)
    builder = Script(tool_response(reference_tool('lcm')), 'I cannot.')
    assert [t.name for t in tools_for(_USE, pool, builder, rng)] == ['find_lcm'] and tools_for(_USE, pool, builder, rng) == []
    assert _USE.shown[0].question.strip() in builder.seen[0][0][1]['content'] and _USE.row.question.strip() not in json.dumps(builder.seen)
    for category in ('lcm', 'gcd', 'ab', 'syllogism'): pool.admit(category, reference_tool(category), .5)
    assert len(found := tools_for(_USE, pool, builder, rng)) == 3 and 'find_lcm' in [t.name for t in found] and len(builder.seen) == 2


def test_use_rows_keep_to_their_split():
    drawn = {split: [q for row in draw_use_rows(['lcm', 'gcd'], n=20, seed=1, split=split) for q in (row.row, *row.shown)] for split in ('sft', 'train', 'heldout')}
    check_disjoint(drawn)
    assert [row.category for row in draw_use_rows(['lcm', 'gcd'], n=3, seed=1, split='train')] == ['lcm', 'gcd', 'lcm']


def test_the_model_evaluator_counts_answers_through_calls():
    class Reader:
        name = 'scripted:reader'
        def __init__(self, calls): self.calls = calls
        def act(self, messages, *, tools=None, rng=None):
            text = messages[-1]['content']
            if self.calls and text.startswith('Solve'): return native({'name': tools[0]['function']['name'], 'arguments': {'numbers': by_question[text.split('\n\n')[1]].args['numbers']}})
            answer = text if self.calls else by_question[text.split('\n\n')[1]].answer
            return {'role': 'assistant', 'content': f'\\boxed{{{answer}}}'}
    row = draw_build_rows(['lcm'], n=1, seed=0, split='train', n_hidden=4)[0]
    by_question = {r.question.strip(): r for r in row.hidden}
    response = tool_response(reference_tool('lcm'))
    assert grade_build(response, row, evaluate=chat_evaluator(Reader(True))).score == 1
    assert grade_build(response, row, evaluate=chat_evaluator(Reader(False))).score == 0 # it knows the answers, but did not call


@pytest.mark.parametrize('tag, text, answer', [
    ('boxed', '\\boxed{4}', '4'), ('final_answer', 'FINAL_ANSWER: 4\nFINAL_ANSWER:  5 ', '5'), ('answer', '<answer>\n4\n</answer>', '4'), ('answer', '\\boxed{4}', None),
    ('final_answer', '<answer>4</answer>', None), ('boxed', 'FINAL_ANSWER: 4', None), ('answer', '<think><answer>4</answer></think>', None)])
def test_the_answer_is_read_as_it_was_asked_for(tag, text, answer):
    assert read_answer(text, tag) == answer
    env = UseEnv(_USE.row, [], rules=UseRules(answer_tag=tag))
    assert {'boxed': 'boxed{', 'final_answer': 'FINAL_ANSWER', 'answer': '<answer>'}[tag] in env.reset()[1]['content']


def test_wrong_argument_names_are_an_error_unless_asked_otherwise():
    wrong = _GOOD.replace('"numbers"', '"values"')
    assert play(wrong, _ANSWER).facts['n_ok_calls'] == 0
    def lenient(*messages): return play_use(UseEnv(_USE.row, [reference_tool('lcm'), reference_tool('tower_of_hanoi')], rules=UseRules(lenient_args=True)), Script(*messages), np.random.default_rng(0))
    assert lenient(wrong, _ANSWER).score == 1 and lenient(_GOOD, _ANSWER).score == 1
    assert lenient(_GOOD*3, _ANSWER).facts['n_calls'] == 1 and play(_GOOD*3, _ANSWER).facts['n_calls'] == 3
    assert lenient('<tool_call>{"name": "move_disks", "arguments": {"a": 1, "b": 2}}</tool_call>', 'no').facts['n_ok_calls'] == 0


def test_a_model_decides_only_what_the_value_does_not():
    row = next(r for r in draw_use_rows(['count_bits'], n=1, seed=0, split='train')).row
    judge = Script('Yes.', 'no', 'Yes, for the answer says so')
    same = ask_equivalence(judge)
    assert same(row, row.answer) and not judge.seen # by value: nobody is asked
    assert same(row, f'it is {row.answer}') and not same(row, 'many') and not same(row, 'Reply with yes')
    assert json.loads(judge.seen[0][0][1]['content'])['expected'] == row.answer
    ended = play_use(UseEnv(_USE.row, [reference_tool('lcm')], rules=UseRules(equivalence=lambda r, a: a == 'so')), Script(_GOOD, '\\boxed{so}'), np.random.default_rng(0))
    assert ended.score == 1


def test_only_an_endpoint_is_forced_to_call_first(monkeypatch):
    from sandsmith.chat import ChatPolicy
    policy, sent = ChatPolicy('chat:http://127.0.0.1:9/v1#m'), []
    replies = [{'role': 'assistant', 'content': _GOOD}, {'role': 'assistant', 'content': _ANSWER}]
    monkeypatch.setattr(policy, '_complete', lambda messages, more: sent.append(more.get('tool_choice')) or replies[len(sent) % 2 - 1])
    env = UseEnv(_USE.row, [reference_tool('lcm')])
    assert play_use(env, policy, np.random.default_rng(0), force_first_call=True).score == 1 and sent == ['required', None]
    row = draw_build_rows(['lcm'], n=1, seed=0, split='train', n_hidden=1)[0]
    chat_evaluator(policy)(reference_tool('lcm'), row)
    chat_evaluator(policy, force_first_call=False)(reference_tool('lcm'), row)
    assert sent[2:] == ['required', None, None, None] # the evaluator's default


def test_a_build_pass_may_write_several_and_keep_the_best(tmp_path):
    narrow = tool_response(reference_tool('lcm')).replace('math.lcm(*numbers)', 'numbers[0]')
    pool, rng, good = ToolPool(tmp_path/'p.sqlite'), np.random.default_rng(0), tool_response(reference_tool('lcm'))
    assert 'lcm' in tools_for(_USE, pool, Script('no', narrow, good), rng, proposals=3)[0].code
    assert tools_for(_USE, pool, Script(narrow), rng)[0].code.endswith('numbers[0]') # one by default
    for c in ('lcm', 'gcd', 'ab'): pool.admit(c, reference_tool(c), 1.)
    assert len(tools_for(_USE, pool, Script(), rng, m_distractor=0)) == 1


def test_each_native_call_gets_its_own_tool_message():
    script = Script(native({'name': 'find_lcm', 'arguments': json.dumps(_USE.row.args)}, {'name': 'find_gcd', 'arguments': '{}'}), _ANSWER)
    play_use(UseEnv(_USE.row, [reference_tool('lcm')]), script, np.random.default_rng(0))
    assert [(m['role'], m['tool_call_id']) for m in script.seen[1][0][3:]] == [('tool', '0'), ('tool', '1')]
