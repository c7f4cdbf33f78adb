# Libraries from the system; tools/setup installs all of them.
include_guard(GLOBAL)

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)  # headers only
find_package(CURL REQUIRED)           # headers only: the library is opened at run time
if(TG_BUILD_APPS)
  find_package(CLI11 REQUIRED)
endif()
if(TG_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

find_path(TG_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)  # header-only: used with XXH_INLINE_ALL
find_path(TG_PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp REQUIRED)  # header-only: the messages of ONNX

# LLVM is never linked and no C++ header of it is compiled: only the C API's declarations.
find_program(TG_LLVM_CONFIG NAMES llvm-config-19)
if(TG_LLVM_CONFIG)
  execute_process(COMMAND "${TG_LLVM_CONFIG}" --includedir OUTPUT_VARIABLE tg_llvm_dir OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
find_path(TG_LLVM_C_INCLUDE_DIR llvm-c/Core.h HINTS "${tg_llvm_dir}" REQUIRED)
