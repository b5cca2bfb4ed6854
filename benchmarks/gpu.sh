#!/usr/bin/env bash
# The CUDA device on this machine's GPU: the conformance kit, its tests, then figures as one table. Under four minutes;
# without a GPU it says so.
#
#   benchmarks/gpu.sh [FILE]      figures as JSON into FILE as well
#
# PYTHON names an interpreter that has Tenure, its tests' packages and a torch for the GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-.venv/bin/python}"

if ! "$python" -c 'import sys; from tenure.backends.cuda import engine; sys.exit(not engine.num_gpus())' 2>/dev/null; then
    echo "torch finds no GPU here: nothing was tested, nothing was measured"
    exit 0
fi
timeout 45 "$python" -c 'from tenure.cli import main; main()' conform \
    tenure.backends.conformance.torch_bench:make_cuda --only D --only L --only T2 --timeout 10
timeout 95 "$python" -m pytest -q -p no:cacheprovider -m gpu tests/gpu
timeout 95 "$python" benchmarks/gpu.py ${1:+--json "$1"}
