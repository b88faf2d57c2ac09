"The vocabulary: every domain serves every family, and reads like itself"
import numpy as np
import pytest

from sandsmith.core import canonical_json, derive_seed
from sandsmith.sand.spec import family_names, get_family, load_domains

DOMAINS = load_domains()

def names_of(domain):
    "All column names that tasks of a domain may use."
    lists = ('features', 'categories', 'regression', 'binary', 'ordinal', 'multiclass')
    text, image = domain['text'], domain['image']
    return [x['name'] for k in lists for x in domain[k]] + [text['column'], text['sentiment'][0], text['amount'][0]] + [
        image[k][0] for k in ('stripes', 'objects', 'surface')]

def test_there_are_many_and_no_two_share_words():
    assert len(DOMAINS) >= 40
    for field in ('domain', 'host'): assert len({d[field] for d in DOMAINS.values()}) == len(DOMAINS)
    titles = [t for d in DOMAINS.values() for t in d['titles']]
    assert len(set(titles)) == len(titles)
    assert {d['sector'] for d in DOMAINS.values()} == {'healthcare', 'retail', 'manufacturing', 'it', 'other'}

@pytest.mark.parametrize('key', DOMAINS)
def test_a_domain_is_complete(key):
    d = DOMAINS[key]
    assert len(d['features']) >= 12 and all(f['low'] < f['high'] for f in d['features'] + d['regression'])
    assert [len(d[k]) for k in ('titles', 'categories', 'regression', 'binary')] == [4, 2, 2, 2]
    assert all(4 <= len(c['levels']) == len(set(c['levels'])) for c in d['categories'])
    assert all(len(m['labels']) == 3 for m in d['multiclass'])
    assert d['entity'][0][0] not in 'aeiou'  # stories say 'a batch'
    assert all(b['description'].startswith('1 when ') for b in d['binary'])
    names = names_of(d)
    assert len(set(names)) == len(names) and not {'id', 'image', 'writer'} & set(names)

@pytest.mark.parametrize('key', DOMAINS)
def test_notes_can_be_read_by_their_rules(key):
    "Insiders look for whole phrases, so none may hide in another, nor in the filler."
    text = DOMAINS[key]['text']
    subjects, words = text['subjects'], text['good'] + text['bad']
    assert [len(text[k]) for k in ('good', 'bad', 'subjects', 'elsewhere', 'filler', 'writers', 'events')] == [8, 8, 8, 4, 6, 3, 7]
    assert len(set(words)) == 16 and not any(' ' in w for w in words)
    assert not [(a, b) for a in subjects for b in subjects if a != b and a in b]
    events = [e for pair in text['events'] for e in pair]
    assert len(set(events)) == 14 and not [(a, b) for a in events for b in events if a != b and b.endswith(f' {a}')]
    for sentence in text['filler']:
        low = sentence.lower()
        assert '.' not in low and 'booked' not in low and low.split()[-1] not in words
        assert not [x for x in (*subjects, *events, *map(str.lower, text['elsewhere'])) if x in low]

@pytest.mark.parametrize('name', family_names())
def test_every_domain_works_with_every_family(name):
    family = get_family(name)
    for key, domain in DOMAINS.items():
        params = family.sample_params(np.random.default_rng(derive_seed(1, name, key)), domain)
        words, rows = family.describe(params), family.generate(8, params, 5, 'train')
        canonical_json([params, rows['columns'], rows['target']])
        assert set(rows['columns']) == set(words['features']) and words['target']['name'] not in words['features']
        assert domain['titles'] and words['title'].split(':')[0] in domain['titles']
