# Rooms: one library a folder of src/, linked to the rooms above it.
include_guard(GLOBAL)

# The names in cmake/rooms.txt, in order.
function(tg_read_rooms out)
  set(file "${PROJECT_SOURCE_DIR}/cmake/rooms.txt")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(STRINGS "${file}" rooms REGEX "^[a-z]")
  set(${out} ${rooms} PARENT_SCOPE)
endfunction()

# Library tg_NAME from src/NAME/**/*.cpp, on top of all rooms declared before; INCLUDES are for its own sources only.
# A room of headers alone is an interface library.
function(tg_room name)
  cmake_parse_arguments(arg "" "" "LIBS;INCLUDES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cpp")
  get_property(above GLOBAL PROPERTY TG_LAST_ROOM)
  if(sources)
    add_library(tg_${name} STATIC ${sources})
    set(scope PUBLIC)
    tg_precompile(tg_${name} rooms)
    target_include_directories(tg_${name} SYSTEM PRIVATE ${arg_INCLUDES})
    set_property(GLOBAL APPEND PROPERTY TG_ROOM_OBJECTS "$<TARGET_OBJECTS:tg_${name}>")
  else()
    add_library(tg_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(tg_${name} ${scope} "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(tg_${name} ${scope} tg_options ${above} ${arg_LIBS})
  set_property(GLOBAL PROPERTY TG_LAST_ROOM tg_${name})
endfunction()

# libtinygrad.so from the objects of every room. Only what is marked TINYGRAD_EXPORT can be seen from outside.
function(tg_shared_library)
  get_property(objects GLOBAL PROPERTY TG_ROOM_OBJECTS)
  if(NOT objects)
    return()
  endif()
  add_library(tinygrad SHARED ${objects})
  set_target_properties(tinygrad PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(tinygrad INTERFACE "${PROJECT_SOURCE_DIR}/include")
  get_target_property(link_options tg_options INTERFACE_LINK_OPTIONS)
  if(link_options)
    target_link_options(tinygrad PRIVATE ${link_options})
  endif()
  target_link_libraries(tinygrad PRIVATE ${TG_LIBS_base})
endfunction()

# The program tg: apps/main.cpp over a library of everything else in apps/, which tests can link too. It sees what a user sees:
# libtinygrad.so and the public headers.
function(tg_apps)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/apps/*.cpp")
  set(main "${PROJECT_SOURCE_DIR}/apps/main.cpp")
  list(REMOVE_ITEM sources "${main}")
  add_library(tg_apps STATIC ${sources})
  target_include_directories(tg_apps PUBLIC "${PROJECT_SOURCE_DIR}/apps")
  target_link_libraries(tg_apps PUBLIC tg_options tinygrad fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json
                                PRIVATE PNG::PNG CURL::libcurl OpenSSL::Crypto ZLIB::ZLIB)
  tg_precompile(tg_apps apps <CLI/CLI.hpp> <nlohmann/json.hpp>)
  add_executable(tg "${main}")
  target_compile_definitions(tg PRIVATE TG_VERSION="${PROJECT_VERSION}")
  target_link_libraries(tg PRIVATE tg_apps)
  # The folder may be moved as a whole; data lies in share/tinygrad beside bin and lib.
  set_target_properties(tg PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib:$ORIGIN")
  configure_file("${PROJECT_SOURCE_DIR}/data/digits.csv.gz" "${CMAKE_BINARY_DIR}/share/tinygrad/digits.csv.gz" COPYONLY)
endfunction()
