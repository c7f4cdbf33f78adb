# Fuzzers: tests/fuzzers/FORMAT.cpp is the program fuzz_FORMAT of libFuzzer, no part of a build; the target "fuzzers" is all of them and
# fuzz_seeds, which writes files to begin from. tools/fuzz runs them.
include_guard(GLOBAL)

option(TG_FUZZERS "Make libFuzzer's programs for the formats of files, where the compiler is clang" OFF)

# What they are to find their way through: readers of files, but not operators of models.
function(tg_instrument_readers)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/base/archive/*.cpp" "${PROJECT_SOURCE_DIR}/src/frontend/*.cpp")
  list(FILTER sources EXCLUDE REGEX "/(operators|quantized)/")
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS "-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp,indirect-calls")
endfunction()

function(tg_fuzzers)
  get_property(inside GLOBAL PROPERTY TG_LAST_ROOM)
  add_custom_target(fuzzers)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzzers/*.cpp")
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME_WE)
    add_executable(fuzz_${name} EXCLUDE_FROM_ALL "${source}")
    target_include_directories(fuzz_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_link_libraries(fuzz_${name} PRIVATE tg_options ${inside})
    if(NOT name STREQUAL "seeds")
      target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    endif()
    add_dependencies(fuzzers fuzz_${name})
  endforeach()
endfunction()
