# Precompiled headers: those of other people, which never change and take most of the time of a small file. Never our own: a source
# includes what it uses, and the clang presets build without (CMAKE_DISABLE_PRECOMPILE_HEADERS) to prove it.
include_guard(GLOBAL)

set(TG_PRECOMPILED
    <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <mutex> <optional> <span> <string>
    <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/core.h>)

add_compile_options("$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>")  # for ccache

# Gives target the precompiled headers of group (targets with the same options), which its first target makes; further headers: ARGN.
function(tg_precompile target group)
  get_property(maker GLOBAL PROPERTY TG_PRECOMPILED_${group})
  if(maker)
    target_precompile_headers(${target} REUSE_FROM ${maker})
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${TG_PRECOMPILED} ${ARGN})
  set_property(GLOBAL PROPERTY TG_PRECOMPILED_${group} ${target})
endfunction()
