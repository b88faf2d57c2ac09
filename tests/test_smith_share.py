"What leaves the project: servers, skills, reward functions; and the command that scores one response."
import json, re, subprocess, sys
from dataclasses import replace
from pathlib import Path

import pytest

from sandsmith.rl.functions import as_trl_rewards, as_trl_rows
from sandsmith.run.cli import main
from sandsmith.smith.build import draw_build_rows
from sandsmith.smith.oracle import reference_tool, tool_response
from sandsmith.smith.share import to_mcp_server, write_skill
from sandsmith.smith.tasks import CATEGORIES, rows
from sandsmith.smith.tool import Tool

_LOUD = tool_response(reference_tool('lcm')).replace('import math', 'import math; print("noise")')


def ask(script, *requests):
    text = '\n'.join(json.dumps({'jsonrpc': '2.0', **r}) for r in requests)
    done = subprocess.run([sys.executable, script], input=text, capture_output=True, text=True, timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def call(i, name, **arguments): return {'id': i, 'method': 'tools/call', 'params': {'name': name, 'arguments': arguments}}


@pytest.mark.parametrize('interface', ['typed', 'solve_question'])
def test_a_server_speaks_mcp(tmp_path, interface):
    from sandsmith.smith.tool import verify
    tool = reference_tool('lcm', interface) if interface != 'typed' else verify(_LOUD).tool
    (tmp_path/'server.py').write_text(to_mcp_server(tool), encoding='utf-8')
    row = rows('lcm', 'induction', 1, 5)[0]
    given = row.args if interface == 'typed' else {'question': row.question}
    first, listed, right, wrong, none, odd = ask(
        tmp_path/'server.py', {'id': 1, 'method': 'initialize', 'params': {'protocolVersion': '2024-11-05'}}, {'method': 'notifications/initialized'},
        {'id': 2, 'method': 'tools/list'}, call(3, tool.name, **given), call(4, tool.name), call(5, 'other'), {'id': 6, 'method': 'resources/list'})
    assert first['result']['protocolVersion'] == '2024-11-05' and 'tools' in first['result']['capabilities']
    assert listed['result']['tools'][0]['inputSchema'] == tool.schema['function']['parameters'] and listed['result']['tools'][0]['name'] == tool.name
    assert right['result'] == {'content': [{'type': 'text', 'text': row.answer}]}
    assert wrong['result']['isError'] and 'TypeError' in wrong['result']['content'][0]['text']
    assert none['result']['isError'] and odd['error']['code'] == -32601


@pytest.mark.parametrize('category', ['lcm', 'group_anagrams'])
def test_a_skill_says_how_and_does(tmp_path, category):
    tool = reference_tool(category)
    folder = write_skill(tool, tmp_path)
    page = (folder/'SKILL.md').read_text(encoding='utf-8')
    assert page.startswith(f'---\nname: {folder.name}\ndescription: ') and all(name in page for name in tool.schema['function']['parameters']['properties'])
    row = rows(category, 'induction', 1, 5)[0]
    done = subprocess.run([sys.executable, f'scripts/{tool.name}.py', json.dumps(row.args)], cwd=folder, capture_output=True, text=True, check=True)
    from sandsmith.smith.graders import grade_answer
    assert grade_answer(row, done.stdout)[0] == 1


def test_rewards_for_trainers_add_up_and_need_no_trainer():
    data = as_trl_rows(draw_build_rows(['lcm'], n=3, seed=2, split='train', n_hidden=4))
    good = tool_response(reference_tool('lcm'))
    completions = [[{'role': 'assistant', 'content': good}], good.replace('def find_lcm', 'def lcm'), good + '\n```json\n{}\n```']
    scores = [f(prompts=None, completions=completions, build_row=[row['build_row'] for row in data], trainer_state=None) for f in as_trl_rewards()]
    assert scores[0] == [.5, 0., 0.] and scores[1] == [1., 0., 1.] and scores[2][1] == 0 < scores[2][0]
    assert [f.__name__ for f in as_trl_rewards(judge=None)] == ['format_reward', 'eval_reward']
    code = ('import sandsmith.rl.functions, sandsmith.smith.use, sandsmith.smith.tasks, sys; '
            'print([m for m in ("trl", "torch", "transformers", "reasoning_gym") if m in sys.modules])')
    assert subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout == '[]\n'


def shell(capsys, *args):
    with pytest.raises(SystemExit) as stop: main(['smith', 'score', *map(str, args)])
    return stop.value.code, capsys.readouterr()


@pytest.mark.parametrize('category', ['gcd', 'tower_of_hanoi', 'syllogism'])
def test_score_shows_every_component(tmp_path, capsys, category):
    path = tmp_path/'response.md'
    path.write_text(tool_response(reference_tool(category)), encoding='utf-8')
    code, said = shell(capsys, path, '--category', category, '--seed', 3, '--json')
    found = json.loads(said.out)
    assert code == 0 and found['verdict']['format_ok'] and all(q['right'] for q in found['questions'])
    assert set(found['components']) == {'format', 'eval', 'judge'}
    assert found['total'] == pytest.approx(sum(c['value']*c['weight'] for c in found['components'].values())) and found['total'] > 1.5
    assert len(found['questions']) == (2 if category == 'tower_of_hanoi' else 16)
    assert shell(capsys, path, '--category', category, '--seed', 3, '--json')[1].out == said.out


def test_score_of_what_cannot_be_used(tmp_path, capsys):
    path = tmp_path/'response.md'
    path.write_text(tool_response(reference_tool('gcd')).replace('def find_gcd', 'def gcd'), encoding='utf-8')
    code, said = shell(capsys, path, '--category', 'gcd')
    assert code == 1 and 'fn_mismatch' in said.out and said.out.splitlines()[-1].split() == ['total', '0']
    assert shell(capsys, path, '--category', 'sudoku')[0] == 2 and shell(capsys, Path('nowhere'), '--category', 'gcd')[0] == 2
    assert set(CATEGORIES) >= {'gcd'}


_ODD = '''from __future__ import annotations
import json as _answer

TOOL, CODE, main, say, sys = "mine", "\\\\d", 3, None, 4
print("loading")

def shout(text: str) -> str:
    """It's a "text" with \\\\ and '''+"'''"+'''"""
    print("noise")
    return text.upper() + str(TOOL) + CODE

if __name__ == "__main__":
    print(shout("demo"))
'''
_ODD_TOOL = Tool(name='shout', code=_ODD, schema={'type': 'function', 'function': {'name': 'shout', 'description': 'Shout: # "it" | *now*\u2028\x00', 'parameters': {
    'type': 'object', 'properties': {'text': {'type': 'string', 'description': 'a | b'}}, 'required': ['text']}}})


def test_whatever_a_tool_defines_or_prints_its_server_answers(tmp_path):
    (tmp_path/'server.py').write_text(to_mcp_server(_ODD_TOOL), encoding='utf-8')
    done = subprocess.run([sys.executable, tmp_path/'server.py'], input='not json\n[]\n{"id": 1, "method": "ping", "params": 3}\n' + json.dumps(call(2, 'shout', text='a')) + '\n',
                          capture_output=True, text=True, timeout=60, check=True)
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r['id'] for r in replies] == [None, 1, 2] and replies[0]['error'] and replies[2]['result']['content'][0]['text'] == 'Amine\\d'
    assert 'loading' in done.stderr and 'demo' not in done.stderr
    leaves = Tool(name='f', code='def f():\n    raise SystemExit(3)', schema={'function': {'name': 'f', 'parameters': {'type': 'object', 'properties': {}}}})
    (tmp_path/'leaves.py').write_text(to_mcp_server(leaves), encoding='utf-8')
    assert [r['result'].get('isError') for r in ask(tmp_path/'leaves.py', call(1, 'f'), call(2, 'f'))] == [True, True]


@pytest.mark.parametrize('category', ['lcm', 'calendar_arithmetic'])
def test_the_official_client_speaks_with_a_server(tmp_path, category):
    mcp = pytest.importorskip('mcp', reason='the official MCP client is not installed: pip install mcp')
    import asyncio
    from mcp.client.stdio import stdio_client
    tool, row = reference_tool(category), rows(category, 'induction', 1, 5)[0]
    (tmp_path/'server.py').write_text(to_mcp_server(tool), encoding='utf-8')
    async def talk():
        async with stdio_client(mcp.StdioServerParameters(command=sys.executable, args=[str(tmp_path/'server.py')])) as streams:
            async with mcp.ClientSession(*streams) as session:
                return await session.initialize(), await session.list_tools(), await session.call_tool(tool.name, row.args), await session.call_tool(tool.name, {})
    hello, listed, right, wrong = asyncio.run(asyncio.wait_for(talk(), 60))
    told = [value.model_dump(by_alias=True) for value in (hello, listed.tools[0], right, wrong)]
    assert told[0]['serverInfo']['name'] == tool.name and told[1]['name'] == tool.name and told[1]['inputSchema'] == tool.schema['function']['parameters']
    assert told[2]['content'][0]['text'] == row.answer and not told[2]['isError'] and told[3]['isError']


@pytest.mark.parametrize('tool, slug', [(_ODD_TOOL, 'shout'), *((reference_tool(c), None) for c in ('lcm', 'ab')),
                                        (replace(_ODD_TOOL, name='__Two__words_'), 'two-words'), (replace(_ODD_TOOL, name='_'), 'tool')])
def test_a_skill_has_valid_front_matter(tmp_path, tool, slug):
    import yaml
    folder = write_skill(tool, tmp_path)
    page = (folder/'SKILL.md').read_text(encoding='utf-8')
    head = yaml.safe_load(page.split('---\n')[1])
    assert head['name'] == folder.name == (slug or folder.name) and re.fullmatch(r'[a-z0-9]+(-[a-z0-9]+)*', folder.name) and len(folder.name) <= 64
    assert set(head) == {'name', 'description'} and 0 < len(head['description']) <= 1024 and '\n' not in head['description']
    assert all(line.replace('\\|', '').count('|') == 5 for line in page.splitlines() if line.startswith('|'))


def test_a_skill_prints_its_answer_alone(tmp_path):
    folder = write_skill(replace(_ODD_TOOL, code=_ODD.replace('print("loading")', '').replace('print("noise")', '')), tmp_path)
    done = subprocess.run([sys.executable, 'scripts/shout.py', '{"text": "a"}'], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == 'Amine\\d\n'


def test_score_over_several_bands(tmp_path, capsys):
    path = tmp_path/'response.md'
    path.write_text(tool_response(reference_tool('gcd')), encoding='utf-8')
    found = json.loads(shell(capsys, path, '--category', 'gcd', '--k', 6, '--bands', 'evaluation,middle', '--json')[1].out)
    assert found['right_by_band'] == {'evaluation': 1, 'middle': 1} and len(found['questions']) == 6
    assert shell(capsys, path, '--category', 'gcd', '--bands', 'middle')[0] == 2


def test_text_that_utf8_cannot_hold_is_printed_as_its_escape(tmp_path):
    (tmp_path/'odd.jsonl').write_text('{"id": "a\\ud800", "response": "\\ud800"}\n')
    for more in ([], ['--json']):
        done = subprocess.run([sys.executable, '-c', 'from sandsmith.run.cli import main; main()', 'smith', 'check', tmp_path/'odd.jsonl', *more], capture_output=True, text=True)
        assert done.returncode == 1 and 'Traceback' not in done.stderr and 'a\\ud800' in done.stdout
        if more: assert json.loads(done.stdout)[0]['step1_fail']


def test_the_bench_measures_and_the_modelled_check_misjudges():
    from sandsmith.bench.smith import count_misjudged, measure_response, measure_verifier, released_flags
    timings, ratios = measure_response(1)
    assert len(timings) == 3 and ratios[1].value > 1 and ratios[2].value > ratios[1].value
    assert [r.name for r in measure_verifier(1)[1]] and all(r.value > 0 for r in measure_verifier(1)[1])
    found = count_misjudged()
    assert found['ours'] == [] and len(found['released']) == 15
    assert not released_flags(tool_response(reference_tool('lcm')))['step1_fail'] and released_flags('')['step1_fail']
