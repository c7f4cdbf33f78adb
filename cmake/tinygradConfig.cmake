# find_package(tinygrad): the target tinygrad::tinygrad, libtinygrad.so, which needs nothing else to link with; and tinygrad::static,
# libtinygrad.a, where the development files of what it is linked with are installed too.
include("${CMAKE_CURRENT_LIST_DIR}/tinygradShared.cmake")

set(tinygrad_static_FOUND TRUE)
foreach(library Threads fmt SQLite3 ZLIB)
  find_package(${library} QUIET)
  if(NOT ${library}_FOUND)
    set(tinygrad_static_FOUND FALSE)
  endif()
endforeach()
if(tinygrad_static_FOUND)
  include("${CMAKE_CURRENT_LIST_DIR}/tinygradStatic.cmake")
elseif(tinygrad_FIND_REQUIRED_static)
  set(tinygrad_FOUND FALSE)
  set(tinygrad_NOT_FOUND_MESSAGE "tinygrad::static needs the development files of Threads, fmt, SQLite3 and ZLIB")
endif()
