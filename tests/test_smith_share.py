"What leaves the project: servers, skills, reward functions; and the command that scores one response."
import json, subprocess, sys
from pathlib import Path

import pytest

from sandsmith.rl.functions import as_trl_rewards, as_trl_rows
from sandsmith.run.cli import main
from sandsmith.smith.build import draw_build_rows
from sandsmith.smith.oracle import reference_tool, tool_response
from sandsmith.smith.share import to_mcp_server, write_skill
from sandsmith.smith.tasks import CATEGORIES, rows

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
