# Compiler choice and ccache. Included before project(), while the choice is still open.
include_guard(GLOBAL)

option(TG_USE_CLANG "Compile with clang++-19 when it is installed" OFF)

if(TG_USE_CLANG AND NOT DEFINED CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
  find_program(TG_CLANGXX NAMES clang++-19)
  if(TG_CLANGXX)
    set(CMAKE_CXX_COMPILER "${TG_CLANGXX}" CACHE FILEPATH "C++ compiler")
  else()
    message(STATUS "clang++-19 not found, using the system's compiler")
  endif()
endif()

find_program(TG_CCACHE ccache)
if(TG_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the source folder, so that clones at different places share results; the sloppiness is what
  # precompiled headers ask of ccache.
  set(env "CCACHE_BASEDIR=${CMAKE_CURRENT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env ${env} "${TG_CCACHE}")
endif()
