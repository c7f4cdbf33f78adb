# Sourced by the benchmarks: where the peers are, and figures out of lines of JSON.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=build/venv/bin/python
export CC=clang-19  # tinygrad's compiler on the CPU

# field NAME <JSON
field() { sed -n "s/.*\"$1\": \?\"\?\([0-9.]*\).*/\1/p"; }

# median NUMBER...
median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

# has_peer MODULE
has_peer() { "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)"; }

# compile_here SOURCE PROGRAM BUILD-FOLDER
compile_here() { g++ -std=c++20 -O1 -Iinclude -Iapps "$1" -o "$2" -L"$3/lib" -ltinygrad -Wl,-rpath,"$PWD/$3/lib"; }
