# Build options; every compiled target gets them through the interface library tg_options.
include_guard(GLOBAL)

# As part of another project (add_subdirectory, FetchContent) only the libraries are built.
option(TG_BUILD_APPS "Build the program tg" ${PROJECT_IS_TOP_LEVEL})
option(TG_BUILD_TESTS "Build the tests; they need TG_BUILD_APPS" ${PROJECT_IS_TOP_LEVEL})
option(TG_BUILD_PYTHON "Build the Python module; needs nanobind" OFF)
option(TG_INSTALL "Make the rules for cmake --install" ${PROJECT_IS_TOP_LEVEL})
option(TG_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
option(TG_VERIFY "Run the verifiers at each stage border by default" OFF)
set(TG_SANITIZE "" CACHE STRING "Value for -fsanitize=, empty for none")

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_OPTIMIZE_DEPENDENCIES ON)
set(CMAKE_COLOR_DIAGNOSTICS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")  # as CMake has it; what a user asks for stays
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")

add_library(tg_options INTERFACE)
target_include_directories(tg_options INTERFACE "${PROJECT_SOURCE_DIR}/include")
target_compile_options(tg_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Rule tables declare their captures (x, y, c) as a block; libstdc++ 12's stable_sort uses a deprecated function.
  target_compile_options(tg_options INTERFACE -Wno-unused-const-variable -Wno-deprecated-declarations)
endif()
if(TG_WERROR)
  target_compile_options(tg_options INTERFACE -Werror)
endif()
if(TG_VERIFY)
  target_compile_definitions(tg_options INTERFACE TINYGRAD_VERIFY=1)
endif()
if(TG_SANITIZE)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -gline-tables-only")  # reports name functions and lines
  target_compile_options(tg_options INTERFACE "-fsanitize=${TG_SANITIZE}" -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(tg_options INTERFACE "-fsanitize=${TG_SANITIZE}")
endif()

# What is kept in the disk cache under a kernel's graph holds for one build (base/build_id.h).
target_link_options(tg_options INTERFACE "LINKER:--build-id=sha1")

find_program(TG_MOLD mold)
find_program(TG_LLD NAMES ld.lld-19 ld.lld)
if(TG_MOLD)
  target_link_options(tg_options INTERFACE -fuse-ld=mold)
elseif(TG_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_link_options(tg_options INTERFACE "--ld-path=${TG_LLD}")
endif()
