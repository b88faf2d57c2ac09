"Recipes: those that come along, wrong ones refused before a model is read, one run from start to end, and TRL's own signatures"
import inspect, json
from dataclasses import fields, replace
from pathlib import Path

import pytest
import yaml
from test_rl_loop import model_dir as model_dir

from sandsmith.core import SpecError
from sandsmith.rl.backend import HfBackend, ModelSettings, UnslothBackend, load_backend
from sandsmith.rl.memory import CARDS_GB, find_shape, preset_for, shape_of
from sandsmith.rl.practice import check_recipe, deal_kinds, draw_tasks
from sandsmith.rl.recipe import grpo_settings, load_recipe, parse_recipe, recipe_names, recipes_dir
from sandsmith.rl.trainer import GrpoSettings, config_arguments
from sandsmith.run.cli import main


def tiny(folder: Path, **more) -> dict:
    data = yaml.safe_load((recipes_dir()/'tiny.yaml').read_text())
    for part, values in more.items(): data[part] = {**data.get(part, {}), **values} if isinstance(values, dict) else values
    return {**data, 'model': {**data['model'], 'path': str(folder), 'lora_layers': 2, 'lora_rank': 4, **more.get('model', {})}}


def run(*args) -> int:
    with pytest.raises(SystemExit) as stop: main([str(a) for a in args])
    return stop.value.code or 0


# ---- those that come along

@pytest.mark.parametrize('name', recipe_names())
def test_every_recipe_is_sound(name):
    recipe = load_recipe(name)
    if recipe.grpo: assert grpo_settings(recipe).n_steps == recipe.grpo.n_steps
    assert recipe.description


def test_papers_values():
    sandmle, smith, joint = map(load_recipe, ('sandmle', 'smith', 'joint'))
    g, s = sandmle.grpo, sandmle.tasks.sand
    assert (g.group_size, s.max_turns, s.timeout_s, g.lr, g.batch, g.epsilon_high, g.beta, g.temperature, g.n_steps) == (4, 20, 90, 1e-6, 16, .28, 0, 1., 100)
    assert sandmle.model.max_seq_tokens == 8192 + 32768 and g.max_completion_tokens == 32768
    g, b = smith.grpo, smith.tasks.build
    assert (smith.model.lora_rank, g.group_size, g.temperature, g.beta, g.n_steps, g.lr, b.evaluator, b.evaluator_every) == (64, 8, .7, .01, 60, 6e-5, 'model', 5)
    assert g.aggregation == 'per_component' and b.share == smith.tasks.use.share and g.n_prompts*g.group_size == 384
    assert joint.tasks.sand and joint.tasks.build and joint.tasks.use
    assert load_recipe('smith_no_sync').tasks.build.evaluator_every == 0 and load_recipe('smith_k1').tasks.build.n_hidden == 1
    assert load_recipe('smith_build_only').tasks.use is None and load_recipe('smith_no_judge').tasks.build.judge == 'none'
    assert load_recipe('sandmle_sparse').tasks.sand.preset == 'sparse' and load_recipe('sft_then_rl').sft and load_recipe('sft_then_rl').grpo


def test_kinds_keep_their_shares():
    for shares in ({'build': .5, 'use': .5}, {'build': 1., 'use': 1., 'sand': 2.}, {'sand': 3.}):
        kinds = deal_kinds(shares, 24)
        assert {k: kinds.count(k) for k in shares} == {k: round(24*v/sum(shares.values())) for k, v in shares.items()}


def test_prompts_are_a_pure_function_of_the_recipe(tmp_path):
    from sandsmith.smith.pool import ToolPool
    recipe, pool = load_recipe('tiny'), ToolPool(tmp_path/'pool.sqlite')
    draw = lambda split: [t.id for t in draw_tasks(recipe, 6, split=split, pool=pool, policy=None, board=None)]
    assert draw('train') == draw('train') and not set(draw('train')) & set(draw('heldout'))


# ---- wrong ones

@pytest.fixture
def unread(monkeypatch):
    "Reading weights would be an error."
    monkeypatch.setattr(HfBackend, 'load', lambda *_: pytest.fail('the model was read'))


@pytest.mark.parametrize('more, said', [
    ({'model': {'path': 'nowhere'}}, 'model.path: expected a Hugging Face model folder'),
    ({'model': {'chat_template': ''}}, 'set model.chat_template'),
    ({'model': {'load_in_4bit': True, 'use_vllm': True}}, 'set backend: unsloth'),
    ({'model': {'max_seq_tokens': 100}}, 'model.max_seq_tokens: expected room'),
    ({'grpo': {'batch': 5}}, 'multiple of group_size 2, got 5'),
    ({'grpo': {'temprature': 1.}}, 'no key grpo.temprature: did you mean temperature?'),
    ({'sft': {'source': 'nothing.jsonl'}}, 'sft.source: expected'),
    ({'backend': 'jax'}, 'backend'),
    ({'tasks': {'sand': {'corpus': 'nowhere'}}}, 'tasks.sand.corpus: expected a corpus')])
def test_bad_recipes_are_refused_before_the_model_is_read(model_dir, tmp_path, unread, capsys, more, said):
    path = tmp_path/'bad.yaml'
    path.write_text(yaml.safe_dump(tiny(model_dir, **more)))
    assert run('train', '--config', path, '--out', tmp_path/'run') == 2
    assert said in capsys.readouterr().err


def test_padding_that_is_the_end_token_is_refused(model_dir, tmp_path, unread):
    import shutil
    shutil.copytree(model_dir, tmp_path/'model')
    for name in ('tokenizer_config.json', 'special_tokens_map.json'):
        path = tmp_path/'model'/name
        if path.is_file(): path.write_text(path.read_text().replace('<|endoftext|>', '<|im_end|>'))
    with pytest.raises(SpecError, match='padding token other than the end token'): check_recipe(parse_recipe(tiny(tmp_path/'model')))


def test_unsloth_says_that_it_is_missing():
    with pytest.raises(Exception, match='make gpu'): load_backend('unsloth')


# ---- one run

def test_a_recipe_runs_from_start_to_end_and_goes_on(model_dir, tmp_path, capsys):
    path, out = tmp_path/'tiny.yaml', tmp_path/'run'
    path.write_text(yaml.safe_dump(tiny(model_dir)))
    assert run('train', '--config', path, '--out', out, '--json') == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found['sft_losses']) == 2 and [s['step'] for s in found['steps']] == [1, 2] and found['best']['step'] in (1, 2)
    assert (Path(found['adapter'])/'adapter_model.safetensors').is_file()
    kinds = [r['kind'] for line in (out/'grpo'/'rollouts.jsonl').read_text().splitlines() for r in json.loads(line)['rollouts']]
    assert kinds == ['build']*2 + ['use']*2 + ['build']*2 + ['use']*2
    assert run('train', '--config', path, '--out', out) == 2                                  # there is a run already
    assert 'go on with its run by --resume' in capsys.readouterr().err
    assert run('train', '--config', path, '--out', out, '--resume', '--json') == 0
    assert json.loads(capsys.readouterr().out) == found
    path.write_text(yaml.safe_dump(tiny(model_dir, seed=7)))
    assert run('train', '--config', path, '--out', out, '--resume') == 2
    assert "changed: ['seed']" in capsys.readouterr().err


# ---- memory

def test_larger_cards_hold_more():
    for name in ('smith', 'sandmle', 'joint'):
        recipe = load_recipe(name)
        found = [preset_for(recipe, gb, find_shape(recipe.model.path)) for gb in CARDS_GB]
        sizes = [f[0]['grpo']['max_completion_tokens'] if f else 0 for f in found]
        assert sizes == sorted(sizes) and sizes[-1] == recipe.grpo.max_completion_tokens
        assert all(f is None or f[1]['total'] <= .9*gb for f, gb in zip(found, CARDS_GB))


def test_parameters_are_counted_right(model_dir):
    from transformers import AutoModelForCausalLM
    n = AutoModelForCausalLM.from_pretrained(model_dir).num_parameters()
    assert abs(shape_of(json.loads((model_dir/'config.json').read_text())).n_params/n - 1) < .01


# ---- what TRL must accept

def test_trl_takes_every_argument_that_is_passed():
    from trl import GRPOConfig, GRPOTrainer, SFTConfig
    plain = GrpoSettings(n_steps=1)
    vllm = HfBackend().overrides(ModelSettings(path='x', use_vllm=True)) | {'use_cpu': False}
    for s, overrides in ((plain, HfBackend().overrides(ModelSettings(path='x'))), (replace(plain, micro_batch=4), vllm)):
        assert set(config_arguments(s, 'out', overrides)) <= {f.name for f in fields(GRPOConfig)}
    unsloth = UnslothBackend.overrides(None, ModelSettings(path='x', use_vllm=True))
    assert set(unsloth) <= {f.name for f in fields(GRPOConfig)} and 'max_length' in {f.name for f in fields(SFTConfig)}
    assert {'model', 'processing_class', 'args', 'train_dataset', 'reward_funcs', 'rollout_func', 'callbacks'} <= set(inspect.signature(GRPOTrainer.__init__).parameters)
    assert list(inspect.signature(GRPOTrainer._generate_single_turn).parameters)[1:5] == ['prompt_ids', 'images', 'multimodal_fields', 'num_generations']
    assert list(inspect.signature(GRPOTrainer._get_per_token_logps_and_entropies).parameters)[1:5] == ['model', 'input_ids', 'attention_mask', 'logits_to_keep']
    assert list(inspect.signature(GRPOTrainer.compute_loss).parameters)[1:] == ['model', 'inputs', 'return_outputs', 'num_items_in_batch']
    assert list(inspect.signature(GRPOTrainer._save_checkpoint).parameters)[1:] == ['model', 'trial']


def test_trl_still_has_what_sleep_mode_is_wrapped_around():
    import importlib.util
    source = Path(importlib.util.find_spec('trl').origin).with_name('generation')/'vllm_generation.py'
    text = source.read_text()
    for name in ('enable_sleep_mode', '_llm_weights_sleeping', 'def sync_weights', 'self.llm'): assert name in text, name
