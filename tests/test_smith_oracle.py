"A tool that is provably right scores 1.0, in both interfaces, by the same path that grades a model's answer."
import os

import pytest

from sandsmith.core import Limits, SpecError
from sandsmith.smith.build import BuildRow, grade_build, try_tool
from sandsmith.smith.oracle import reference_tool, tool_response
from sandsmith.smith.tasks import CATEGORIES, SEEN, bands_of, rows
from sandsmith.smith.tool import verify

_N = int(os.environ.get('SANDSMITH_ORACLE_ROWS', '20')) # SANDSMITH_ORACLE_ROWS=200 makes it the study


@pytest.mark.parametrize('interface', ['typed', 'solve_question'])
@pytest.mark.parametrize('category', CATEGORIES)
def test_the_reference_tool_scores_one_on_the_hard_band(category, interface):
    hard = rows(category, 'evaluation', _N, 77)
    assert len(hard) == (6 if category == 'tower_of_hanoi' else _N)
    tool = reference_tool(category, interface)
    right = try_tool(tool, hard, interface=interface, limits=Limits(timeout_s=60))
    assert all(right), [row.question for row, ok in zip(hard, right) if not ok][:2]


@pytest.mark.parametrize('category', CATEGORIES)
def test_the_reference_tool_answers_the_shown_pairs_too(category):
    easy = tuple(rows(category, 'induction', 6, 78))
    row = BuildRow(id='r', category=category, shown=easy[:2], hidden=easy, interface='solve_question')
    verdict = grade_build(tool_response(reference_tool(category, 'solve_question')), row, allow_text=False)
    assert (verdict.score, verdict.facts['format_ok']) == (1., True), verdict.facts


def test_the_typed_tool_is_no_solve_and_the_other_way_round():
    typed, asked = (tool_response(reference_tool('lcm', i)) for i in ('typed', 'solve_question'))
    assert verify(typed).format_ok and verify(typed, interface='solve_question').fn_mismatch
    assert verify(asked).format_ok and verify(asked, interface='solve_question').format_ok
    assert verify(asked.replace('question', 'text'), interface='solve_question').param_mismatch
    with pytest.raises(SpecError, match='category'): reference_tool('sudoku')


def test_a_narrow_tool_passes_the_easy_band_and_fails_the_hard_one():
    code = reference_tool('lcm').code.replace('math.lcm(*numbers)', 'math.lcm(numbers[0], numbers[1])')
    tool = verify(tool_response(reference_tool('lcm')).replace(reference_tool('lcm').code.strip(), code.strip())).tool
    assert all(try_tool(tool, rows('lcm', 'induction', 20, 1))) and sum(try_tool(tool, rows('lcm', 'evaluation', 20, 1))) < 12


def test_both_groups_have_tools(): assert set(SEEN) < set(CATEGORIES) and len(CATEGORIES) == 23


@pytest.mark.parametrize('interface', ['typed', 'solve_question'])
@pytest.mark.parametrize('category', [c for c in CATEGORIES if 'middle' in bands_of(c)])
def test_the_reference_tool_scores_one_on_the_middle_band(category, interface):
    assert all(try_tool(reference_tool(category, interface), rows(category, 'middle', 6, 79), interface=interface, limits=Limits(timeout_s=60)))
