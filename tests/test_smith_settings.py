"Each point where the paper, its appendix and its code differ is a setting, and its default is the one that was decided on."
import inspect
from dataclasses import fields

import pytest

from sandsmith.rl.environment import BuildEnv
from sandsmith.rl.reward import BuildScheme, UseScheme, reward
from sandsmith.smith.build import build_messages, build_tool, draw_build_rows, grade_build, try_tool
from sandsmith.smith.graders import is_same_value
from sandsmith.smith.judge import RUBRIC, chat_judge, score_build
from sandsmith.smith.pool import ToolPool, retrieve
from sandsmith.smith.tool import verify
from sandsmith.smith.use import UseEnv, UseRules, chat_evaluator, draw_use_rows, tools_for


@pytest.mark.parametrize('where, name, default', [
    (draw_build_rows, 'interface', 'typed'), (verify, 'interface', 'typed'),
    (BuildScheme, 'format_scheme', 'binary'), (BuildScheme, 'r_f', .5),
    (verify, 'allow_text', True), (score_build, 'allow_text', True), (BuildEnv, 'allow_text', True),
    (BuildScheme, 'judge_on_step1_fail', 'gate'), (BuildScheme, 'syntax_error_reward', 0.), (BuildScheme, 'judge_score', 'mean4'), (BuildScheme, 'judge_weight', .2),
    (chat_judge, 'rubric', RUBRIC),
    (draw_build_rows, 'n_hidden', 16), (draw_build_rows, 'n_shown', 4), (draw_use_rows, 'n_shown', 4),
    (try_tool, 'equivalence', is_same_value), (UseRules, 'equivalence', is_same_value),
    (chat_evaluator, 'force_first_call', True),
    (UseScheme, 'require_call', True), (UseScheme, 'use_exec_axis', False), (UseScheme, 'eta_mid', .7), (UseScheme, 'eta_min', .3), (UseScheme, 'rho_counts', 'calls'),
    (UseScheme, 'max_calls', 5), (UseEnv, 'max_turns', 5),
    (retrieve, 'm_domain', 1), (retrieve, 'm_distractor', 2), (tools_for, 'm_domain', 1), (tools_for, 'm_distractor', 2),
    (build_tool, 'proposals', 1), (build_tool, 'validation', ()), (tools_for, 'proposals', 1),
    (draw_build_rows, 'test_bands', ('evaluation',)), (UseRules, 'lenient_args', False), (UseRules, 'answer_tag', 'boxed'), (ToolPool, 'cap', 20)])
def test_default(where, name, default):
    found = {f.name: f.default for f in fields(where)} if where in (BuildScheme, UseScheme, UseRules) else {p.name: p.default for p in inspect.signature(where).parameters.values()}
    assert found[name] == default


def test_presets_are_the_defaults():
    assert (inspect.signature(reward).parameters['preset'].default is inspect.Parameter.empty) # a preset is always named
    assert inspect.signature(grade_build).parameters['evaluate'].default is None # the direct evaluator: no model


def test_the_full_prompt_gives_the_advice_of_the_appendix_and_shows_no_hidden_question():
    for interface in ('typed', 'solve_question'):
        short, full = (draw_build_rows(['lcm'], n=1, seed=0, split='train', interface=interface, prompt=p)[0] for p in ('short', 'full'))
        assert short.hidden == full.hidden and short.id == full.id
        told = build_messages(full)[1]['content']
        for words in ('verb and a noun', 'letter for letter', 'required', 'description', 'exactly one ```python', 'no other text', 'sympy'): assert words in told
        assert ('called solve' in told) == (interface == 'solve_question') and len(build_messages(short)[1]['content']) < len(told)
        assert not any(r.question.strip() in told for r in full.hidden)
