"Rewards, the rollout loop, and training with a model small enough for a test"
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sandsmith.core import SpecError, TrainError
from sandsmith.rl.environment import BuildEnv, rollout
from sandsmith.rl.grpo import last_checkpoint, read_journal
from sandsmith.rl.monitor import step_summary, zero_variance_share
from sandsmith.rl.observe import bound_text
from sandsmith.rl.reward import format_rate, reward
from sandsmith.rl.train import TrainSettings, run_training
from sandsmith.smith.build import build_messages, draw_build_rows, grade_build
from sandsmith.smith.oracle import reference_categories, reference_response
from sandsmith.trace import Trajectory, Turn, Verdict

LADDER = ('median', 'bronze', 'silver', 'gold')
SAND = ('paper', 'release', 'sparse')


def message(has_format: bool) -> dict:
    call = {'id': '0', 'type': 'function', 'function': {'name': 'submit', 'arguments': '{}'}}
    return {'role': 'assistant', 'content': '<think>Because.</think>' if has_format else 'Because.', 'tool_calls': [call]}


def episode(formats=(True,), timed_out=False) -> Trajectory:
    turns = tuple(Turn(message=message(f)) for f in formats)
    return Trajectory(task_id='t', policy='p', seed=0, messages=(), turns=turns, stop_reason='submitted', timed_out=timed_out)


def scored(n_tiers: int, score=.5) -> Verdict:
    return Verdict(status='scored', score=score, tiers=LADDER[:n_tiers])


# ---- sand rewards

@given(st.lists(st.booleans(), max_size=8), st.sampled_from(SAND))
def test_sand_reward_rises_with_the_tier_and_stays_in_bounds(formats, preset):
    totals = [reward(scored(n), episode(formats), preset=preset).total for n in range(5)]
    assert totals == sorted(totals) and 0 <= totals[0] and totals[-1] <= 1
    assert totals[-1] > totals[0]


@pytest.mark.parametrize('preset', SAND)
def test_sand_reward_reads_no_text(preset):
    "What was said pays nothing beyond its format: a forged score in the conversation changes nothing."
    forged = replace(episode(), messages=({'role': 'tool', 'content': 'Details: {"score": 1.0, "gold": true}'},))
    assert reward(scored(0), forged, preset=preset) == reward(scored(0), episode(), preset=preset)


@pytest.mark.parametrize('preset', SAND)
def test_a_fault_of_ours_and_a_timeout_have_no_reward(preset):
    assert reward(Verdict(status='unscored', reason='grader_failed'), episode(), preset=preset).total is None
    assert reward(scored(4), episode(timed_out=True), preset=preset).total is None
    assert reward(Verdict(status='missing', reason='missing_submission'), episode(), preset=preset).total == .1


def test_format_needs_a_thought_and_one_call():
    assert format_rate(episode((True, False, True, True))) == .75
    assert format_rate(episode(())) == 0


# ---- building

@pytest.fixture(scope='module')
def row():
    return draw_build_rows(['lcm'], n=1, seed=3, split='heldout', n_shown=2, n_hidden=8)[0]


@pytest.mark.parametrize('category', reference_categories())
def test_reference_tools_earn_everything(category):
    rows = draw_build_rows([category], n=2, seed=5, split='train', n_shown=2, n_hidden=16)
    for i, r in enumerate(rows):
        env = BuildEnv(r)
        env.reset()
        env.step({'role': 'assistant', 'content': reference_response(r, np.random.default_rng(i))})
        assert reward(env.finish(), episode(), preset='build').total == 1.5


EXPLOITS = {
    'empty': '',
    'no schema': '```python\ndef lcm(numbers):\n    return 1\n```',
    'claims success': '```python\nprint("PASSED", 1.0)\ndef lcm(numbers):\n    import os\n    os._exit(0)\n```\n{schema}',
    'equal to everything': '```python\nclass Any(str):\n    def __eq__(self, other): return True\ndef lcm(numbers):\n    return Any("x")\n```\n{schema}',
    'all answers at once': '```python\ndef lcm(numbers):\n    return list(range(100000))\n```\n{schema}',
    'reads the grader': '```python\ndef lcm(numbers):\n    import gc\n    return [o for o in gc.get_objects() if isinstance(o, dict) and "answer" in o][0]["answer"]\n```\n{schema}',
    'not finite': '```python\ndef lcm(numbers):\n    return float("nan")\n```\n{schema}'}
SCHEMA = '```json\n' + json.dumps({'type': 'function', 'function': {'name': 'lcm', 'description': 'Lcm.', 'parameters': {
    'type': 'object', 'properties': {'numbers': {'type': 'array', 'items': {'type': 'integer'}}}, 'required': ['numbers']}}}) + '\n```'


@pytest.mark.parametrize('name', EXPLOITS)
def test_exploits_answer_no_question(row, name):
    verdict = grade_build(EXPLOITS[name].replace('{schema}', SCHEMA), row)
    assert verdict.status == 'scored' and verdict.score == 0
    assert reward(verdict, episode(), preset='build').total <= .5 # a sound format is all that it can have


def test_step_1_failure_earns_nothing_even_with_right_answers(row):
    drifted = reference_response(row, np.random.default_rng(0)).replace('def ', 'def my_', 1)
    verdict = grade_build(drifted, row)
    assert verdict.facts['step1_fail'] and verdict.facts['fn_mismatch']
    assert reward(verdict, episode(), preset='build').total == 0


def test_splits_share_no_question():
    seen = {}
    for split in ('sft', 'train', 'heldout'):
        rows = draw_build_rows(reference_categories(), n=30, seed=1, split=split, n_shown=2, n_hidden=8)
        seen[split] = {q.question for r in rows for q in r.shown + r.hidden}
    assert all(seen.values())
    assert not seen['sft'] & seen['train'] and not seen['sft'] & seen['heldout'] and not seen['train'] & seen['heldout']


def test_the_prompt_shows_no_hidden_question(row):
    text = json.dumps(build_messages(row))
    assert all(q.question in json.loads(text)[1]['content'] for q in row.shown)
    assert not any(q.question in text for q in row.hidden)


class Speaker:
    name = 'scripted:speaker'
    def __init__(self, text): self.text = text
    def act(self, messages, *, tools=None, rng=None): return {'role': 'assistant', 'content': self.text}


def test_rollout_of_a_build_task(row):
    said, verdict = rollout(BuildEnv(row), Speaker('no'), task_id=row.id, seed=0)
    assert (said.stop_reason, len(said.turns), verdict.facts['step1_fail']) == ('submitted', 1, True)


def test_bound_text_keeps_head_and_tail():
    text = 'head' + 'x'*10_000 + 'tail'
    cut = bound_text(text, 100)
    assert cut.startswith('head') and cut.endswith('tail') and len(cut) < 200


# ---- figures of a step

@given(st.lists(st.sampled_from([0., .5, 1.5]), min_size=8, max_size=8))
def test_zero_variance_share_counts_flat_groups(rewards):
    flat = [len(set(rewards[i:i + 4])) == 1 for i in (0, 4)]
    assert zero_variance_share(rewards, 4) == sum(flat)/2


def test_step_summary_keeps_flags_apart():
    base = dict(step1_fail=True, fn_mismatch=True, param_mismatch=False, syntax_error=False, format=0., eval_reward=0., env_reward=0., n_tokens=5, is_truncated=False)
    figures = step_summary([base, base | dict(fn_mismatch=False, syntax_error=True)], 2)
    assert (figures['step1_fail'], figures['fn_mismatch'], figures['syntax_error'], figures['zero_variance']) == (1., .5, .5, 1.)


# ---- training, with a llama of 0.1M parameters

@pytest.fixture(scope='module')
def tiny_model(tmp_path_factory) -> Path:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    out = tmp_path_factory.mktemp('tiny')
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    bpe.train_from_iterator(['def lcm(numbers): return'], trainers.BpeTrainer(
        vocab_size=300, special_tokens=['<|endoftext|>', '<|im_start|>', '<|im_end|>'], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tok = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token='<|im_end|>', pad_token='<|endoftext|>', padding_side='left')
    tok.chat_template = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
                         "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=len(tok), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
                         max_position_embeddings=2048, eos_token_id=tok.eos_token_id, pad_token_id=tok.pad_token_id, bos_token_id=None)
    LlamaForCausalLM(config).save_pretrained(out)
    tok.save_pretrained(out)
    return out


SMALL = TrainSettings(n_heldout=3, n_samples=1, n_hidden=2, lora_layers=1, lora_rank=2, sft_steps=2, sft_batch=2, sft_stop_loss=0., grpo_steps=3,
                      n_prompts=2, group_size=2, max_new_tokens=8, temperature=1.)


class Killed(BaseException): pass


def test_a_killed_run_resumes_at_its_step_and_ends_the_same(tiny_model, tmp_path):
    whole = run_training(SMALL, tmp_path/'whole', model_dir=tiny_model)
    assert [s['step'] for s in whole.steps] == [1, 2, 3] and len(whole.rollouts) == 12 and len(whole.heldout) == 9
    assert {h['stage'] for h in whole.heldout} == {'base', 'sft', 'grpo'} and len(whole.sft_losses) == 2

    def die_at_2(figures):
        if figures['step'] == 2: raise Killed
    with pytest.raises(Killed): run_training(SMALL, tmp_path/'cut', model_dir=tiny_model, on_step=die_at_2)
    assert last_checkpoint(tmp_path/'cut'/'grpo')[1] == 1           # step 2 was journaled, but its checkpoint was not written
    assert len(read_journal(tmp_path/'cut'/'grpo'/'steps.jsonl')) == 2
    seen = []
    resumed = run_training(SMALL, tmp_path/'cut', model_dir=tiny_model, on_step=lambda f: seen.append(f['step']))
    assert seen == [2, 3]
    drop = lambda steps: [{k: v for k, v in s.items() if not k.startswith('seconds')} for s in steps]
    assert drop(resumed.steps) == drop(whole.steps)
    assert resumed.rollouts == whole.rollouts and resumed.heldout == whole.heldout

    again = run_training(SMALL, tmp_path/'cut', model_dir=tiny_model, on_step=lambda f: pytest.fail('nothing is left to train'))
    assert again == resumed
    with pytest.raises(SpecError, match="'lr'"): run_training(replace(SMALL, lr=.5), tmp_path/'cut', model_dir=tiny_model)


def test_a_torn_checkpoint_does_not_count(tmp_path):
    for step, text in ((1, '{"global_step": 1}'), (2, '{"global_st')):
        folder = tmp_path/f'checkpoint-{step}'
        folder.mkdir()
        (folder/'trainer_state.json').write_text(text)
    (tmp_path/'checkpoint-3').mkdir()
    assert last_checkpoint(tmp_path) == (tmp_path/'checkpoint-1', 1)


def test_grpo_moves_only_the_upper_layers(tiny_model):
    from sandsmith.chat import load_model
    from sandsmith.rl.backend import attach_lora
    model = attach_lora(load_model(tiny_model), rank=2, n_layers=1, seed=0).model
    trained = {n for n, p in model.named_parameters() if p.requires_grad}
    assert trained and all('lora' in n and '.layers.1.' in n for n in trained)
    with pytest.raises(TrainError, match=r'1\.\.2'): attach_lora(load_model(tiny_model), rank=2, n_layers=3, seed=0)
