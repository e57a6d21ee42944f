#!/usr/bin/env bash
# The quick tests with the lowest versions that pyproject.toml allows, in an environment of its own.
# It downloads packages, so it is run by hand or nightly. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

place=.venv-lowest
if [[ ! -x "$place/bin/python" ]]; then
  "${PYTHON:-python3}" -m venv "$place"
fi
"$place/bin/python" scripts/lowest.py > "$place/constraints.txt"
"$place/bin/python" -m pip install --quiet --disable-pip-version-check \
  -c "$place/constraints.txt" -e '.[parquet]' hypothesis lightgbm pytest xgboost-cpu
"$place/bin/python" -m pip list --format=freeze --disable-pip-version-check

tests=("$@")
if [[ ${#tests[@]} -eq 0 ]]; then
  tests=(tests/table tests/model tests/rules tests/planning tests/advice tests/apps/test_start.py)
fi
OMP_NUM_THREADS=1 "$place/bin/python" -m pytest -m "not slow" "${tests[@]}"
