"Records, summaries, figures, the task view and the report"
import itertools, math, re
from html.parser import HTMLParser
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from polars.testing import assert_frame_equal
from sandsmith.core import RunError
from sandsmith.look import plots, style
from sandsmith.look.frames import (check_record, count_funnel, count_groups, ladder_positions, pair_prompts, read_record, record_names,
                                   record_schema, summarise, training_curves, with_quality, write_record)
from sandsmith.look.report import render_report, write_report
from sandsmith.look.widgets import browse_tasks, render_markdown, view_task

matplotlib = pytest.importorskip('matplotlib')
matplotlib.use('Agg')
TIERS = ('median', 'bronze', 'silver', 'gold')


# records

@pytest.mark.parametrize('name', record_names())
def test_a_record_is_checked_on_write(tmp_path, name):
    df = pl.DataFrame(schema=record_schema(name))
    write_record(df.select(reversed(df.columns)), tmp_path, name)
    assert_frame_equal(read_record(tmp_path, name), df)
    with pytest.raises(RunError, match=df.columns[0]): write_record(df.drop(df.columns[0]), tmp_path, name)
    with pytest.raises(RunError, match='surplus'): write_record(df.with_columns(surplus=pl.lit(1)), tmp_path, name)
    wrong = df.with_columns(pl.lit(None).cast(pl.List(pl.String)).alias(df.columns[0]))
    with pytest.raises(RunError, match=df.columns[0]): write_record(wrong, tmp_path, name)


def test_a_record_widens_numbers_and_nothing_else():
    stages = pl.DataFrame({'peak_mb': [1], 'seconds': [None], 'stage': ['train']})
    assert check_record(stages, 'stages').rows() == [('train', None, 1.0)]
    with pytest.raises(RunError, match='seconds is String'): check_record(stages.with_columns(seconds=pl.lit('1')), 'stages')


# summaries

def a_task(ladder, sample, direction):
    return pl.DataFrame([{'task_id': 't', 'modality': 'text', 'metric': 'm', 'direction': direction, **dict(zip(TIERS, ladder)),
                          'sample_score': sample}])


@given(st.lists(st.floats(.01, 100), min_size=4, max_size=4), st.floats(-5, 5), st.floats(-50, 50), st.sampled_from(['max', 'min']))
@settings(max_examples=50, deadline=None)
def test_strict_ladders_run_from_0_to_1(gaps, below, start, direction):
    sign = 1 if direction == 'max' else -1
    ladder = [start + sign*sum(gaps[:i]) for i in range(4)]
    row = ladder_positions(a_task(ladder, start - sign*abs(below), direction)).row(0, named=True)
    at = [row[tier] for tier in TIERS]
    assert math.isclose(at[0], 0, abs_tol=1e-9) and math.isclose(at[3], 1, abs_tol=1e-9) and at == sorted(at)
    assert row['problem'] == '' and row['sample'] <= 1e-9


@given(st.permutations([.5, .6, .7, .8]).filter(lambda p: p != [.5, .6, .7, .8]), st.sampled_from(['max', 'min']))
@settings(max_examples=20, deadline=None)
def test_ladders_out_of_order_are_named(ladder, direction):
    signed = [x if direction == 'max' else -x for x in ladder]
    assert ladder_positions(a_task(signed, -9 if direction == 'max' else 9, direction))['problem'].item() == 'ladder is not strict'


@pytest.mark.parametrize('ladder, sample, problem', [
    ((.5, .6, .7, .8), .6, 'sample reaches bronze'), ((.5, .6, .7, .8), .59, ''), ((.5, .5, .5, .5), .1, 'ladder is not strict'),
    ((.5, .6, .7, .8), None, 'sample submission has no score')])
def test_what_is_wrong_with_a_ladder(ladder, sample, problem):
    assert ladder_positions(a_task(ladder, sample, 'max').cast({'sample_score': pl.Float64}))['problem'].item() == problem


def test_an_interval_does_not_depend_on_other_groups():
    df = pl.DataFrame({'policy': ['a']*5 + ['b']*5, 'reward': [0., 1, 1, 0, 1, .2, .3, .4, None, .6]})
    whole, alone = summarise(df, ['policy'], 'reward', seed=1), summarise(df.filter(pl.col('policy') == 'b'), ['policy'], 'reward', seed=1)
    assert_frame_equal(whole.filter(pl.col('policy') == 'b'), alone)
    assert whole['n'].to_list() == [5, 4] and (whole['low'] <= whole['mean']).all() and (whole['mean'] <= whole['high']).all()


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
@settings(max_examples=20, deadline=None)
def test_the_trend_stays_within_the_means(means):
    rollouts = pl.DataFrame([{'step': i + 1, 'format': m} for i, m in enumerate(means)])
    trend = training_curves(rollouts, ['format'], seed=0)['trend']
    assert len(trend) == len(means) and min(means) - 1e-9 <= trend.min() and trend.max() <= max(means) + 1e-9


def test_pairs_are_the_same_prompts_or_nothing():
    heldout = pl.DataFrame({'stage': ['sft', 'sft', 'grpo', 'grpo'], 'prompt_id': ['a', 'b', 'b', 'a'], 'category': 'gcd',
                            'env_reward': [0., .5, 1.5, 1.]})
    assert pair_prompts(heldout, 'sft', 'grpo').select('prompt_id', 'before', 'after').rows() == [('a', 0, 1), ('b', .5, 1.5)]
    with pytest.raises(RunError, match='same prompts'): pair_prompts(heldout.head(3), 'sft', 'grpo')


def test_quality_knows_unscored_from_bad():
    episodes = pl.DataFrame({'task_id': 't', 'status': ['scored', 'scored', 'scored', 'malformed', 'unscored'], 'score': [9., 2., 6., None, None]})
    tasks = pl.DataFrame({'task_id': ['t'], 'sample_score': [8.], 'gold': [4.]})
    assert with_quality(episodes, tasks)['quality'].to_list() == [0, 1, .5, 0, None]


# figures

def many_tasks(n=24):
    rng = np.random.default_rng(0)
    modality = [('tabular', 'text', 'image')[i % 3] for i in range(n)]
    steps = np.sort(rng.random((n, 4)), axis=1)
    return pl.DataFrame({'task_id': [f'a-rather-long-title-{i:012x}' for i in range(n)], 'modality': modality, 'n_train': rng.integers(50, 200, n),
                         'family': [f'{m}.family-{i % 4}' for i, m in enumerate(modality)], 'task_type': ['binary', 'regression']*(n//2),
                         'metric': 'accuracy', 'direction': 'max', 'sample_score': steps[:, 0] - .3, **dict(zip(TIERS, steps.T))})


def the_figures():
    tasks, rng = many_tasks(), np.random.default_rng(1)
    flags = ('step1_fail', 'fn_mismatch', 'param_mismatch', 'syntax_error')
    rollouts = pl.DataFrame([{'step': s, 'format': .5, 'eval_reward': rng.random(), 'env_reward': rng.random(),
                              **{f: bool(rng.random() < .3) for f in flags}} for s in range(1, 9) for _ in range(8)])
    curves = training_curves(rollouts, seed=0)
    pairs = pl.DataFrame({'prompt_id': [str(i) for i in range(24)], 'before': rng.choice([0., .5, 1.], 24), 'after': rng.choice([0., .5, 1.5], 24)})
    names = ['constant', 'linear', 'forest', 'insider']
    played = pl.DataFrame([{'task_id': t, 'modality': m, 'policy': p, 'status': 'scored', 'tier': str(rng.choice(['', *TIERS])), 'reward': r,
                            'quality': r} for p in names for t, m in tasks.select('task_id', 'modality').iter_rows()
                           for r in [float(rng.choice([.1, .4, .5, .7, .9, 1.]))]])
    means = summarise(played, ['policy', 'modality'], 'quality', seed=0)
    by_stage = pl.DataFrame([(f, s, 24, .3, .2, .4) for f in flags for s in ('base', 'sft', 'grpo')],
                            schema=['metric', 'stage', 'n', 'mean', 'low', 'high'], orient='row')
    funnel = pl.DataFrame({'stage': ['calibrate']*3 + ['accepted']*9, 'reason': ['no_strict_draw']*3 + ['ok']*9, 'is_accepted': [False]*3 + [True]*9})
    return {'ladders': (plots.plot_ladders, ladder_positions(tasks), {}), 'counts': (plots.plot_counts, count_groups(tasks), {}),
            'sizes': (plots.plot_sizes, tasks, {}), 'funnel': (plots.plot_funnel, count_funnel(funnel), {}),
            'curve': (plots.plot_curve, curves.filter(pl.col('metric') == 'step1_fail'), {}), 'training': (plots.plot_training, curves, {}),
            'paired': (plots.plot_paired, pairs, {'difference': (.2, -.1, .5)}), 'stages': (plots.plot_stages, by_stage, {}),
            'policies': (plots.plot_policies, played, {'summary': summarise(played, ['policy'], 'reward', seed=0)}),
            'tiers': (plots.plot_tiers, played, {}), 'quality': (plots.plot_quality, means, {})}


FIGURES = the_figures()


def overlap(boxes):
    return [(i, j) for (i, a), (j, b) in itertools.combinations(enumerate(boxes), 2)
            if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1]


@pytest.mark.parametrize('name', FIGURES)
def test_a_figure_is_labelled_and_its_words_do_not_overlap(name):
    plot, df, more = FIGURES[name]
    ax = plot(df, **more)
    ax.figure.canvas.draw()
    assert ax.get_title(loc='left')
    assert name == 'curve' or any(a.get_xlabel() or a.get_ylabel() for a in ax.figure.axes)
    renderer, page = ax.figure.canvas.get_renderer(), ax.figure.get_tightbbox()
    for axes in ax.figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = [t for t in axis.get_ticklabels() if t.get_text() and t.get_visible() and axes.axison]
            assert overlap([t.get_window_extent(renderer) for t in labels]) == []
    headings = [t for a in ax.figure.axes for t in (a._left_title, a.xaxis.label) if t.get_text()]
    assert overlap([t.get_window_extent(renderer) for t in headings]) == []
    assert page.width < 12 and page.height < 14 # inches: fits a page
    matplotlib.pyplot.close(ax.figure)


@pytest.mark.parametrize('name', ['ladders', 'training'])
def test_a_card_has_the_same_bytes_each_time_and_leaves_no_figure_open(tmp_path, name):
    plot, df, more = FIGURES[name]
    words = dict(name=name, title='t', caption='n = 24', alt='what <it> shows')
    cards = [style.make_card(plot(df, **more), **words) for _ in range(2)]
    assert cards[0] == cards[1] and matplotlib.pyplot.get_fignums() == []
    assert style.load_card(tmp_path, name) is None
    assert style.load_card(tmp_path, style.save_card(cards[0], tmp_path).name) == cards[0]
    assert 'alt="what &lt;it&gt; shows"' in cards[0]._repr_html_() and len(cards[0].png) < 60_000


def test_a_figure_draws_where_it_is_told():
    _, axes = matplotlib.pyplot.subplots(1, 2)
    plot, df, more = FIGURES['sizes']
    assert plot(df, ax=axes[1], **more) is axes[1] and not axes[0].collections
    matplotlib.pyplot.close('all')


DEUTAN = [[.367322, .860646, -.227968], [.280085, .672501, .047413], [-.011820, .042940, .968881]] # Machado et al. 2009
PROTAN = [[.152286, 1.052583, -.204868], [.114503, .786281, .099216], [-.003882, -.048116, 1.051998]]


def lab(colour, sight):
    rgb = np.array([int(colour[i:i+2], 16) for i in (1, 3, 5)])/255
    linear = np.clip(sight @ np.where(rgb <= .04045, rgb/12.92, ((rgb + .055)/1.055)**2.4), 0, 1)
    xyz = np.array([[.4124, .3576, .1805], [.2126, .7152, .0722], [.0193, .1192, .9505]]) @ linear/np.array([.9505, 1, 1.089])
    f = np.where(xyz > .008856, np.cbrt(xyz), 7.787*xyz + 16/116)
    return np.array([116*f[1] - 16, 500*(f[0] - f[1]), 200*(f[1] - f[2])])


@pytest.mark.parametrize('kind', style._COLOURS)
@pytest.mark.parametrize('sight', [np.eye(3), np.array(DEUTAN), np.array(PROTAN)], ids=['full', 'deutan', 'protan'])
def test_colours_stay_apart_for_every_reader(kind, sight):
    colours = {name: lab(c, sight) for name, c in style._COLOURS[kind].items()}
    for (a, x), (b, y) in itertools.combinations(colours.items(), 2): assert np.linalg.norm(x - y) > 15, (a, b)


# HTML

class Checker(HTMLParser):
    "Every tag closed, every image with words, nothing from elsewhere, no script."
    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], ''
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag != 'script' and not any(name.startswith('on') for name, _ in attrs), (tag, attrs)
        if tag == 'img': assert dict(attrs).get('alt')
        for name, value in attrs: assert name not in ('src', 'href') or not re.match(r'(https?:)?//', value or ''), value
        if tag not in ('meta', 'img', 'br', 'hr'): self.open.append(tag)

    def handle_startendtag(self, tag, attrs): pass
    def handle_endtag(self, tag): assert self.open.pop() == tag, tag
    def handle_data(self, data): self.text += data


EVIL = '<script>alert(1)</script><img src=x onerror=alert(1)>'


@pytest.fixture(scope='module')
def corpus_dir(tmp_path_factory):
    from sandsmith.sand.author import write_task
    from sandsmith.sand.calibrate import calibrate
    from sandsmith.sand.spec import draw_spec
    out = tmp_path_factory.mktemp('corpus')
    made = 0
    for i in range(20):
        calibration = calibrate(spec := draw_spec(3, i, modalities=['tabular']))
        if calibration.is_accepted: made += bool(write_task(spec, calibration, out/'tasks'))
        if made == 2: return out
    raise AssertionError('no task accepted')


def test_a_task_page_shows_and_escapes(corpus_dir, tmp_path):
    import json, shutil
    there = sorted((corpus_dir/'tasks').iterdir())[0]
    task_dir = shutil.copytree(there, tmp_path/'task')
    data = json.loads((task_dir/'task.json').read_text())
    data['spec'] |= {'title': f'Title {EVIL}', 'hidden_rule_logic': f'rule {EVIL}', 'domain': EVIL}
    (task_dir/'task.json').write_text(json.dumps(data))
    (task_dir/'public/description.md').write_text(f'# Page\n\n{EVIL}\n\n[link](javascript:alert(1))\n\n| a |\n|---|\n| {EVIL} |\n\n$$x <b>_i</b>$$')
    rows = (task_dir/'public/train.csv').read_text().split('\n')
    (task_dir/'public/train.csv').write_text('\n'.join([rows[0], *[','.join([EVIL]*len(rows[0].split(',')))]*3]))
    page = view_task(task_dir)
    assert Checker(page).text.count('alert(1)') > 8 and 'href="javascript' not in page
    assert all(f'{data["thresholds"][tier]:.4g}' in page for tier in TIERS)


def test_markdown_with_formulas_is_kept_in_order():
    page = render_markdown('first $$a_1$$ then $$\\nonsense{$$ and last')
    assert page.index('first') < page.index('<svg') < page.index('then') < page.index('<code>\\nonsense{</code>') < page.index('last')
    assert render_markdown('costs $$ 5') == '<p>costs $$ 5</p>\n'


def test_the_browser_follows_its_controls(corpus_dir):
    browser = browse_tasks(corpus_dir)
    names = browser.index['task_id'].to_list()
    assert [value for _, value in browser.choice.options] == names and len(names) == 2
    browser.choice.set_state({'index': 1}) # what a click sends
    assert browser.page.value == view_task(corpus_dir/'tasks'/names[1])
    browser.modality.value = 'tabular'
    assert len(browser.choice.options) == 2
    browser.search.value = browser.index['family'][0]
    assert names[0] in [value for _, value in browser.choice.options]
    browser.search.value = 'no such title'
    assert browser.choice.options == () and browser.page.value == 'No task fits.'
    assert set(browser._repr_mimebundle_()) >= {'text/html', 'text/plain'}


def a_run(run_dir):
    tasks = many_tasks(6).with_columns(n_feedback=60, n_reward=200, title=pl.lit('t'), domain=pl.lit('d'), n_draws=1)
    write_record(tasks, run_dir, 'tasks')
    parts = {name: pl.lit(0.) for name in ('format', 'execute', *TIERS)}
    episodes = pl.DataFrame([{'task_id': t, 'modality': m, 'policy': p, 'status': 'scored', 'score': s, 'tier': '', 'reason': 'ok', 'reward': r,
                              'n_turns': 3, 'seconds': 1., 'tier_isolation': 'A'} for p, r in (('constant', .4), ('insider', 1.))
                             for t, m, s in tasks.select('task_id', 'modality', 'gold').iter_rows()]).with_columns(**parts)
    write_record(episodes, run_dir, 'episodes')
    write_record(pl.DataFrame({'stage': [f'{EVIL}'], 'seconds': [61.], 'peak_mb': [512.]}), run_dir, 'stages')
    plot, df, more = FIGURES['sizes']
    style.save_card(style.make_card(plot(df, **more), name='ladders', title='t', caption=EVIL, alt=EVIL), run_dir)
    (run_dir/'01_generate.ipynb').write_text('{}')


def test_the_report_is_one_sound_page(tmp_path):
    a_run(tmp_path)
    page = write_report(tmp_path, seed=0).read_text()
    text = Checker(page).text
    assert '0.40 → 1.00' in text and '1.0 min' in text and 'insider' in text and 'Did training help?' not in text
    assert 'href="01_generate.ipynb"' in page and 'href="records/episodes.parquet"' in page and '<html lang="en">' in page
    assert page == render_report(tmp_path, manifest=None, seed=0)


def test_an_empty_run_still_has_a_page(tmp_path):
    assert 'by itself' in Checker(render_report(tmp_path, manifest=None, seed=0)).text
