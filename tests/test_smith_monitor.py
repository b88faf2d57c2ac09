"Rewards of building and using as the paper has them, the alarm on its own collapse, and no pay for what the verifier fails."
import csv
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, strategies as st

from sandsmith.rl.monitor import FLAGS, attribute_change, build_record, category_summary, find_alerts, find_leaks, step_summary, use_record
from sandsmith.rl.reward import JUDGE_MARKS, Preset, BuildScheme, UseScheme, efficiency, reward
from sandsmith.trace import Trajectory, Verdict

_SAID = Trajectory(task_id='t', policy='p', seed=0, messages=(), turns=(), stop_reason='submitted')
_TABLE8 = [{k: float(v) for k, v in row.items()} for row in csv.DictReader((Path(__file__).parent.parent/'data/paper/table8.csv').open())]
_GOOD = dict.fromkeys(FLAGS, False) | {'format_ok': True, 'right': [True]*12 + [False]*4}
_BAD = dict.fromkeys(FLAGS, False) | {'step1_fail': True, 'fn_mismatch': True, 'format_ok': False, 'right': [False]*16}
_PRAISE = dict.fromkeys(JUDGE_MARKS, 4.)


def built(facts, preset='build'): return reward(Verdict(status='scored', score=0., facts=facts), _SAID, preset=preset)
def used(preset='use', **facts):
    base = {'is_right': True, 'n_calls': 1, 'n_ok_calls': 1, 'n_turns': 2}
    return reward(Verdict(status='scored', score=1., facts=base | facts), _SAID, preset=preset).total


def test_the_alarm_rings_at_step_6_and_not_before():
    alerts = find_alerts(_TABLE8)
    assert {a.step for a in alerts} == {6, 7}
    assert {a.metric for a in alerts if a.step == 6} == {'step1_fail', 'fn_mismatch', 'param_mismatch'}


def test_the_collapse_is_forced_zeros():
    found = attribute_change(_TABLE8[4], _TABLE8[5])
    assert found.change == pytest.approx(-.162) and found.share >= .85
    assert found.forced_zeros + found.quality == pytest.approx(found.change)
    passed = [row['eval_reward']/(1 - row['step1_fail'])*8 for row in _TABLE8[4:6]]
    assert passed == pytest.approx([5.44, 5.26], abs=.01) # as the paper counted them


def test_the_table_is_a_format_of_one_and_a_half():
    assert all(row['env_reward'] == pytest.approx(1.5*(1 - row['step1_fail']) + row['eval_reward'], abs=.0015) for row in _TABLE8)
    assert built(_GOOD, 'build_release').total == 1.5 + .75 and built(_GOOD, 'build_collapse').total == 1. + .75 and built(_GOOD).total == 1.25


def test_no_reward_pays_a_verifier_failure_but_the_one_that_collapsed():
    presets = [preset for preset in get_args(Preset) if preset.startswith('build')]
    assert [preset for preset in presets if find_leaks(preset)] == ['build_collapse'] and len(presets) == 3
    leaks = dict(find_leaks('build_collapse'))
    assert leaks['fn_mismatch'] == .25 and 'syntax_error' not in leaks
    assert find_leaks(BuildScheme(judge_on_step1_fail='half')) and not find_leaks(BuildScheme(judge_weight=.5, format_scheme='two_part'))


def test_a_judge_is_a_component_of_its_own_and_gated():
    assert set(built(_GOOD).components) == {'format', 'eval'}
    judged = built(_GOOD | {'judge': _PRAISE})
    assert judged.components['judge'].value == .8 and judged.total == pytest.approx(1.25 + .2*.8)
    assert built(_BAD | {'judge': _PRAISE}).total == 0
    overall = _PRAISE | {'overall_quality': 1.}
    assert built(_GOOD | {'judge': overall}, BuildScheme(judge_score='overall')).components['judge'].value == .2
    torn = _BAD | {'fn_mismatch': False, 'syntax_error': True, 'judge': _PRAISE}
    assert built(torn, BuildScheme(judge_weight=1., syntax_error_reward=-.5)).total == -.5


@given(st.floats(0, 1), st.floats(0, 1))
def test_efficiency_falls_within_its_bounds(a, b):
    low, high = sorted((a, b))
    assert .3 <= efficiency(high, UseScheme()) <= efficiency(low, UseScheme()) <= 1


def test_efficiency_is_equation_5():
    eta = UseScheme()
    assert efficiency(.5, eta) == pytest.approx(.7) == pytest.approx(efficiency(.5 + 1e-12, eta))
    assert efficiency(.672, eta) > .3 == efficiency(.6731, eta) == efficiency(1., eta)


def test_using_pays_a_right_answer_through_a_call():
    assert [used(n_calls=n) for n in (1, 2, 3, 5)] == pytest.approx([1.76, 1.52, .896, .6])
    assert used(is_right=False) == 0 and used(n_ok_calls=0) == 0 and used('use_release', n_calls=0, n_ok_calls=0) == 2
    assert used('use_release', n_calls=5, n_ok_calls=5) == 1 and used(n_calls=50) == .6 # the answer earns nothing, its five calls all of the second axis
    assert used(UseScheme(rho_counts='turns'), n_turns=3) == pytest.approx(.896)
    assert reward(Verdict(status='unscored', facts={'is_right': True, 'n_calls': 1, 'n_ok_calls': 1, 'n_turns': 1}), _SAID, preset='use').total is None


def test_records_keep_categories_apart():
    good = Verdict(status='scored', score=.75, facts=_GOOD | {'judge': _PRAISE})
    bad = Verdict(status='scored', score=0., facts=_BAD)
    records = [build_record(v, reward(v, _SAID, preset='build')) | {'category': c} for v, c in ((good, 'gcd'), (good, 'gcd'))]
    records += [build_record(bad, reward(bad, _SAID, preset='build')) | {'category': 'lcm'}]
    figures = category_summary(records)
    assert figures['gcd']['eval_reward'] == .75 and figures['gcd']['judge_reward'] == .8 and figures['lcm']['fn_mismatch'] == 1 == figures['lcm']['n']
    asked = replace(good, facts={'is_right': True, 'n_calls': 2, 'n_ok_calls': 1, 'n_turns': 3})
    assert use_record(asked, reward(asked, _SAID, preset='use')) == {'use_correct': True, 'n_calls': 2, 'n_ok_calls': 1, 'n_turns': 3, 'use_reward': 1.52}


def test_a_step_of_both_kinds_logs_every_figure_and_by_category():
    judged = Verdict(status='scored', score=.75, facts=_GOOD | {'judge': _PRAISE})
    bad = Verdict(status='scored', score=0., facts=_BAD | {'judge': dict.fromkeys(JUDGE_MARKS, 0.)})
    asked = Verdict(status='scored', score=1., facts={'is_right': True, 'n_calls': 2, 'n_ok_calls': 1, 'n_turns': 3})
    more = {'is_truncated': False, 'n_tokens': 10}
    records = [build_record(v, reward(v, _SAID, preset='build')) | more | {'category': 'gcd'} for v in (judged, bad)]
    records += [use_record(asked, reward(asked, _SAID, preset='use')) | more | {'category': c} for c in ('gcd', 'lcm')]
    figures = step_summary(records, 2, pool_sizes={'gcd': 2, 'ab': 5})
    assert {*FLAGS, 'format', 'eval_reward', 'judge_reward', 'env_reward', 'use_correct', 'n_turns', 'pool_size'} <= set(figures)
    assert (figures['step1_fail'], figures['use_correct'], figures['n_turns'], figures['pool_size'], figures['n']) == (.5, 1., 3., 7, 4)
    assert (figures['judge_reward'], figures['zero_variance']) == (pytest.approx(.4), .5)
    by_category = category_summary(records, pool_sizes={'gcd': 2, 'ab': 5})
    assert (by_category['gcd']['fn_mismatch'], by_category['gcd']['use_correct'], by_category['gcd']['pool_size']) == (.5, 1., 2.)
    assert by_category['lcm']['pool_size'] == 0 and 'fn_mismatch' not in by_category['lcm'] and 'pool_size' not in step_summary(records, 2)


def test_the_fix_of_figure_4_still_pays_parameters_that_do_not_fit():
    fixed = BuildScheme(judge_weight=.5, judge_score='overall', judge_on_step1_fail='zero', syntax_error_reward=-.5)
    assert find_leaks(fixed) == [('param_mismatch', .25)]
    assert built(_BAD | {'judge': _PRAISE}, fixed).total == 0 # the function is absent
    assert built(_BAD | {'fn_mismatch': False, 'judge': _PRAISE}, fixed).total == 0 # no pair at all


@pytest.mark.parametrize('scheme', [UseScheme(), UseScheme(eta_mid=.5), UseScheme(eta_min=0.), UseScheme(max_calls=3), UseScheme(require_call=False), UseScheme(rho_counts='turns'),
                                    UseScheme(use_exec_axis=True)])
def test_a_wrong_answer_never_pays_more_than_a_right_one(scheme):
    for n in range(1, 6):
        facts = dict(n_calls=n, n_ok_calls=n, n_turns=n + 1, has_answer=True)
        assert used(scheme, **facts) >= used(scheme, **facts, is_right=False)


def test_the_second_axis_of_the_released_code():
    scheme = UseScheme(use_exec_axis=True)
    assert used(scheme, n_calls=1, n_ok_calls=1) == pytest.approx(1.76 + .2) and used(scheme, n_calls=1, n_ok_calls=0) == pytest.approx(-.2/1.5, abs=1e-5)
    assert used(scheme, is_right=False, has_answer=False, n_calls=0, n_ok_calls=0) == -.5
    assert not UseScheme().use_exec_axis and BuildScheme() == BuildScheme(format_scheme='binary', r_f=.5, judge_weight=.2, judge_score='mean4', judge_on_step1_fail='gate', syntax_error_reward=0.)
