"SMITH's parts: the structural verifier, the graders by value, and the questions."
import json, os, subprocess, sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from sandsmith.core import GradeError, SpecError
from sandsmith.smith.build import draw_build_rows, share_by_band
from sandsmith.smith.graders import Row, grade_answer, read_arguments, read_polynomial
from sandsmith.smith.items import compute_answer, draw_item
from sandsmith.smith.tasks import (
    BANDS, CATEGORIES, CATEGORY_ARGS, SEEN, UNSEEN, bands_of, bind_arguments, check_disjoint, draw_rows, generate_rows, prepare_rows, rows,
    rows_to_jsonl)
from sandsmith.smith.tool import Tool, parse_response, verify

_CASES = [json.loads(line) for line in (Path(__file__).parent/'cases/verifier_cases.jsonl').read_text(encoding='utf-8').splitlines()]


# --- the verifier

@pytest.mark.parametrize('case', _CASES, ids=lambda case: case['id'])
def test_handed_case(case):
    verdict = verify(case['response'])
    assert {flag: getattr(verdict, flag) for flag in case['expected']} == case['expected'], (case['why'], verdict.reasons)


_INT = {'type': 'integer'}

def as_response(code, properties=None, **whole):
    "A build response; `properties` of the function `inc`, or `tool` for the whole JSON block, as text or data."
    properties = {'n': _INT} if properties is None else properties
    tool = whole.get('tool', {'type': 'function', 'function': {'name': 'inc', 'description': 'd', 'parameters': {
        'type': 'object', 'properties': properties, 'required': list(properties)}}})
    return f'```python\n{code}\n```\n\n```json\n{tool if isinstance(tool, str) else json.dumps(tool)}\n```\n'


_OK = 'def inc(n: int):\n    return n + 1'

@pytest.mark.parametrize('code, flag', [
    ('if False:\n    def inc(n): return n', 'fn_mismatch'),
    (_OK + '\ninc = 3', 'fn_mismatch'),
    (_OK + '\ndel inc', 'fn_mismatch'),
    (_OK + '\nfor inc in range(3): pass', 'fn_mismatch'),
    (_OK + '\nimport math as inc', 'fn_mismatch'),
    (_OK + '\ntry: pass\nexcept ValueError as inc: pass', 'fn_mismatch'),
    ('def inc(*n): return n', 'param_mismatch'),
    ('def inc(m, **n): return m', 'param_mismatch'),
    ('def inc(n: list[int]): return n', 'param_mismatch'),
    ("def inc(n: 'str'): return n", 'param_mismatch'),
    ('def inc(n, n): return n', 'syntax_error'),
    ('def inc(n):\n    pass\nreturn n', 'syntax_error'),
    ('def inc(n):\n    try: return n\n    finally: return (', 'syntax_error'),
    ('def inc(n):\0 return n', 'syntax_error'),
    ('def inc(n): return "\ud800"', 'syntax_error'),
])
def test_code_that_cannot_be_called(code, flag):
    verdict = verify(as_response(code))
    flags = {name: getattr(verdict, name) for name in ('fn_mismatch', 'param_mismatch', 'syntax_error')}
    assert flags == {name: name == flag for name in flags} and verdict.step1_fail and verdict.reasons


@pytest.mark.parametrize('response', [
    as_response(_OK + '\n\nif __name__ == "__main__":\n    inc = inc(3)'),
    as_response(_OK + '\nvalues = [inc for inc in range(3)]'),
    as_response(_OK + '\ndef helper():\n    inc = 3'),
    as_response('def inc(**kwargs): return kwargs', {'n': _INT, 'm': _INT}),
    as_response('def inc(n, *rest, mode="fast"): return n'),
    as_response('def inc(n: float): return n'),
    as_response('def inc(n: "Sequence[int] | None"): return n'),
    as_response('def inc(n: int | list): return n'),
    as_response('def inc(n): return n', {'n': {'enum': [1, 2]}}),
    as_response('def inc(n):\n    try: return n\n    finally: print(n)'),
    as_response('def inc(n):\n    return r"\\d" "\\d"'),
    as_response(_OK).replace('```', '````').replace('\n', '\r\n'),
    '1. First\n   ```python3\n   pass\n   ```\n' + '\n'.join('   ' + line for line in as_response(_OK).split('\n')),
])
def test_code_that_can_be_called(response):
    verdict = verify(response)
    assert verdict.format_ok and isinstance(verdict.tool, Tool), verdict.reasons
    assert 'def inc' in verdict.tool.code and verdict.tool.schema['function']['name'] == 'inc'


@pytest.mark.parametrize('tool', [
    [], [{}, {}], 3, None, {'name': 'inc', 'parameters': {}}, {'type': 'function', 'function': []},
    {'type': 'function', 'function': {'name': 'in c', 'parameters': {'type': 'object', 'properties': {}}}},
    {'type': 'function', 'function': {'name': 'inc', 'parameters': {'type': 'object'}}},
    {'type': 'function', 'function': {'name': 'inc', 'parameters': {'type': 'object', 'properties': {'n': {'type': 'int'}}}}},
    {'type': 'function', 'function': {'name': 'inc', 'parameters': {'type': 'object', 'properties': {'n': {}}}}},
    {'type': 'function', 'function': {'name': 'inc', 'parameters': {'type': 'object', 'properties': {'n': {'type': [['x']]}}}}},
    {'type': 'function', 'function': {'name': 'inc', 'parameters': {'type': 'object', 'properties': {'n': _INT}, 'required': 'n'}}},
    {'type': 'function', 'function': {'name': 'inc', 'parameters': {'type': 'object', 'properties': {'n': {'anyOf': {}}}}}},
    '{"type": NaN}', '{"a": "\\ud800"}', '{"a": 1e999}', '[' * 50_000, '{"a":' * 50_000, '9' * 5_000,
])
def test_schema_that_no_endpoint_takes(tool):
    verdict = verify(as_response(_OK, tool=tool))
    assert verdict.step1_fail and not (verdict.fn_mismatch or verdict.param_mismatch or verdict.syntax_error) and verdict.reasons


def test_hostile_sizes_give_a_verdict():
    codes = ['-' * 90_000 + '1', '+'.join(['1'] * 40_000), 'x' + '()' * 40_000, 'not ' * 30_000 + 'x', '(' * 90_000,
             'if x: pass\n' + 'elif x: pass\n' * 9_000, 'x = 9**9**9', 'x = ' + '9' * 90_000,
             'def inc(n):\n' + ''.join(' ' * (i + 1) + 'try: pass\n' + ' ' * (i + 1) + 'finally:\n' for i in range(90)) + ' ' * 92 + 'pass']
    assert all(verify(as_response(code)).step1_fail for code in codes[:-1])
    assert not verify(as_response(codes[-1])).syntax_error
    for text in ('`' * 150_000, '```\n' * 40_000, '```python\n' * 15_000, ' ' * 150_000 + '```python', '\n' * 150_000, 'a' * 20_000_000):
        assert verify(text).step1_fail


_PIECES = st.sampled_from([
    '```python\n', '```json\n', '```\n', '````\n', '~~~\n', '\r\n', '\0', '\ud800', '{', '}', '[', '@', 'class inc:', 'lambda', '\\',
    'def inc(n):\n', '    return n\n', _OK + '\n', '"type": "function", ', '"function": ', '"name": "inc"',
    '"parameters": {"type": "object", "properties": {}}', parse_response(as_response(_OK)).json[0] + '\n'])
_KEYS = st.sampled_from(['type', 'function', 'name', 'parameters', 'properties', 'required', 'items', 'anyOf', 'enum', 'n', 'inc'])
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | _KEYS
_JSON = st.recursive(_LEAVES, lambda x: st.lists(x, max_size=3) | st.dictionaries(_KEYS, x, max_size=4), max_leaves=12)
_PARAMETERS = st.dictionaries(st.sampled_from(['n', 'm']), _JSON, max_size=2)

@settings(max_examples=300, deadline=None)
@given(st.one_of(
    st.text(), st.binary(), st.lists(_PIECES, max_size=12).map(''.join), st.text(max_size=60).map(as_response),
    _JSON.map(lambda tool: as_response(_OK, tool=json.dumps(tool))), _PARAMETERS.map(lambda p: as_response(_OK, p))))
def test_verify_never_raises(text):
    verdict = verify(text)
    assert verdict == verify(text)
    assert verdict.step1_fail == (verdict.tool is None)
    assert verdict.step1_fail or not (verdict.fn_mismatch or verdict.param_mismatch or verdict.syntax_error)
    assert not (verdict.format_ok and verdict.step1_fail) and (verdict.format_ok or verdict.reasons)


# --- questions and graders

_DRAWS = {(category, band): generate_rows(category, band, 20, 5) for category in CATEGORIES for band in BANDS}

_MALICIOUS = ["__import__('os').system('touch owned')", '9**9**9', '6*4*1*1', '(' * 5_000, '-' * 19_000 + '1', 'x' * 10**6, '\0\ud800',
              '1e999', '[' * 9_000, 'x' + '**64' * 300, '(a+b+c+d+e)**60', '0.1**60' * 40, '=' * 9_000, ',' * 9_000,
              'Move disk 1 from Peg 1 to Peg 2\n' * 300,
              None, True, float('nan'), float('inf'), 10**5_000, [], {}, [[]], [None] * 10_000, {'A': []}, [1] * 10_000, {'': {'': ''}}]


@pytest.mark.parametrize('category', CATEGORIES)
@pytest.mark.parametrize('band', BANDS)
def test_golds_score_one_and_other_golds_zero(category, band):
    found = _DRAWS[category, band].rows
    assert len(found) == (6 if category == 'tower_of_hanoi' else 20)
    assert len({row.question for row in found}) == len({row.id for row in found}) == len(found)
    for row, other in zip(found, (*found[1:], found[0])):
        assert grade_answer(row, row.answer) == (1.0, 'right')
        assert grade_answer(row, f' {row.answer}\n')[0] == 1.0
        if other.answer != row.answer: assert grade_answer(row, other.answer)[0] == 0.0
        assert grade_answer(row, '')[0] == 0.0 and grade_answer(row, f'{row.answer} or not')[0] == 0.0


@pytest.mark.parametrize('category', CATEGORIES)
def test_malicious_answers_score_zero(category, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = next(row for row in _DRAWS[category, 'evaluation'].rows if row.answer != 'True')
    for answer in _MALICIOUS:
        score, why = grade_answer(row, answer)
        assert score == 0.0 and why and len(why) < 400
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('category', CATEGORIES)
def test_arguments(category):
    kinds = {'string': str, 'integer': int, 'array': list}
    for band in BANDS:
        for row in _DRAWS[category, band].rows:
            assert row.args == read_arguments(category, row.question)
            announced = [(argument.name, kinds[argument.type]) for argument in CATEGORY_ARGS[category]]
            assert [(name, type(value)) for name, value in (row.args or {}).items()] == announced
            bare = Row(**{key: getattr(row, key) for key in ('id', 'category', 'band', 'question', 'answer', 'grader')})
            assert grade_answer(bare, row.answer)[0] == 1.0


@pytest.mark.parametrize('category', CATEGORIES)
def test_bands_share_no_question(category):
    assert not {row.question for row in _DRAWS[category, 'induction'].rows} & {row.question for row in _DRAWS[category, 'evaluation'].rows}


def reference_answer(row):
    "A short independent solver for the categories that have one value as answer."
    import math
    a = row.args
    if row.category == 'bitwise_arithmetic': return hex(eval(a['expression'], {'__builtins__': {}}))
    if row.category == 'count_bits': return bin(a['n']).count('1')
    if row.category in ('lcm', 'gcd'): return getattr(math, row.category)(*a['numbers'])
    if row.category == 'isomorphic_strings': return [a['a'].index(c) for c in a['a']] == [a['b'].index(c) for c in a['b']]
    if row.category == 'polynomial_equations':
        import numpy as np
        return [float(r.real) for r in np.roots(a['coefficients']) if abs(r.imag) < 1e-6]
    if row.category == 'polynomial_multiplication': return compute_answer(row.category, a)
    if row.category == 'tower_of_hanoi':
        def carry(n, start, end):
            spare = 6 - start - end
            return [*carry(n - 1, start, spare), [start, end], *carry(n - 1, spare, end)] if n else []
        return carry(a['disks'], a['source'], a['target'])
    return None


@pytest.mark.parametrize('category', CATEGORIES)
def test_a_correct_tool_scores_one(category):
    for band in BANDS:
        for row in _DRAWS[category, band].rows:
            answer = reference_answer(row)
            if answer is not None: assert grade_answer(row, answer) == (1.0, 'right'), (row, answer)


def as_mapping(gold): return {pair[0]: int(pair[2]) for pair in gold.split(',')}
def as_moves(gold): return [[int(word) for word in line.split() if word.isdigit()] for line in gold.split('\n')]

@pytest.mark.parametrize('category, answers', [
    ('count_bits', lambda gold: [int(gold), float(gold), f'{gold}.0', hex(int(gold)), bin(int(gold))]),
    ('bitwise_arithmetic', lambda gold: [int(gold, 16), str(int(gold, 16)), gold.upper().replace('X', 'x')]),
    ('base_conversion', lambda gold: [gold.upper(), '0' + gold]),
    ('isomorphic_strings', lambda gold: [gold == 'True', gold.lower()]),
    ('polynomial_equations', lambda gold: [[float(x) for x in gold.split(', ')], f'[{gold}]', ', '.join(reversed(gold.split(', ')))]),
    ('polynomial_multiplication', lambda gold: [gold.replace('**', '^'), f'({gold})', f'0 + {gold}']),
    ('cryptarithm', lambda gold: [as_mapping(gold), str(as_mapping(gold)), json.dumps(as_mapping(gold))]),
    ('tower_of_hanoi', lambda gold: [gold.split('\n'), as_moves(gold), gold.upper()]),
    ('knights_knaves', lambda gold: [gold.rstrip('.'), gold.replace(' and ', ' '), gold.upper()]),
    ('countdown', lambda gold: [f'({gold})', gold.replace('*', '×')]),
])
def test_forms_of_the_same_value(category, answers):
    for band in BANDS:
        for row in _DRAWS[category, band].rows:
            for answer in answers(row.answer): assert grade_answer(row, answer) == (1.0, 'right'), (row, answer)


@pytest.mark.parametrize('category, change', [
    ('count_bits', lambda gold: str(int(gold) + 1)), ('bitwise_arithmetic', lambda gold: gold.replace('0x', '')),
    ('lcm', lambda gold: gold[:-1]), ('gcd', lambda gold: f'-{gold}'), ('base_conversion', lambda gold: gold + '0'),
    ('isomorphic_strings', lambda gold: gold != 'True'), ('caesar_cipher', lambda gold: gold[:-1]),
    ('polynomial_equations', lambda gold: gold + ', 99.5'), ('polynomial_equations', lambda gold: ', '.join(gold.split(', ')[1:])),
    ('polynomial_multiplication', lambda gold: gold + ' + 1'),
    ('countdown', lambda gold: gold + ' + 1 - 1'), ('countdown', lambda gold: gold + ' = 3'),
    ('cryptarithm', lambda gold: gold.rsplit(',', 1)[0]), ('cryptarithm', lambda gold: f'{gold},{gold[0]}={(int(gold[2]) + 1) % 10}'),
    ('tower_of_hanoi', lambda gold: gold.rsplit('\n', 1)[0]), ('knights_knaves', lambda gold: gold.rsplit(',', 1)[0]),
    ('knights_knaves', lambda gold: gold + ' Not really.'), ('knights_knaves', lambda gold: gold.replace(' is ', ' is not ', 1)),
])
def test_changed_golds_score_zero(category, change):
    for band in BANDS:
        for row in _DRAWS[category, band].rows:
            wrong = change(row.answer)
            if wrong not in ('', row.answer) and not (category == 'bitwise_arithmetic' and wrong.lstrip('-').isdigit()):
                assert grade_answer(row, wrong)[0] == 0.0, (row, wrong)


@pytest.mark.parametrize('row', _DRAWS['polynomial_multiplication', 'evaluation'].rows[:6], ids=lambda row: row.id)
def test_handing_back_a_product_is_no_answer(row):
    assert grade_answer(row, row.args['expression']) == (0.0, 'not multiplied out')
    assert grade_answer(row, f'({row.answer})*(1 + 0)')[0] == 0.0


def test_hanoi_with_a_detour_scores_zero():
    row = _DRAWS['tower_of_hanoi', 'induction'].rows[0]
    (disk, start, end), *rest = as_moves(row.answer)
    spare = 6 - start - end
    score, why = grade_answer(row, [[disk, start, spare], [disk, spare, end], *rest])
    assert score == 0.0 and 'suffice' in why


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), min_size=1), st.tuples(st.integers(-9, 9), st.integers(-9, 9)))
def test_polynomials_agree_with_arithmetic(terms, factor):
    left, right = ' + '.join(f'({c})*x**{e}' for c, e in terms), f'({factor[0]} - y*({factor[1]}))'
    product = read_polynomial(f'({left})*{right}')
    for x, y in ((2, 3), (-1, 5), (7, 0)):
        expected = sum(c*x**e for c, e in terms)*(factor[0] - y*factor[1])
        assert sum(c*x**dict(m).get('x', 0)*y**dict(m).get('y', 0) for m, c in product.items()) == expected


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(CATEGORIES), st.text() | _JSON)
def test_grading_never_raises(category, answer):
    score, why = grade_answer(_DRAWS[category, 'induction'].rows[0], answer)
    assert score in (0.0, 1.0) and why


def test_faults_of_ours_are_errors():
    row = Row(id='r', category='countdown', band='induction', question='What?', answer='1', grader='expression')
    with pytest.raises(GradeError, match='unknown form'): grade_answer(row, '1')
    with pytest.raises(GradeError, match='grader'): grade_answer(Row(**{**vars(row), 'grader': 'vibes'}), '1')
    with pytest.raises(SpecError, match='induction or evaluation'): rows('gcd', 'hard', 3, 1)
    with pytest.raises(SpecError, match='at least 1'): rows('gcd', 'induction', 0, 1)


# --- same rows everywhere

def test_draws_are_prefixes_of_one_stream_and_seeds_differ():
    longer, shorter = _DRAWS['gcd', 'evaluation'].rows, generate_rows('gcd', 'evaluation', 7, 5).rows
    assert longer[:7] == shorter
    assert not {row.question for row in longer} & {row.question for row in generate_rows('gcd', 'evaluation', 20, 6).rows}


_SCRIPT = '''import hashlib
from sandsmith.smith.tasks import CATEGORIES, generate_rows, rows_to_jsonl
text = ''.join(rows_to_jsonl(generate_rows(c, band, 2, 5).rows) for c in CATEGORIES for band in ('induction', 'evaluation'))
print(hashlib.sha256(text.encode()).hexdigest())'''

def test_rows_do_not_depend_on_the_process():
    env = {**os.environ, 'PYTHONPATH': str(Path(__file__).parent.parent)}
    digests = {subprocess.run([sys.executable, '-W', 'ignore', '-c', _SCRIPT], env={**env, 'PYTHONHASHSEED': seed},
                              capture_output=True, text=True, check=True).stdout for seed in ('1', '2')}
    assert len(digests) == 1 and len(digests.pop()) == 65


def test_cache_hit_equals_fresh_and_damage_is_repaired(tmp_path, monkeypatch):
    monkeypatch.setenv('SANDSMITH_CACHE', str(tmp_path))
    fresh = generate_rows('caesar_cipher', 'induction', 5, 9)
    assert draw_rows('caesar_cipher', 'induction', 5, 9) == fresh
    path, = (tmp_path/'rows').glob('caesar*')
    written = path.read_bytes()
    first, kept = draw_rows('base_conversion', 'induction', 3, 9), draw_rows('base_conversion', 'induction', 3, 9)
    assert [list(row.args) for row in first.rows] == [list(row.args) for row in kept.rows] == [['number', 'from_base', 'to_base']]*3
    assert draw_rows('caesar_cipher', 'induction', 5, 9) == fresh and rows('caesar_cipher', 'induction', 5, 9) == list(fresh.rows)
    for damage in (b'', written[:-30], written.replace(b'"answer":"', b'"answer":"X', 1), b'[]\n', b'\xff'):
        path.write_bytes(damage)
        assert draw_rows('caesar_cipher', 'induction', 5, 9) == fresh and path.read_bytes() == written
    assert [Row(**json.loads(line)) for line in rows_to_jsonl(fresh.rows).splitlines()] == list(fresh.rows)


def test_bands_and_splits_share_no_question_and_what_is_missing_is_counted(tmp_path, monkeypatch):
    monkeypatch.setenv('SANDSMITH_CACHE', str(tmp_path))
    report = prepare_rows(['self_reference', 'tower_of_hanoi'], n=30, seed=4, workers=2)
    assert report == prepare_rows(['self_reference', 'tower_of_hanoi'], n=30, seed=4, workers=1)
    assert {(line['category'], line['n_distinct']) for line in report} == {('self_reference', 30), ('tower_of_hanoi', 6)}
    assert all(line['dropped']['other_band'] > 5 for line in report if line['category'] == 'self_reference')
    other = generate_rows('self_reference', 'evaluation', 200, 99).rows # another seed, the other band
    check_disjoint({'induction': rows('self_reference', 'induction', 30, 4), 'evaluation': other})
    with pytest.raises(SpecError, match='one split'): check_disjoint({'a': other, 'b': other[-1:]})


# --- golds that reasoning-gym has wrong

def test_unseen_categories_are_the_ten_of_the_paper():
    assert len(SEEN) == 13 and len(UNSEEN) == 10 and not set(SEEN) & set(UNSEEN)


def test_fallacies_are_corrected_and_say_so():
    found = generate_rows('syllogism', 'induction', 60, 1).rows
    fixed = [row for row in found if 'gold_was' in row.metadata]
    assert 3 <= len(fixed) <= 20 and all(row.metadata['gold_was'] != row.answer for row in fixed)
    assert all(row.question.endswith('at least one of each kind.') for row in found)


@pytest.mark.parametrize('premises, conclusion, answer', [
    (('All a are b', 'Some b are c'), 'Some a are c', 'No'), (('All a are b', 'Some b are not c'), 'Some a are not c', 'No'),
    (('All a are b', 'All b are c'), 'All a are c', 'Yes'), (('All a are b', 'All b are c'), 'Some c are a', 'Yes'),
    (('No a are b', 'All c are b'), 'Some a are not c', 'Yes'), (('Some a are not b', 'All b are c'), 'Some b are not a', 'No')])
def test_syllogisms_by_trying_every_world(premises, conclusion, answer):
    assert compute_answer('syllogism', dict(zip(('first', 'second', 'conclusion'), (*premises, conclusion)))) == answer


def test_every_24_has_its_own_numbers():
    rows24 = generate_rows('puzzle24', 'evaluation', 12, 2).rows
    assert all(grade_answer(row, '6*4*1*1')[0] == (sorted(row.args['numbers']) == [1, 1, 4, 6]) for row in rows24)


def test_puzzle24_is_drawn_as_reasoning_gym_draws_it():
    import reasoning_gym
    theirs = reasoning_gym.create_dataset('puzzle24', size=1, seed=0)
    for seed in (3, 8, 21):
        theirs.seed = seed
        assert draw_item({}, 'puzzle24', seed)[0] == theirs[0]['question']


def test_a_zone_is_not_lost():
    args = {'start': '2024-01-15 (Monday) 10:00:00 +0000', 'end': '2024-01-16 (Tuesday) 09:30:05 -0100', 'format': 'D days, HH:MM:SS'}
    assert compute_answer('time_intervals', args) == '1 days, 00:30:05'
    assert compute_answer('time_intervals', {**args, 'end': args['start'], 'start': args['end']}) == ''


# --- binding

def test_bind_arguments():
    args = {'number': '1a', 'from_base': 16, 'to_base': 2}
    def tool(*types, required=None):
        properties = {f'p{i}': t if isinstance(t, dict) else {'type': t} for i, t in enumerate(types)}
        return {'type': 'function', 'function': {'name': 'f', 'parameters': {
            'type': 'object', 'properties': properties, 'required': list(properties) if required is None else required}}}
    assert bind_arguments(tool('string', 'integer', 'number'), args) == {'p0': '1a', 'p1': 16, 'p2': 2}
    assert bind_arguments(tool('integer', 'integer', 'string', required=['p2', 'p1', 'p0']), args) == {'p2': '1a', 'p1': 16, 'p0': 2}
    assert bind_arguments(tool('string', 'integer', 'integer', 'boolean', required=['p0', 'p1', 'p2']), args) is not None
    assert bind_arguments(tool('string', 'integer', {'anyOf': [{'type': 'integer'}, {'type': 'null'}]}), args) is not None
    for bad in (tool('string', 'integer'), tool('string', 'integer', 'boolean'), tool('string', 'integer', {'enum': [8, 10]}),
                tool('integer', 'integer', 'integer'), tool('string', 'integer', 'integer', required=[])):
        assert bind_arguments(bad, args) is None
    listed = tool({'type': 'array', 'items': {'type': 'integer'}})
    assert bind_arguments(listed, {'numbers': [4, 6]}) == {'p0': [4, 6]}
    assert bind_arguments(listed, {'numbers': ['4']}) is None and bind_arguments(listed, None) is None


# --- middle bands

_MIDDLE = [category for category in CATEGORIES if 'middle' in bands_of(category)]

@pytest.mark.parametrize('category', _MIDDLE)
def test_a_middle_band_lies_between(category):
    draw = generate_rows(category, 'middle', 4, 5)
    assert len(draw.rows) == 4 and all(grade_answer(row, row.answer)[0] == 1.0 and row.band == 'middle' for row in draw.rows)
    check_disjoint({band: _DRAWS[category, band].rows for band in BANDS} | {'middle': draw.rows})
    def size(rows): return sum(len(row.question) for row in rows)/len(rows)
    if category in ('isomorphic_strings', 'polynomial_multiplication', 'knights_knaves', 'ab'):
        assert size(_DRAWS[category, 'induction'].rows) < size(draw.rows) < size(_DRAWS[category, 'evaluation'].rows)


def test_categories_without_a_middle_band_say_so():
    assert set(SEEN) - set(_MIDDLE) == {'cryptarithm'} and set(_MIDDLE) - set(SEEN) == {'simple_equations', 'ab'}
    with pytest.raises(SpecError, match='induction or evaluation, got'): rows('cryptarithm', 'middle', 3, 1)
    with pytest.raises(SpecError, match='or middle'): rows('gcd', 'b3', 3, 1)


def test_a_test_set_over_all_bands_begins_with_the_hard_one():
    wide = draw_build_rows(['gcd', 'cryptarithm'], n=2, seed=1, split='heldout', n_hidden=14, test_bands=('induction', 'middle', 'evaluation'))
    assert [[(band, sum(r.band == band for r in row.hidden)) for band in dict.fromkeys(r.band for r in row.hidden)] for row in wide] == [
        [('evaluation', 5), ('middle', 5), ('induction', 4)], [('evaluation', 7), ('induction', 7)]]
    for row in wide:
        assert len({r.question for r in row.shown + row.hidden}) == 18
        assert list(share_by_band(row, [True]*5 + [False]*9)) == list(dict.fromkeys(r.band for r in row.hidden))
    assert draw_build_rows(['gcd'], n=1, seed=1, split='train') == draw_build_rows(['gcd'], n=1, seed=1, split='train', test_bands=['evaluation'])
    train, held = ({q.question for r in draw_build_rows(['gcd'], n=9, seed=1, split=s, test_bands=BANDS) for q in r.shown + r.hidden} for s in ('train', 'heldout'))
    assert not train & held
    for bands in ((), ('middle',), ('evaluation', 'hard')):
        with pytest.raises(SpecError, match='test_bands'): draw_build_rows(['gcd'], n=1, seed=1, split='train', test_bands=bands)


def test_a_line_separator_inside_a_row_is_no_line_end(tmp_path, monkeypatch):
    monkeypatch.setenv('SANDSMITH_CACHE', str(tmp_path))
    odd = generate_rows('gcd', 'induction', 1, 1)
    odd = replace(odd, rows=(replace(odd.rows[0], question='two\u2028lines\x85 of\x0c one'),))
    monkeypatch.setattr('sandsmith.smith.tasks.generate_rows', lambda *args: odd)
    assert draw_rows('gcd', 'induction', 1, 1) == odd
    monkeypatch.setattr('sandsmith.smith.tasks.generate_rows', lambda *args: pytest.fail('the cache was not read'))
    assert draw_rows('gcd', 'induction', 1, 1) == odd
