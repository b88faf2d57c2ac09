"""The five-seed study: train as the quickstart does, once a seed, and keep what came of it in data/study/.

    python scripts/study.py [--seeds 0 1 2 3 4] [--out reports/study]

A study that was stopped goes on where it was. Each seed takes about as long as the quickstart's stage `train`."""
import argparse, json, os
from dataclasses import fields
from pathlib import Path

os.environ |= {'HF_HUB_OFFLINE': '1', 'TOKENIZERS_PARALLELISM': 'false'}

import polars as pl

from sandsmith.core import checkout_dir, write_atomic
from sandsmith.look.frames import pair_prompts
from sandsmith.rl.train import TrainSettings, run_training
from sandsmith.run.parameters import load_profile, load_stages, resolve_parameters
from sandsmith.stats import paired_interval


def settings_of(seed: int) -> TrainSettings:
    "The quickstart's settings of stage `train`, with another seed."
    values = resolve_parameters(load_stages(), load_profile('quickstart'), {'seed': str(seed)})['train']
    known = {f.name for f in fields(TrainSettings)}
    return TrainSettings(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k in known})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seeds', type=int, nargs='+', default=[0, 1, 2, 3, 4])
    parser.add_argument('--out', type=Path, default=checkout_dir()/'reports'/'study')
    args = parser.parse_args()
    steps, heldout = [], []
    for seed in args.seeds:
        print(f'seed {seed}', flush=True)
        run = run_training(settings_of(seed), args.out/f'seed-{seed}',
                           on_step=lambda f: print(f"  step {f['step']}: reward {f['reward']:.2f}", flush=True))
        pairs = pair_prompts(pl.DataFrame(run.heldout, infer_schema_length=None), 'sft', 'grpo')
        change, low, high = paired_interval(pairs['before'].to_list(), pairs['after'].to_list(), seed=seed)
        print(f'  held-out env_reward {change:+.2f} [{low:+.2f}, {high:+.2f}]', flush=True)
        steps += [{'seed': seed, **s} for s in run.steps]
        heldout += [{'seed': seed, **{k: v for k, v in h.items() if k not in ('response', 'sample')}} for h in run.heldout]
    out = checkout_dir()/'data'/'study'
    for name, rows in (('steps', steps), ('heldout', heldout)):
        write_atomic(out/f'{name}.csv', pl.DataFrame(rows).write_csv(float_precision=5))
    write_atomic(out/'settings.json', json.dumps({f.name: getattr(settings_of(args.seeds[0]), f.name) for f in fields(TrainSettings)
                                                  if f.name != 'seed'} | {'seeds': args.seeds}, indent=2) + '\n')


if __name__ == '__main__': main()
