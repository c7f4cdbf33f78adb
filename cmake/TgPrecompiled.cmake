# Precompiled headers: those of other people, which never change and take most of the time of a small file. Never our own: a source
# includes what it uses, and clang-tidy reads it without (preset lint) to prove it.
include_guard(GLOBAL)

set(TG_PRECOMPILED
    <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <mutex> <optional> <span> <string>
    <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/core.h>)

# For ccache: clang would write the time of each header, and refuse what was made from headers of another time.
add_compile_options("$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>" "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
