"Training with a llama of a million parameters: masks, advantages, alarms and resuming, on a mixed batch"
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sandsmith.core import Limits, SandboxError, TrainError
from sandsmith.rl import grpo
from sandsmith.rl.advantage import advantages, group_advantages
from sandsmith.rl.backend import HfBackend, ModelSettings, add_evaluator, as_evaluator, hf_sampler, load_adapter, shows_tools
from sandsmith.rl.environment import BuildEnv, SandEnv
from sandsmith.rl.grpo import read_journal, train_grpo
from sandsmith.rl.rollout import Seat, conversation_ids
from sandsmith.rl.task import Scoreboard, Task, build_task, sand_task, use_task
from sandsmith.rl.trainer import GrpoSettings, Play, RolloutMixin, check_masking, check_sampler, config_arguments, make_trainer
from sandsmith.sand.corpus import build_corpus
from sandsmith.smith.build import build_messages, draw_build_rows
from sandsmith.smith.oracle import reference_response
from sandsmith.smith.pool import ToolPool
from sandsmith.smith.tool import verify
from sandsmith.smith.use import draw_use_rows
from sandsmith.trace import Verdict

CPU = dict(use_cpu=True, bf16=False, gradient_checkpointing=False)
SMALL = GrpoSettings(n_steps=1, n_prompts=4, group_size=2, lr=1e-2, max_new_tokens=400, max_completion_tokens=1400, micro_batch=8, env_workers=8)


# ---- advantages

rewards = st.lists(st.one_of(st.none(), st.floats(-2, 2)), min_size=8, max_size=8)


@given(rewards)
def test_masked_rollouts_leave_their_group(values):
    found = group_advantages(values, group_size=4)
    assert found.shape == (8,) and np.isfinite(found).all()
    for start in (0, 4):
        there = [v for v in values[start:start + 4] if v is not None]
        alone = iter(group_advantages(there, group_size=len(there))) if there else iter(())
        assert [a == 0 if v is None else a == next(alone) for v, a in zip(values[start:start + 4], found[start:start + 4])] == [True]*4


@given(st.lists(st.floats(0, 2), min_size=4, max_size=4), st.floats(.01, 2), st.floats(-5, 5))
def test_advantages_do_not_depend_on_where_rewards_lie(values, scale, shift):
    found = group_advantages(values, group_size=4)
    assert abs(found.sum()) < 1e-6
    if np.std(values) > .05:
        moved = group_advantages([v*scale + shift for v in values], group_size=4)
        assert np.allclose(found, moved, atol=2e-4/min(scale, 1)/.05)


@given(st.floats(-2, 2), rewards)
def test_groups_all_alike_give_exactly_zero_on_every_axis(value, use):
    axes = [{'env': value, 'judge': .7}]*8 + [None if u is None else {'use': u} for u in use]
    for how in ('sum', 'per_component'):
        found = advantages(axes, group_size=8, aggregation=how)
        assert (found[:8] == 0).all() and np.array_equal(found[8:], group_advantages(use, group_size=8))


# ---- a model, and tasks of every kind

@pytest.fixture(scope='module')
def model_dir(tmp_path_factory) -> Path:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    out = tmp_path_factory.mktemp('llama')
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    text = json.dumps(reference_response(draw_build_rows(['gcd'], n=1, seed=0, split='sft', n_shown=2, n_hidden=2)[0], np.random.default_rng(0)))
    bpe.train_from_iterator([text, '<tool_call> <tool_response> user assistant system']*20, trainers.BpeTrainer(vocab_size=512,
        special_tokens=['<|endoftext|>', '<|im_start|>', '<|im_end|>'], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tok = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token='<|im_end|>', pad_token='<|endoftext|>', padding_side='left')
    tok.chat_template = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=len(tok), hidden_size=128, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4,
                         num_key_value_heads=4, max_position_embeddings=4096, tie_word_embeddings=True, eos_token_id=tok.eos_token_id,
                         pad_token_id=tok.pad_token_id, bos_token_id=None)
    model = LlamaForCausalLM(config)
    assert .9e6 < model.num_parameters() < 1.3e6
    model.save_pretrained(out)
    tok.save_pretrained(out)
    return out


def load(model_dir): return HfBackend().load(ModelSettings(path=str(model_dir), lora_rank=4, lora_layers=2, chat_template='qwen2_5'))


@pytest.fixture
def local(model_dir): return load(model_dir)


@pytest.fixture(scope='module')
def sand(tmp_path_factory):
    return build_corpus(tmp_path_factory.mktemp('sand')/'corpus', n=1, seed=3, workers=1).tasks[0]


ROWS = draw_build_rows(['gcd'], n=4, seed=0, split='train', n_shown=2, n_hidden=2)
GOOD = reference_response(ROWS[0], np.random.default_rng(0))
QUESTIONS = draw_use_rows(['gcd'], n=2, seed=0, split='train', n_shown=2)
LIMITS = Limits(timeout_s=10)


class SlowEnv(SandEnv):
    "A sand episode whose prompt says that it is the slow one."
    def reset(self): return [*super().reset(), {'role': 'user', 'content': 'the slow one'}]


def slow_task(task) -> Task:
    def seats(n): return [Seat(env=SlowEnv(task, limits=Limits(timeout_s=1)), task_id='slow', kind='sand', preset='paper') for _ in range(n)]
    return Task(id='slow', kind='sand', category='slow', messages=[{'role': 'user', 'content': 'slow'}], seats=seats)


def call(name, **arguments): return '<tool_call>\n' + json.dumps({'name': name, 'arguments': arguments}) + '\n</tool_call>'


class Script:
    "A sampler that says what it is told to, by what it reads."
    def __init__(self, tokenizer, logprob=None): self.tokenizer, self.logprob, self.said = tokenizer, logprob, []

    def text(self, prompt: str, turn: int, i: int) -> str:
        if 'You write tools.' in prompt: return GOOD if i % 2 == 0 else 'I would rather not.'
        if 'calling tools' in prompt:
            tool = verify(GOOD).tool
            return '\\boxed{7}' if turn else 'So:\n' + call(tool.name, **{next(iter(tool.schema['function']['parameters']['properties'])): [12, 18]})
        if turn: return '<think>Done.</think>\n' + call('submit')
        code = 'while True: pass' if 'the slow one' in prompt and i % 2 == 0 else 'print(6*7)'
        return '<think>Look first.</think>\n' + call('python', code=code) if i % 2 == 0 else '<think>Give up.</think>\n' + call('submit')

    def __call__(self, prompts, *_):
        texts = [self.tokenizer.decode(ids) for ids in prompts]
        said = [self.text(t, t.count('<tool_response>'), i) for i, t in enumerate(texts)]
        self.said.append(said)
        ids = [self.tokenizer(s + '<|im_end|>', add_special_tokens=False)['input_ids'] for s in said]
        return ids, None if self.logprob is None else [[self.logprob]*len(x) for x in ids]


def trainer_of(local, tasks, pool, settings=SMALL, script=None, out='out', **more):
    play = Play(tasks=tasks, settings=settings, pool=pool)
    trainer = make_trainer(local.model, local.tokenizer, play, config_arguments(settings, out, CPU), **more)
    if script: trainer._generate_single_turn = script
    return trainer


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as workers: yield workers


def full_pool(path) -> ToolPool:
    tools = ToolPool(path)
    tools.admit('gcd', verify(GOOD).tool, 1.)
    return tools


# ---- one mixed batch

@pytest.fixture(scope='module')
def mixed(model_dir, sand, tmp_path_factory):
    "A trainer after one step on a build, a use, a sand and a slow group, and what its loss was computed from."
    local, tmp_path, pool = load(model_dir), tmp_path_factory.mktemp('mixed'), ThreadPoolExecutor(8)
    assert shows_tools(local.tokenizer)
    tasks = [build_task(ROWS[0], limits=LIMITS), use_task(QUESTIONS[0], pool=full_pool(tmp_path/'pool.sqlite'), policy=None, seed=0),
             sand_task(sand, limits=Limits(timeout_s=20)), slow_task(sand)]
    script = Script(local.tokenizer)
    trainer, seen = trainer_of(local, tasks, pool, script=script, out=tmp_path/'out'), []
    compute = trainer.compute_loss
    def watched(model, inputs, *args, **more):
        seen.append({k: inputs[k].tolist() for k in ('prompt_ids', 'completion_ids', 'completion_mask', 'tool_mask', 'advantages')})
        return compute(model, inputs, *args, **more)
    trainer.compute_loss = watched
    trainer.train()
    pool.shutdown()
    return trainer, script, seen


def test_a_mixed_batch_is_masked_token_for_token(mixed):
    trainer, script, seen = mixed
    rollouts, tok = trainer.play.rollouts, script.tokenizer
    assert [r.seat.kind for r in rollouts] == ['build']*2 + ['use']*2 + ['sand']*4
    assert [r.trajectory.timed_out for r in rollouts] == [False]*6 + [True, False]
    batch = seen[0]
    rows = {tuple(i for i, m in zip(ids, mask) if m): (ids, mask, env, a) for ids, mask, env, a in zip(
        batch['completion_ids'], batch['completion_mask'], batch['tool_mask'], batch['advantages'])}
    turns = [[], [], [], [], [], [], [], []]
    for i in range(8): turns[i].append(script.said[0][i])
    for place, text in zip((2, 3, 4), script.said[1]): turns[place].append(text)
    for i, r in enumerate(rollouts):
        ids, mask, env, _ = rows[tuple(r.completion_ids)]
        learned = tok.decode([t for t, m, e in zip(ids, mask, env) if m*e])
        hidden = tok.decode([t for t, m, e in zip(ids, mask, env) if m*(1 - e)])
        if r.trajectory.timed_out:
            assert learned == '' and r.axes is None
            continue
        assert learned == ''.join(text + '<|im_end|>' for text in turns[i])          # every token that was said, and no other
        told = [turn.observation for turn in r.trajectory.turns[:-1]]
        want = ''.join(f'\n<|im_start|>user\n<tool_response>\n{o}\n</tool_response><|im_end|>\n<|im_start|>assistant\n' for o in told)
        assert hidden == want
        assert len(told) == (i in (2, 3, 4))
    assert '42' in rollouts[4].trajectory.turns[0].observation                       # the sandbox really ran


def test_its_advantages_are_those_of_the_reference(mixed):
    trainer, _, seen = mixed
    rollouts = trainer.play.rollouts
    want = advantages([r.axes for r in rollouts], group_size=2)
    got = {tuple(t for t, m in zip(ids, mask) if m): a for ids, mask, a in zip(
        seen[0]['completion_ids'], seen[0]['completion_mask'], seen[0]['advantages'])}
    assert np.allclose([got[tuple(r.completion_ids)] for r in rollouts], want, atol=1e-6)
    assert np.allclose(list(trainer._logs['advantages'])[-8:], want, atol=1e-3)       # TRL's own, in single precision
    assert want[0] > .7 and want[1] == -want[0] and (want[6:] == 0).all()


LETTERS = 'etaonrisx'


class LettersEnv(BuildEnv):
    "A build episode that is paid for the letters in its answer."
    def finish(self):
        facts = dict.fromkeys(('step1_fail', 'fn_mismatch', 'param_mismatch', 'syntax_error'), False)
        return Verdict(status='scored', score=0., facts=facts | {'format_ok': True, 'right': [c in self._text for c in LETTERS]})


def test_on_single_turns_it_is_bare_trl(model_dir, tmp_path, pool):
    "The same samples, rewards and weights as TRL alone, to single precision."
    import torch
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer
    s = replace(SMALL, n_steps=3, n_prompts=2, group_size=4, micro_batch=4, max_new_tokens=16, max_completion_tokens=None, temperature=1.)
    def seats(n): return [Seat(env=LettersEnv(ROWS[0]), task_id='l', kind='build', preset='build') for _ in range(n)]
    tasks = [Task(id='l', kind='build', category='gcd', messages=build_messages(ROWS[0]), seats=seats)]*6
    mine, theirs, said = load(model_dir), load(model_dir), []
    trainer = trainer_of(mine, tasks, pool, s, out=tmp_path/'mine')
    trainer.play.after_rollouts = lambda step, rollouts: said.append([r.completion_ids for r in rollouts])
    check_masking(trainer)
    check_sampler(trainer)
    trainer.train()
    def paid(completions, completion_ids, **_):
        bare.append(completion_ids)
        return [.5 + sum(c in x[0]['content'] for c in LETTERS)/len(LETTERS) for x in completions]
    bare, arguments = [], config_arguments(s, tmp_path/'theirs', CPU)
    GRPOTrainer(model=theirs.model, processing_class=theirs.tokenizer, args=GRPOConfig(**arguments), reward_funcs=[paid],
                train_dataset=Dataset.from_list([{'prompt': t.messages} for t in tasks])).train()
    assert said == bare
    a, b = weights(mine), weights(theirs)
    assert all(torch.allclose(a[n], b[n], atol=1e-4) for n in a) and any(a[n].abs().max() > 1e-3 for n in a if 'lora_B' in n)


# ---- what is tested before the first step

def test_self_tests_pass_on_the_pinned_trainer_and_change_nothing(local, pool, tmp_path):
    import torch
    trainer = trainer_of(local, [build_task(r) for r in ROWS], pool, replace(SMALL, beta=.01), out=tmp_path)
    before, state = {n: p.detach().clone() for n, p in local.model.named_parameters()}, torch.get_rng_state()
    check_masking(trainer)
    check_sampler(trainer)
    assert torch.equal(state, torch.get_rng_state()) and all(torch.equal(before[n], p) for n, p in local.model.named_parameters())


def test_a_trainer_that_forgets_the_mask_does_not_start(local, pool, tmp_path, monkeypatch):
    from trl import GRPOTrainer
    trainer = trainer_of(local, [build_task(r) for r in ROWS], pool, out=tmp_path)
    honest = GRPOTrainer._compute_loss
    monkeypatch.setattr(GRPOTrainer, '_compute_loss', lambda self, model, inputs: honest(self, model, {k: v for k, v in inputs.items() if k != 'tool_mask'}))
    with pytest.raises(TrainError, match='tokens with mask 0 receive loss'): check_masking(trainer)


@pytest.mark.parametrize('has_logprobs', [False, True])
def test_a_sampler_with_other_weights_does_not_start(local, pool, tmp_path, has_logprobs):
    trainer = trainer_of(local, [build_task(r) for r in ROWS], pool, out=tmp_path)
    sampling = trainer._generate_single_turn
    def stale(prompts, *_):
        with local.model.disable_adapter():
            ids, _ = sampling(prompts, None, {}, 1)
            logprobs = [plain_logps(trainer, p, said) for p, said in zip(prompts, ids)]
        return ids, logprobs if has_logprobs else None
    trainer._generate_single_turn = stale
    with pytest.raises(TrainError, match='rollouts do not change with the adapter'): check_sampler(trainer)


def plain_logps(trainer, prompt, said):
    import torch
    ids = torch.tensor([prompt + said])
    with torch.no_grad(): return trainer._get_per_token_logps_and_entropies(trainer.model, ids, torch.ones_like(ids), len(said))[0][0].tolist()


def test_a_batch_that_lost_its_mask_is_not_trained_on(local, pool, tmp_path):
    tasks = [use_task(QUESTIONS[0], pool=full_pool(tmp_path/'pool.sqlite'), policy=None, seed=0)]
    trainer = trainer_of(local, tasks, pool, replace(SMALL, n_prompts=1, micro_batch=2), Script(local.tokenizer), tmp_path)
    play = trainer.rollout_func
    trainer.rollout_func = lambda prompts, t: {k: v for k, v in play(prompts, t).items() if k != 'env_mask'}
    with pytest.raises(TrainError, match=r'rollout 0 .*: \d+ masked tokens would receive loss'): trainer.train()


# ---- alarms of a step

@pytest.fixture
def scripted(monkeypatch):
    "Every trainer speaks by this script, and its weights are not asked about."
    def use(script):
        monkeypatch.setattr(RolloutMixin, '_generate_single_turn', lambda self, prompts, *_: script(prompts), raising=False)
        monkeypatch.setattr(grpo, 'check_sampler', lambda trainer: None)
    return use


def alarms(out): return [(a['step'], a['name'], a['is_grave']) for a in read_journal(out/'alarms.jsonl')]


TWO = replace(SMALL, n_steps=3, n_prompts=1, micro_batch=2)


def test_alarm_when_sampler_and_trainer_disagree(local, scripted, tmp_path):
    scripted(Script(local.tokenizer, logprob=-20.))
    with pytest.raises(TrainError, match='sampler and trainer differ by'): train_grpo(local, [build_task(ROWS[0], limits=LIMITS)]*3, TWO, tmp_path, overrides=CPU)
    assert alarms(tmp_path) == [(1, 'sampler_gap', True)]


class BrokenEnv(BuildEnv):
    def finish(self): raise SandboxError('no room for a sandbox')


def test_alarm_when_every_reward_is_none(local, scripted, tmp_path):
    scripted(Script(local.tokenizer))
    def seats(n): return [Seat(env=BrokenEnv(ROWS[0]), task_id='b', kind='build', preset='build') for _ in range(n)]
    task = Task(id='b', kind='build', category='gcd', messages=[{'role': 'user', 'content': 'b'}], seats=seats)
    before = {n: p.detach().clone() for n, p in local.model.named_parameters()}
    with pytest.raises(TrainError, match='step 3: every reward was None'): train_grpo(local, [task]*3, TWO, tmp_path, overrides=CPU)
    assert [a[1:] for a in alarms(tmp_path) if a[1] == 'no_reward'] == [('no_reward', False)]*2 + [('no_reward', True)]
    assert all(r['fault'] == 'no room for a sandbox' for r in read_journal(tmp_path/'rollouts.jsonl')[0]['rollouts'])
    import torch
    assert all(torch.equal(before[n], p) for n, p in local.model.named_parameters())  # nothing was learned from nothing


def test_alarms_when_answers_are_cut_off_and_all_alike(local, tmp_path):
    train_grpo(local, [build_task(ROWS[0], limits=LIMITS)]*3, replace(TWO, max_new_tokens=4, max_completion_tokens=None), tmp_path, overrides=CPU)
    assert alarms(tmp_path) == [(3, 'clipped', False), (3, 'zero_variance', False)]


def test_no_nan_reaches_the_optimiser(local, scripted, tmp_path):
    import torch
    scripted(Script(local.tokenizer))
    weight = next(p for p in local.model.parameters() if p.requires_grad)
    weight.register_hook(lambda g: g*float('nan') if training else g)
    training, before = False, {n: p.detach().clone() for n, p in local.model.named_parameters()}
    def journal(step, rollouts):
        nonlocal training
        training = True
    with ThreadPoolExecutor(2) as workers:
        trainer = trainer_of(local, [build_task(ROWS[0], limits=LIMITS)]*3, workers, TWO, out=tmp_path)
        trainer.play.after_rollouts = journal
        trainer.train()
    assert trainer.play.n_skipped == 1 and all(torch.equal(before[n], p) for n, p in local.model.named_parameters())
    for f in local.model.parameters(): assert torch.isfinite(f).all()


# ---- the evaluator, and going on after a kill

def test_the_evaluator_is_frozen_and_leaves_no_trace(local):
    import torch
    add_evaluator(local.model)
    trained = {n for n, p in local.model.named_parameters() if p.requires_grad}
    assert trained and all('.default.' in n for n in trained)
    with torch.no_grad():
        for n, p in local.model.named_parameters():
            if n in trained: p.add_(1.)
    sample, prompt = hf_sampler(local, max_new_tokens=6, temperature=1., seed=0), [list(range(5, 15))]*2
    state, as_policy = torch.get_rng_state(), sample(prompt)[0]
    with as_evaluator(local.model): as_frozen = sample(prompt)[0]
    assert as_policy != as_frozen and as_policy == sample(prompt)[0] and torch.equal(state, torch.get_rng_state())
    assert {n for n, p in local.model.named_parameters() if p.requires_grad} == trained


class Killed(BaseException): pass


def journey(local, out, on_step=None):
    "Four steps of build and use prompts, with a pool, an evaluator and validation."
    settings = replace(SMALL, n_steps=4, n_prompts=2, micro_batch=4, evaluator_every=2, validate_every=2, lr=1e-3, beta=.01)
    tools = ToolPool(out/'pool.sqlite')
    with ThreadPoolExecutor(2) as workers:
        board = Scoreboard(local.tokenizer, HfBackend().evaluator(local, ModelSettings(path=''), max_new_tokens=4, temperature=1., seed=0),
                           max_tokens=200, pool=workers)
        policy = type('Silent', (), {'name': 'silent', 'act': lambda self, messages, *, tools=None, rng=None: {'role': 'assistant', 'content': ''}})()
        tasks = [t for i in range(4) for t in (build_task(ROWS[i], limits=LIMITS), use_task(QUESTIONS[i % 2], pool=tools, policy=policy, seed=i))]
        train_grpo(local, tasks, settings, out, overrides=CPU, pool=tools, board=board, on_step=on_step,
                   validation=[build_task(ROWS[3], limits=LIMITS)])
    return {name: [{k: v for k, v in e.items() if not k.startswith('seconds')} for e in read_journal(out/f'{name}.jsonl')]
            for name in ('rollouts', 'steps', 'evaluator', 'validation')}, tools.tools('gcd')


def weights(local): return {n: p.detach().clone() for n, p in local.model.named_parameters() if 'lora' in n}


def test_a_killed_run_goes_on_with_the_same_batch_pool_and_evaluator(model_dir, scripted, tmp_path):
    import torch
    first = load(model_dir)
    scripted(Script(first.tokenizer))
    add_evaluator(first.model)
    whole, tools = journey(first, tmp_path/'whole')
    assert [e['step'] for e in whole['evaluator']] == [2, 4] and [e['step'] for e in whole['validation']] == [2, 4] and len(tools) >= 1

    def die(figures):
        if figures['step'] == 4: raise Killed
    second = load(model_dir)
    add_evaluator(second.model)
    with pytest.raises(Killed): journey(second, tmp_path/'cut', die)
    ToolPool(tmp_path/'cut'/'pool.sqlite').admit('lcm', verify(GOOD).tool, .5)            # left over from the step that was cut off
    third = load(model_dir)
    add_evaluator(third.model)
    resumed, again = journey(third, tmp_path/'cut')
    assert resumed == whole and again == tools and 'lcm' not in ToolPool(tmp_path/'cut'/'pool.sqlite').sizes()
    mine, theirs = weights(first), weights(third)
    assert mine.keys() == theirs.keys() and all(torch.equal(mine[n], theirs[n]) for n in mine)
    best = json.loads((tmp_path/'cut'/'best.json').read_text())
    assert best['step'] in (2, 4) and (tmp_path/'cut'/'best'/'adapter_model.safetensors').is_file()
    load_adapter(third, tmp_path/'cut'/'best')


# ---- supervised training on kept conversations

def test_a_kept_conversation_has_the_ids_of_its_rollout(mixed):
    trainer, script, _ = mixed
    for r in trainer.play.rollouts[:6]:
        ids, mask = conversation_ids(script.tokenizer, r.trajectory.messages, r.seat.env.tools)
        assert ids == r.prompt_ids + r.completion_ids and mask == [0]*len(r.prompt_ids) + r.mask
