"""The work of gpu_check.sh: a small Qwen3-shaped model, the recipe `tiny` on it by each backend that is here, and what a step took.

    python scripts/gpu_check.py OUT"""
import importlib.util, json, shutil, subprocess, sys, time
from pathlib import Path


def make_model(out: Path, is_small: bool) -> None:
    "A model of Qwen3's shape with random weights, and a tokenizer of bytes."
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ['<|endoftext|>', '<|im_start|>', '<|im_end|>']
    bpe.train_from_iterator(['def solve(numbers): return'], trainers.BpeTrainer(
        vocab_size=512, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tok = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token='<|im_end|>', pad_token='<|endoftext|>', padding_side='left')
    tok.chat_template = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    torch.manual_seed(0)
    size = dict(hidden_size=128, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4) if is_small else dict(
        hidden_size=1024, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=16)
    config = Qwen3Config(vocab_size=len(tok), num_key_value_heads=4, head_dim=64, max_position_embeddings=4096, tie_word_embeddings=True,
                         eos_token_id=tok.eos_token_id, pad_token_id=tok.pad_token_id, bos_token_id=None, **size)
    Qwen3ForCausalLM(config).save_pretrained(out)
    tok.save_pretrained(out)


def check(backend: str, model: Path, out: Path) -> None:
    "Train by one backend, in this process."
    if backend == 'unsloth': import unsloth # noqa: F401 before everything else
    import torch
    from sandsmith.rl.practice import run_recipe
    from sandsmith.rl.recipe import load_recipe, parse_recipe
    tiny = load_recipe('tiny').model_dump()
    grpo = tiny['grpo'] | {'batch': 16, 'group_size': 8, 'n_steps': 3, 'max_new_tokens': 64, 'max_completion_tokens': 256}
    recipe = parse_recipe(tiny | {'backend': backend, 'model': tiny['model'] | {'path': str(model)}, 'grpo': grpo})
    shutil.rmtree(out, ignore_errors=True)
    began = time.perf_counter()
    found = run_recipe(recipe, out)
    seconds, has_gpu = sum(s['seconds'] for s in found['steps']), torch.cuda.is_available()
    told = {'backend': backend, 'device': torch.cuda.get_device_name(0) if has_gpu else 'cpu', 'torch': torch.__version__,
            'seconds': round(time.perf_counter() - began, 1), 'steps': len(found['steps']),
            'seconds_a_step': round(seconds/len(found['steps']), 2),
            'shares': {part: round(sum(s[f'seconds_{part}'] for s in found['steps'])/seconds, 3) for part in ('sampling', 'environment')},
            'tokens_a_second': round(sum(s['mean_tokens']*s['n'] for s in found['steps'])/seconds, 1),
            'peak_gb': round(torch.cuda.max_memory_allocated()/2**30, 2) if has_gpu else None,
            'checked': 'masks, sampler and ids, before step 1 and at every step'}
    print(json.dumps(told, indent=1))
    (out/'check.json').write_text(json.dumps(told))


def main() -> int:
    out = Path(sys.argv[1]).absolute()
    if len(sys.argv) > 2:
        check(sys.argv[2], out/'model', out/sys.argv[2])
        return 0
    missing = [name for name in ('trl', 'datasets', 'peft', 'transformers') if importlib.util.find_spec(name) is None]
    if missing:
        print(f'expected the packages {", ".join(missing)}: pip install --no-index --find-links FOLDER {" ".join(missing)}')
        return 1
    import torch
    if not (out/'model'/'config.json').is_file(): make_model(out/'model', is_small=not torch.cuda.is_available())
    backends = ['hf', *(['unsloth'] if importlib.util.find_spec('unsloth') and torch.cuda.is_available() else [])]
    return max(subprocess.run([sys.executable, __file__, str(out), backend]).returncode for backend in backends)


if __name__ == '__main__': sys.exit(main())
