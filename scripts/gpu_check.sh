#!/usr/bin/env bash
# What a machine with an NVIDIA GPU is asked, in a few minutes: does the trainer run there by the same path as on a CPU?
#   scripts/gpu_check.sh [OUT]     OUT gets doctor.json, the recipe and the run. PYTHON names an interpreter that has the packages; by default .venv's.
# Without a network: it makes its own small model. Without a GPU it says so, and checks itself on the CPU.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:-reports/gpu-check}" && cd "${1:-reports/gpu-check}" && pwd)
python=${PYTHON:-.venv/bin/python}
[ -x "$python" ] || python=$(command -v python3)
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
nvidia-smi --query-gpu=name,memory.total --format=csv,noheader 2>/dev/null | tee "$out/gpu.txt" || echo 'no GPU: checking on the CPU'
"$python" scripts/gpu_check.py "$out"
