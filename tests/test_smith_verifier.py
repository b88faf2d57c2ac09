"Rules of the structural verifier beyond the handed cases, and text that no model should write."
import ast, json

import pytest
from hypothesis import given, settings, strategies as st

from sandsmith.smith.tool import _compile, _find_function, _read_signature, parse_response, verify

_INT, _NUM, _STR = {'type': 'integer'}, {'type': 'number'}, {'type': 'string'}
_OK = 'def inc(n: int):\n    return n + 1'


def as_response(code, properties=None, required=None, name='inc', **function):
    properties = {'n': _INT} if properties is None else properties
    parameters = {'type': 'object', 'properties': properties, 'required': list(properties) if required is None else required}
    return f'```python\n{code}\n```\n```json\n{json.dumps({"type": "function", "function": {"name": name, "parameters": parameters, **function}})}\n```'


def flags(text, **how):
    v = verify(text, **how)
    return 'format' if v.step1_fail and not (v.fn_mismatch or v.param_mismatch or v.syntax_error) else (
        'fn' if v.fn_mismatch else 'param' if v.param_mismatch else 'syntax' if v.syntax_error else 'pass' if v.format_ok else 'blocks')


@pytest.mark.parametrize('verdict, code, more', [
    # the name: a def that stands in the module, and the last binding wins
    ('fn', 'try:\n    def inc(n): return n\nfinally: pass', {}), ('fn', 'if True:\n    def inc(n): return n\nelse:\n    def inc(n): return 1', {}),
    ('fn', 'def inc(n): return n\nclass inc: pass', {}), ('fn', 'def inc(n): return n\nimport inc', {}),
    ('fn', 'def inc(n): return n\ninc: object = 3', {}), ('fn', 'def inc(n): return n\n(inc := 3)', {}),
    ('fn', 'def inc(n): return n\n[inc, x] = 1, 2', {}), ('fn', 'def inc(n): return n\nasync def inc(n): return n', {}),
    ('fn', 'def inc(n): return n\nwith open("x") as inc: pass', {}), ('fn', 'import functools\ninc = functools.partial(max, 1)', {}),
    ('fn', 'exec("def inc(n): return n")', {}), ('fn', 'globals()["inc"] = len', {}), ('fn', 'def inc_(n): return n', {}),
    ('pass', 'inc = 3\ndef inc(n): return n', {}), ('pass', 'def inc(n): return n\ninc: object', {}),
    ('pass', 'import functools\n@functools.lru_cache\ndef inc(n): return n', {}), ('pass', 'def inc(n): return n\ninc.cache = {}', {}),
    ('pass', 'async def helper(): pass\ndef inc(n): return n', {}), ('pass', 'class Helper:\n    inc = 3\ndef inc(n): return n', {}),
    ('pass', 'def inc(n): return n\ndef other():\n    global inc\n    inc = 3', {}),
    # parameters: mandatory ⊆ required ⊆ properties ⊆ those that take a keyword
    ('param', 'def inc(n, m): return n', {}), ('param', 'def inc(n, *, m): return n', {}), ('param', 'def inc(n): return n', {'properties': {'N': _INT}}),
    ('param', 'def inc(n): return n', {'required': []}), ('param', 'def inc(n=1): return n', {'required': ['n', 'm']}),
    ('param', 'def inc(*args): return args', {'properties': {'args': {'type': 'array', 'items': _INT}}}),
    ('param', 'def inc(n, *args): return n', {'properties': {'n': _INT, 'args': {'type': 'array', 'items': _INT}}, 'required': ['n']}),
    ('param', 'def inc(n=1, /): return n', {'required': []}), ('param', 'def inc(self, n): return n', {'properties': {'self': _INT, 'n': _INT}}),
    ('param', 'def inc(cls, n): return n', {}), ('param', 'def inc(): return 1', {}), ('param', 'def inc(n): return n', {'properties': {}}),
    ('pass', 'def inc(m, n): return n', {'properties': {'n': _INT, 'm': _INT}}), ('pass', 'def inc(n=1): return n', {}),
    ('pass', 'def inc(n=1): return n', {'required': []}), ('pass', 'def inc(n, *args, **options): return n', {}),
    ('pass', 'def inc(n, **more): return n', {'properties': {'n': _INT, 'unit': _STR}}), ('pass', 'def inc(a=1, /, *, n): return n', {}),
    ('pass', 'def inc(): return 1', {'properties': {}}),
    # types: only what certainly contradicts
    ('param', 'def inc(n: str): return n', {}), ('param', 'def inc(n: dict): return n', {}), ('param', 'from typing import List\ndef inc(n: List[int]): return n', {}),
    ('param', 'def inc(n: int): return n', {'properties': {'n': _STR}}), ('param', 'def inc(n: int | None = None): return n', {'properties': {'n': _STR}}),
    ('param', 'from typing import Optional\ndef inc(n: Optional[str] = None): return n', {}),
    ('param', 'def inc(n: int): return n', {'properties': {'n': {'type': 'array', 'items': _INT}}}),
    ('pass', 'def inc(n: int): return n', {'properties': {'n': _NUM}}), ('pass', 'def inc(n: float): return n', {}),
    ('pass', 'from decimal import Decimal\ndef inc(n: Decimal): return n', {}), ('pass', 'def inc(n: object): return n', {}),
    ('pass', 'def inc(n: int | str): return n', {'properties': {'n': {'type': ['integer', 'string']}}}),
    ('pass', 'def inc(n: tuple): return n', {'properties': {'n': {'type': 'array', 'items': True}}}),
    ('pass', 'def inc(n: int): return n', {'properties': {'n': {'enum': [1, 2]}}}), ('pass', 'def inc(n): return n', {'properties': {'n': {'const': 1}}}),
    # the schema: what an endpoint refuses
    ('format', _OK, {'properties': {'n': {'description': 'no type'}}}), ('format', _OK, {'properties': {'n': {'type': 'int'}}}),
    ('format', _OK, {'properties': {'n': {'type': 'object', 'properties': {'x': {'type': 'array'}}}}}), ('format', _OK, {'name': 'in c'}),
    ('format', _OK, {'name': 'x' * 65}), ('format', _OK, {'name': ''}), ('format', _OK, {'name': 'ínc'}), ('format', _OK, {'description': 3}),
    ('format', _OK, {'required': 'n'}), ('format', _OK, {'required': ['n', 'n']}), ('format', _OK, {'parameters': None}), ('format', _OK, {'parameters': {}}),
    ('format', _OK, {'properties': {'n': {'anyOf': [{'type': 'array'}]}}}), ('format', _OK, {'properties': {'n': {'enum': []}}}),
    ('pass', _OK, {'strict': True, 'description': 'd'}), ('fn', _OK, {'name': 'in-c'}),
    # the code: what Python refuses to compile
    ('syntax', 'def inc(n):\n\treturn n\n        return n', {}), ('syntax', 'def inc(n):\n    return n\n  x = 1', {}), ('syntax', 'return 1', {}),
    ('syntax', 'def inc(n):\n    break', {}), ('syntax', 'def inc(n):\n    print(n, sep="", sep=" ")', {}), ('syntax', 'def inc(n, n): return n', {}),
    ('syntax', 'def inc(n):\n    nonlocal x', {}), ('syntax', 'def inc(n):\n    await n', {}), ('syntax', 'def inc(n):\n    try: pass\n    except: pass\n    except ValueError: pass', {}),
    ('syntax', 'from __future__ import braces', {}), ('syntax', 'print "n"', {}), ('syntax', 'def inc(n):\n    try: return n\n    finally: pass\nreturn n', {}),
    ('syntax', 'def inc(n):\n    """cut off', {}), ('syntax', '>>> def inc(n): return n', {}), ('syntax', 'def inc(n)\u00a0: return n', {}),
])
def test_rules(verdict, code, more): assert flags(as_response(code, **more)) == verdict, verify(as_response(code, **more)).reasons


@pytest.mark.parametrize('verdict, change', [
    ('pass', lambda r: r.replace('```python', '``` python')), ('pass', lambda r: r.replace('```python', '```PYTHON title="x"')), ('pass', lambda r: '\ufeff\n' + r),
    ('pass', lambda r: r.replace('\n', '\r')), ('pass', lambda r: r.replace('```', '`````')), ('pass', lambda r: r + '\n```text\nfor example\n```'),
    ('pass', lambda r: r.replace('return n + 1', 'return n + 1 # ``` no fence')), ('pass', lambda r: r.replace('    return n + 1', '    """\n    ```\n    inc(1)\n    ```\n    """\n    return n + 1')),
    ('format', lambda r: r.replace('```python', '```')), ('format', lambda r: r.replace('```json', '```jsonc')), ('format', lambda r: r.replace('```', '~~~')),
    ('format', lambda r: r.removesuffix('```')), ('format', lambda r: r.replace('```python', '```py')), ('format', lambda r: r.replace('"inc"', "'inc'")),
    ('format', lambda r: r.replace('{"type": "function"', '// a tool\n{"type": "function"')), ('format', lambda r: r.split('```json')[0]),
    ('blocks', lambda r: r + '\n' + r), ('blocks', lambda r: r + '\n```python\n(\n```'), ('blocks', lambda r: r + '\n```json\n{\n```')])
def test_blocks(verdict, change): assert flags(change(as_response(_OK))) == verdict


def test_settings_of_the_appendix():
    assert flags('Here.\n' + as_response(_OK), allow_text=False) == 'blocks' and flags(as_response(_OK), allow_text=False) == 'pass'
    assert flags(as_response(_OK) + '\n```text\n1\n```', allow_text=False) == 'blocks'
    assert flags(as_response(_OK), interface='solve_question') == 'fn'
    solve = as_response('def solve(question): return question', {'question': _STR}, name='solve')
    assert flags(solve, interface='solve_question') == 'pass'
    more = as_response('def solve(question, hint=""): return question', {'question': _STR, 'hint': _STR}, name='solve')
    assert flags(more, interface='solve_question') == 'param' and flags(more) == 'pass'


_UNITS = ['(', '[', '{', '{1:', 'not ', '-', '~', 'lambda:', 'await ', 'f"{', '"', "'", '"""', '\\', '\\\n', '*', '**', ': ', ';', ',', '.', '@', '\t', '\f', '\0', '\u2028',
          'x[', 'x(', 'x.', 'a|', 'a<b<', '1;', '*a,', 'a=', 'a:=', 'if x:\n', 'for x in y:\n ', 'def f():\n ', 'class A:\n ', 'try:\n ', 'with a:\n ', 'match x:\n ', 'global a\n',
          '0x', '1_', '1e', '1if ', '"a" "b"', '# #\n', 'import a.', 'del a\n', '(yield) ', 'a if b else ', '\ud800', 'é', '`', '```\n', '```python\n', '```json\n', '~~~', ' ', '\n', '\r']
_FRAMES = [('', ''), ('x = ', f'\n{_OK}'), ('def inc(n: list[', '1]): return n'), ('def inc(n: "a" | ', 'int): return n'), ('if ', f' == 1: pass\n{_OK}'),
           ('def inc(n=', '1): return n'), ('@', f'\n{_OK}')]


@pytest.mark.parametrize('unit', _UNITS, ids=repr)
def test_a_unit_repeated_never_raises_or_hangs(unit):
    for n in (40, 330, 1000, 2900, 20_000):
        for before, after in _FRAMES if n < 20_000 else _FRAMES[:1]:
            assert verify(as_response(before + unit*n + after)) is not None and verify(unit*n) is not None


@pytest.mark.parametrize('text', [
    '`'*1_000_000, '`'*150_000, '```\n'*50_000, '('*5_000_000, b'\xff'*3_000_000, b'```python\n\xff\n```\n```json\n\xfe\n```', '\0'*2_000_000, '\ud800'*1_000_000,
    '```json\n' + '['*190_000 + '\n```', '```json\n' + '{"a":'*30_000 + '\n```', '```json\n' + '9'*190_000 + '\n```', '```json\n"' + '\\u0000'*30_000 + '"\n```'])
def test_megabytes(text): assert verify(text).step1_fail and verify(text).reasons


_DEEP = st.integers(1, 40).flatmap(lambda n: st.sampled_from([('{"anyOf": [', ']}'), ('{"type": "array", "items": ', '}'), ('{"type": "object", "properties": {"x": ', '}}')]).map(
    lambda pair: pair[0]*n + '{"type": "integer"}' + pair[1]*n))
_LINES = st.lists(st.sampled_from([_OK, 'def inc(n):', '    return n', 'inc = 3', 'if n:', 'while n:', '    break', '  continue', 'class A:', '    def inc(self, n): pass', 'import inc', '@inc',
                                   'x = """', '"""', 'lambda n, n: 0', 'f(a=1, a=2)', '*a, *b = c', 'async def inc(n): pass', 'try:', 'finally:', '    yield n', '\\', 'é = "é"']), max_size=8).map('\n'.join)

@settings(max_examples=200, deadline=None)
@given(_DEEP.map(lambda p: as_response(_OK).replace('{"type": "integer"}', p)) | _LINES.map(as_response) | st.binary(max_size=300)
       | st.tuples(_LINES, st.integers(0, 400), st.text(max_size=3)).map(lambda t: as_response(t[0])[:t[1]] + t[2] + as_response(t[0])[t[1]:]))
def test_any_text_has_a_verdict_that_agrees_with_python(text):
    verdict = verify(text)
    assert verdict.step1_fail == (verdict.tool is None) and verdict == verify(text)
    code = parse_response(text).python[:1] if isinstance(text, str) else ()
    if code:
        try: compiles = bool(compile(code[0], 'tool', 'exec', dont_inherit=True))
        except (SyntaxError, ValueError): compiles = False
        assert verdict.syntax_error != compiles
    if verdict.tool: assert compiles and f'def {verdict.tool.name}' in verdict.tool.code


_HEADS = st.sampled_from([_OK, 'def inc(n):', 'def inc (', '    n: list[int] = 1, # note', ') -> int:', '    return n', 'inc = 3', '    inc = inc(n)', 'x = inc (n)', "x = '''", "'''", '@inc', 'class inc(object):',
    'import inc', 'import math', 'if 0:', '    def inc(n, m): return n', 'def  inc(n): return n', 'def inc\\', '(n): return n', 'for inc in []: pass', 'x = lambda inc: 1', 'def inc(n): # :', 'def xinc(n): return n',
    'async def inc(n): pass', '    "inc"', 'inc(1)', '\f', 'é = 1', 'def inc(n, *, m={1: 2}): return n', 'type inc = int', 'def inc[T](n): return n'])

@settings(max_examples=400, deadline=None)
@given(st.lists(_HEADS, max_size=7).map('\n'.join))
def test_a_signature_read_alone_is_the_one_of_the_whole_tree(code):
    module, why = _compile(code)
    if why: return
    alone = _read_signature(code, module, 'inc')
    if alone: assert ast.dump(alone.args) == ast.dump(_find_function(ast.parse(code), 'inc')[0].args)


@pytest.mark.parametrize('code', [_OK, 'def inc(\n    n: int = 1,\n) -> dict[str, int]:\n    return inc(n - 1) if n else {}', 'import math\n\ndef inc(n): # one: two\n    return math.inc(n)'])
def test_a_plain_tool_needs_no_tree(code): assert _read_signature(code, _compile(code)[0], 'inc')
