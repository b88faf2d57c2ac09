#!/usr/bin/env bash
# What a machine with an NVIDIA GPU is asked, in a few minutes: does the trainer run there by the same path as on a CPU?
#   scripts/gpu_check.sh [OUT]     OUT gets doctor.json, train.log and the records; the environment is .venv, made by `make run` or `make install`
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-reports/gpu-check}
mkdir -p "$out"
nvidia-smi --query-gpu=name,memory.total --format=csv,noheader | tee "$out/gpu.txt"
.venv/bin/sandsmith doctor --json >"$out/doctor.json" || true
.venv/bin/python - <<'PY'
import torch
assert torch.cuda.is_available(), 'torch sees no GPU: install its CUDA build (make run TORCH_INDEX=…)'
print(torch.__version__, torch.cuda.get_device_name(0))
PY
# the quickstart's training with two GRPO steps: model, supervised start, GRPO, held-out answers
time .venv/bin/sandsmith run --profile quickstart --out "$out/run" -p n_tasks=3 -p n_rows=2 -p grpo_steps=2 -p n_heldout=4 2>&1 | tee "$out/train.log"
