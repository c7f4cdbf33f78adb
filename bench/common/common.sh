# Sourced by the benchmarks: where the peers are, and figures out of lines of JSON.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=build/venv/bin/python
export PYTHONPATH=$PWD/bench/common${PYTHONPATH:+:$PYTHONPATH}
export CC=clang-19  # tinygrad's compiler on the CPU

# field NAME <JSON
field() { sed -n "s/.*\"$1\": \?\"\?\([0-9.]*\).*/\1/p"; }

# median NUMBER...
median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

# has_peer MODULE
has_peer() { [ -x "$python" ] && "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)"; }

# build_programs BUILD-FOLDER NAME...: programs of cmake/TgBench.cmake, which lie in BUILD-FOLDER/bench
build_programs() {
  local said
  said=$(cmake --build "$1" --target "${@:2}" 2>&1) || { echo "$said" >&2; exit 1; }
}
