"The strategist: seed cards, DNA, mixes, mutations, and the published schema"
import json
from collections import Counter

import pytest

from sandsmith.core import SpecError, checkout_dir
from sandsmith.sand.checkout import import_checkout
from sandsmith.sand.spec import draw_spec, family_names, get_family, load_domains, write_spec, mutations_by
from sandsmith.sand.strategist import carriers, kind_of, load_seeds, mix_shares, mutation_menu, plan_task, spec_schema

NAMES = family_names()

def test_cards_count_as_the_benchmark_does():
    cards = load_seeds()
    assert Counter(c.split for c in cards.values()) == {'low': 22, 'medium': 38, 'high': 15, 'dev': 7}
    main = [c.dna for c in cards.values() if c.split != 'dev']
    assert sum(d.direction == 'min' for d in main) == 22
    counts = Counter(d.metric for d in main)
    assert {'roc_auc': 10, 'log_loss': 6, 'accuracy': 7, 'macro_f1': 4, 'qwk': 2, 'mean_column_auc': 3}.items() <= counts.items()
    assert cards['ventilator-pressure-prediction'].dna.metric == 'mae'  # its config says otherwise
    assert cards['stanford-covid-vaccine'].dna.metric == 'mcrmse'
    assert all(c.dna.structure for c in cards.values())

@pytest.mark.parametrize('name', NAMES)
def test_every_family_has_a_menu_and_obeys_it(name):
    family, domain = get_family(name), load_domains()['dairy']
    menu = mutation_menu(family)
    assert len(menu) >= 3
    wanted = {m: 3 for m in sorted(menu)[-3:]}
    with mutations_by(lambda offered: wanted if dict(offered) == menu else None): spec = write_spec(family, domain, seed=1, index=0)
    assert {m: int(v['severity']) for m, v in spec.params['mutations'].items()} == wanted

def test_wishes_outside_the_menu_are_refused():
    family, domain = get_family(NAMES[0]), load_domains()['dairy']
    for bad in ({'gremlins': 1}, {m: 4 for m in sorted(mutation_menu(family))[:3]}, {}):
        with mutations_by(lambda menu, bad=bad: bad), pytest.raises(SpecError, match='mutations: expected 3'):
            write_spec(family, domain, seed=1, index=0)
    for wish in (dict(metric='vibes'), dict(n_train=20)):
        with pytest.raises(SpecError, match='metric|n_train'): write_spec(family, domain, seed=1, index=0, **wish)

@pytest.mark.parametrize('profile', ['balanced', 'paper'])
def test_a_plan_is_pure_and_keeps_what_the_seed_fixes(profile):
    for i in range(12):
        plan = plan_task(5, i, profile=profile)
        assert plan_task(5, i, profile=profile) == plan
        family = get_family(plan.spec.family)
        assert plan.spec.modality == plan.dna.modality == family.modality and kind_of(family) == plan.dna.task_type
        if plan.seed_id: assert plan.spec.family in carriers(plan.dna)
        assert len({s.domain for s in plan.scenarios}) == 5 and len(plan.mutations) == 3
        assert plan.scenarios[0].industry == plan.spec.domain
        if plan.dna.metric in family.metrics and profile == 'paper': assert plan.spec.metric == plan.dna.metric

def test_balanced_is_what_draw_spec_draws():
    assert [plan_task(9, i).spec for i in range(4)] == [draw_spec(9, i) for i in range(4)]
    with pytest.raises(SpecError, match='profile'): plan_task(9, 0, profile='fair')

def test_the_papers_mix_is_kept_as_far_as_families_go():
    chosen = ['tabular', 'text', 'image']
    shares = mix_shares(modalities=chosen)
    assert sum(shares.values()) == pytest.approx(1)
    by_modality = Counter()
    for (modality, _), s in shares.items(): by_modality[modality] += s
    whole = .487 + .248 + .104
    assert [by_modality[m] for m in ('image', 'tabular', 'text')] == pytest.approx([.487/whole, .248/whole, .104/whole], abs=.01)
    drawn = Counter()
    for i in range(60): drawn[plan_task(2, i, profile='paper', modalities=chosen).spec.modality] += 1
    assert all(abs(drawn[m]/60 - by_modality[m]) < .06 for m in chosen)
    with pytest.raises(SpecError, match='modalities'): mix_shares(modalities=['smell'])

def test_the_committed_schema_is_current():
    path = checkout_dir()/'data'/'task_spec.schema.json'
    schema = spec_schema()
    assert json.loads(path.read_text(encoding='utf-8')) == schema, 'write it again by spec_schema()'
    fields = [*schema['properties'].values(), *(f for d in schema['$defs'].values() for f in d['properties'].values())]
    assert all(f.get('description') for f in fields)

# ---------------------------------------------------------------- a checkout

GRADERS = {
    'plain-mae': ('from sklearn.metrics import mean_absolute_error\ndef grade(s, a): return mean_absolute_error(a, s)', 'mae', 'min'),
    'kappa': ('from sklearn.metrics import cohen_kappa_score as k\ndef grade(s, a): return k(a, s, weights="quadratic")', 'qwk', 'max'),
    'error': ('from sklearn.metrics import accuracy_score\ndef grade(s, a): return 1 - accuracy_score(a, s)', 'top1_error', 'min'),
    'macro': ('from sklearn.metrics import f1_score\ndef grade(s, a): return f1_score(a, s, average="macro")', 'macro_f1', 'max'),
    'columns': ('from sklearn.metrics import roc_auc_score\ndef grade(s, a): return sum(roc_auc_score(a[c], s[c]) for c in a)', 'mean_column_auc', 'max'),
    'words': ('from Levenshtein import distance\ndef grade(s, a): return distance(a, s)', 'levenshtein', 'min'),
    'beside': ('from .own_dice import score\ndef grade(s, a): return score(a, s)', 'dice', 'max')}

@pytest.fixture
def checkout(tmp_path):
    "A small made-up mle-bench, whose labels of metrics are all wrong."
    for name, (code, _, _) in GRADERS.items():
        folder = tmp_path/'mlebench'/'competitions'/name
        folder.mkdir(parents=True)
        (folder/'grade.py').write_text(code + '\n')
        (folder/'config.yaml').write_text('grader:\n  name: brier\n')
        (folder/'description.md').write_text('Photographs in train/*.jpg' if name == 'kappa' else 'See train.csv')
    (tmp_path/'mlebench'/'competitions'/'beside'/'own_dice.py').write_text('def dice(a, b): return 1\ndef score(a, b): return dice(a, b)\n')
    (tmp_path/'experiments'/'splits').mkdir(parents=True)
    (tmp_path/'experiments'/'splits'/'low.txt').write_text('kappa\n')
    return tmp_path

def test_metrics_come_from_the_code(checkout):
    found = import_checkout(checkout)
    assert found.problems == {} and len(found.cards) == len(GRADERS)
    assert {c.id: (c.dna.metric, c.dna.direction) for c in found.cards} == {name: want for name, (_, *rest) in GRADERS.items() for want in [tuple(rest)]}
    kappa, = (c for c in found.cards if c.id == 'kappa')
    assert (kappa.split, kappa.dna.modality, kappa.dna.task_type) == ('low', 'image', 'classification')

def test_what_cannot_be_read_is_reported(checkout):
    for name, code in (('plain-mae', 'def grade(:'), ('words', 'def grade(s, a): return vibes(s)')):
        (checkout/'mlebench'/'competitions'/name/'grade.py').write_text(code)
    found = import_checkout(checkout)
    assert set(found.problems) == {'plain-mae', 'words'} and 'add its card by hand' in found.problems['words']
    with pytest.raises(SpecError, match='root of an mle-bench clone'): import_checkout(checkout/'experiments')
