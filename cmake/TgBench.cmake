# The programs of bench/, in build/release/bench/. They are no part of a build: bench/NAME/run builds those that it needs, and the target
# "bench" all for which libraries are installed (tools/setup --bench).
include_guard(GLOBAL)

# tg_bench(NAME SOURCES file... LIBS library...): a program of bench/, target bench_NAME.
function(tg_bench name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS;INCLUDES" ${ARGN})
  list(TRANSFORM arg_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/bench/")
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
  target_include_directories(bench_${name} PRIVATE "${PROJECT_SOURCE_DIR}/bench/common" "${PROJECT_SOURCE_DIR}/apps")
  target_include_directories(bench_${name} SYSTEM PRIVATE ${arg_INCLUDES})
  target_compile_options(bench_${name} PRIVATE "$<$<CONFIG:Release>:-O1>")  # what takes time is in the library
  target_link_libraries(bench_${name} PRIVATE tg_options ${arg_LIBS})
  add_dependencies(bench bench_${name})
endfunction()

function(tg_benchmarks)
  add_custom_target(bench)
  get_property(inside GLOBAL PROPERTY TG_LAST_ROOM)  # the library's insides
  foreach(name beside disk memory mnist_step model_files overheads replay shards startup)
    tg_bench(${name} SOURCES ${name}/${name}.cpp LIBS tinygrad)
  endforeach()
  tg_bench(shards_ranks SOURCES shards/ranks.cpp LIBS tinygrad ${CMAKE_DL_LIBS})
  tg_bench(fork_join SOURCES fork_join/fork_join.cpp LIBS tg_base)
  tg_bench(indexing SOURCES indexing/indexing.cpp LIBS ${inside})
  tg_bench(onnx_any_size SOURCES onnx/any_size.cpp LIBS tinygrad)
  tg_bench(kernels_ours SOURCES kernels/ours.cpp kernels/models.cpp LIBS tg_apps tinygrad)
  find_path(TG_OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES "${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread" openblas)
  find_library(TG_OPENBLAS openblas PATH_SUFFIXES openblas-pthread)
  find_library(TG_DNNL dnnl)
  mark_as_advanced(TG_OPENBLAS_INCLUDE TG_OPENBLAS TG_DNNL)
  if(TG_OPENBLAS AND TG_OPENBLAS_INCLUDE AND TG_DNNL)
    tg_bench(kernels_blas SOURCES kernels/blas.cpp LIBS "${TG_OPENBLAS}" "${TG_DNNL}" nlohmann_json::nlohmann_json INCLUDES "${TG_OPENBLAS_INCLUDE}")
  endif()
endfunction()
