"""Intervals cover what they promise to, and pairs are resampled as pairs."""
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sandsmith.core import SpecError
from sandsmith.stats import mean_interval, paired_interval

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@settings(max_examples=40, deadline=None)
@given(values, st.integers(0, 2**31))
def test_interval_lies_within_the_values(x, seed):
    mean, low, high = mean_interval(x, seed=seed, n_boot=200)
    slack = 1e-9*(1 + max(map(abs, x)))
    assert min(x) - slack <= low <= high <= max(x) + slack and abs(mean - np.mean(x)) <= slack
    assert mean_interval(x, seed=seed, n_boot=200) == (mean, low, high)


def test_coverage():
    rng = np.random.default_rng(0)
    samples = rng.exponential(1., size=(400, 40)) # skewed, true mean 1
    hits = [low <= 1 <= high for _, low, high in (mean_interval(x, seed=i, n_boot=400) for i, x in enumerate(samples))]
    assert .88 <= np.mean(hits) <= .98


def test_pairs():
    rng = np.random.default_rng(1)
    before = rng.normal(0, 10, 50)
    after = before + rng.normal(.5, .2, 50)
    change, low, high = paired_interval(before, after, seed=0)
    assert .4 < low < change < high < .6
    assert paired_interval(after, before, seed=0)[0] == -change
    with pytest.raises(SpecError, match='50 before and 49 after'): paired_interval(before, after[1:], seed=0)


@pytest.mark.parametrize('bad', [[], [1., np.nan], [np.inf], [[1., 2.]]])
def test_bad_values_are_refused(bad):
    with pytest.raises(SpecError, match='finite numbers'): mean_interval(bad, seed=0)
