# Precompiled headers: those of other people, which never change and take most of the time of a small file. Never our own: a source
# includes what it uses, and the clang presets build without (CMAKE_DISABLE_PRECOMPILE_HEADERS) to prove it.
include_guard(GLOBAL)

set(TG_PRECOMPILED
    <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <mutex> <optional> <span> <string>
    <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/core.h>)

add_compile_options("$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>")  # for ccache
