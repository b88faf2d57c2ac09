"The strategist: seed cards, DNA, mixes, mutations, and the published schema"
import json
from collections import Counter

import pytest

from sandsmith.core import SpecError, checkout_dir
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
    with mutations_by(lambda offered: wanted): spec = write_spec(family, domain, seed=1, index=0)
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
