# Rooms: one library a folder of src/, linked to the rooms above it.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CheckLinkerFlag)

# Compiled for size: their time is small beside that of the compilers and kernels that they lead to. In the order of the rooms.
set(TG_SMALL_ROOMS spec target kernel ops renderer compiler search jit nn frontend)
# The same of other rooms: texts, files and settings, and what runs once for a schedule or a capture.
set(TG_SMALL_SOURCES base/options.cpp base/profile.cpp uop/print.cpp shape/listing.cpp tensor/compile_report.cpp
    schedule/finish_kernels.cpp schedule/gather_again.cpp schedule/looped_kernel.cpp schedule/repeat_kernels.cpp
    schedule/schedule.cpp schedule/select_shards.cpp schedule/shard.cpp schedule/share_kernels.cpp schedule/split_sums.cpp
    shape/sharding.cpp tensor/composites.cpp tensor/sharding.cpp uop/devices.cpp tensor/tensor.cpp tensor/random.cpp
    tensor/storage.cpp device/device.cpp device/registry.cpp base/dylib.cpp base/disk_cache.cpp)
list(APPEND TG_SMALL_SOURCES base/rethrow.cpp tensor/origin.cpp tensor/history.cpp
    tensor/index_check.cpp tensor/indexing.cpp tensor/views.cpp tensor/memory.cpp tensor/arithmetic.cpp tensor/backward.cpp
    tensor/variable.cpp schedule/online_reduce.cpp schedule/argument_cuts.cpp program/program.cpp
    program/stored_programs.cpp engine/prepared_constants.cpp engine/validation.cpp engine/launch.cpp
    codegen/codegen.cpp codegen/choose/pack_constants.cpp codegen/opt/parse_opts.cpp runtime/cpu/elf_loader.cpp)
# What only kernels of GPUs go through, and what runs once for a list of them.
list(APPEND TG_SMALL_SOURCES codegen/choose/group_heuristic.cpp codegen/choose/plan_opts.cpp
    codegen/choose/joined_loop.cpp codegen/lower/block_sums.cpp codegen/opt/tensor_core.cpp
    codegen/opt/stage_operand.cpp codegen/lower/use_images.cpp codegen/late/fetch_copies.cpp codegen/late/coalesce.cpp
    codegen/lower/pipeline_stages.cpp codegen/lower/stage_memory.cpp codegen/lower/lower_stages.cpp
    codegen/lower/assign_launch_dims.cpp codegen/decomp/emulate_long.cpp codegen/late/await_products.cpp
    codegen/late/use_tensor_memory.cpp codegen/late/product_chains.cpp codegen/late/use_tile_registers.cpp codegen/decomp/long_ops.cpp codegen/decomp/widen_integers.cpp device/queue.cpp
    engine/run.cpp engine/capture.cpp engine/host_segment.cpp engine/rank_plan.cpp device/rank_device.cpp comm/group.cpp comm/mpi.cpp comm/watch.cpp tensor/simulation.cpp
    codegen/decomp/transcendental.cpp codegen/lower/peel_ends.cpp
    codegen/lower/bound_loops.cpp target/target.cpp target/host.cpp target/host_core.cpp)
list(TRANSFORM TG_SMALL_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/src/")
foreach(source ${TG_SMALL_SOURCES})
  if(NOT EXISTS "${source}")
    message(FATAL_ERROR "cmake/TgRooms.cmake: there is no ${source}")
  endif()
endforeach()
# Backends that wait for drivers and processes.
foreach(backend cl cuda disk driver dsp emulated hip metal null webgpu)
  file(GLOB backend_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/runtime/${backend}/*.cpp")
  list(APPEND TG_SMALL_SOURCES ${backend_sources})
endforeach()
set_source_files_properties(${TG_SMALL_SOURCES} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>" SKIP_PRECOMPILE_HEADERS ON)

# What must round as the C of another library does, which was compiled without fused multiply-adds.
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/frontend/quantized/quantize.cpp" PROPERTIES COMPILE_OPTIONS -ffp-contract=off
                            SKIP_PRECOMPILE_HEADERS ON)

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
    set(precompiled tg_base)  # who has the precompiled headers: they are for one set of options
    if(name IN_LIST TG_SMALL_ROOMS)
      list(GET TG_SMALL_ROOMS 0 first)
      set(precompiled tg_${first})
      target_compile_options(tg_${name} PRIVATE "$<$<CONFIG:Release>:-Os>")
    endif()
    if(precompiled STREQUAL "tg_${name}")
      target_precompile_headers(tg_${name} PRIVATE ${TG_PRECOMPILED})
    else()
      target_precompile_headers(tg_${name} REUSE_FROM ${precompiled})
    endif()
    target_include_directories(tg_${name} SYSTEM PRIVATE ${arg_INCLUDES})
    set_property(GLOBAL APPEND PROPERTY TG_ROOM_OBJECTS "$<TARGET_OBJECTS:tg_${name}>")
    set_property(GLOBAL APPEND PROPERTY TG_ROOM_ARCHIVES "$<TARGET_FILE:tg_${name}>")
  else()
    add_library(tg_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(tg_${name} ${scope} "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(tg_${name} ${scope} tg_options ${above} ${arg_LIBS})
  set_property(GLOBAL PROPERTY TG_LAST_ROOM tg_${name})
  get_property(archives GLOBAL PROPERTY TG_ROOM_ARCHIVES)
  set_target_properties(tg_${name} PROPERTIES TG_ARCHIVES "${archives}")
endfunction()

# The libraries that users link, from the objects of every room: tinygrad is libtinygrad.so, of which only what is marked
# TINYGRAD_EXPORT can be seen from outside; tinygrad-static is libtinygrad.a.
function(tg_libraries)
  get_property(objects GLOBAL PROPERTY TG_ROOM_OBJECTS)
  get_target_property(link_options tg_options INTERFACE_LINK_OPTIONS)
  add_library(tinygrad SHARED ${objects})
  set_target_properties(tinygrad PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_link_libraries(tinygrad PRIVATE ${TG_LIBS_base})
  if(link_options)
    target_link_options(tinygrad PRIVATE ${link_options})
  endif()
  add_library(tinygrad-static STATIC ${objects})
  set_target_properties(tinygrad-static PROPERTIES OUTPUT_NAME tinygrad EXPORT_NAME static)
  target_link_libraries(tinygrad-static PRIVATE ${TG_LIBS_base})
  foreach(library tinygrad tinygrad-static)
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
    target_compile_features(${library} INTERFACE cxx_std_20)
    target_include_directories(${library} INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
                               "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  endforeach()
  add_library(tinygrad::tinygrad ALIAS tinygrad)
  add_library(tinygrad::static ALIAS tinygrad-static)
endfunction()

# tg-worker, which runs kernels that a search tries out; small, and with our library inside.
function(tg_worker)
  add_executable(tg-worker "${PROJECT_SOURCE_DIR}/apps/worker/main.cpp")
  target_link_libraries(tg-worker PRIVATE tg_search)
  target_link_options(tg-worker PRIVATE LINKER:--as-needed LINKER:--gc-sections)
endfunction()

# The program tg: apps/main.cpp over a library of everything else in apps/, which tests can link too. It sees what a user sees:
# libtinygrad.so and the public headers. tg-static is the same program with our library inside.
function(tg_apps)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/apps/*.cpp")
  set(main "${PROJECT_SOURCE_DIR}/apps/main.cpp")
  list(REMOVE_ITEM sources "${main}" "${PROJECT_SOURCE_DIR}/apps/worker/main.cpp" "${PROJECT_SOURCE_DIR}/apps/borders/main.cpp")
  add_library(tg_apps STATIC ${sources})
  target_include_directories(tg_apps PUBLIC "${PROJECT_SOURCE_DIR}/apps")
  target_link_libraries(tg_apps PUBLIC tg_options fmt::fmt nlohmann_json::nlohmann_json
                                PRIVATE ZLIB::ZLIB)
  set(options "$<$<CONFIG:Release>:-Os>")  # what takes time is in the library, but for what measures the machine
  target_compile_options(tg_apps PRIVATE ${options})
  foreach(measuring roofline exact)
    set_source_files_properties("${PROJECT_SOURCE_DIR}/apps/bench/${measuring}.cpp"
                                PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>" SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
  target_precompile_headers(tg_apps PRIVATE ${TG_PRECOMPILED} <nlohmann/json.hpp>)
  add_library(tg_main OBJECT "${main}")
  target_compile_options(tg_main PRIVATE ${options})
  target_link_libraries(tg_main PRIVATE tg_apps CLI11::CLI11)
  target_compile_definitions(tg_main PRIVATE TG_VERSION="${PROJECT_VERSION}")
  add_executable(tg $<TARGET_OBJECTS:tg_main>)
  target_link_libraries(tg PRIVATE tg_apps tinygrad)
  add_executable(tg-static $<TARGET_OBJECTS:tg_main>)
  target_link_libraries(tg-static PRIVATE tg_apps tinygrad-static)
  target_link_options(tg-static PRIVATE LINKER:--gc-sections)
  # Addresses that the loader has to move take a bit each, not 24 bytes; from glibc 2.36 on.
  get_target_property(CMAKE_REQUIRED_LINK_OPTIONS tg_options INTERFACE_LINK_OPTIONS)
  check_linker_flag(CXX LINKER:-z,pack-relative-relocs TG_PACKS_RELOCATIONS)
  if(TG_PACKS_RELOCATIONS)
    target_link_options(tg-static PRIVATE LINKER:-z,pack-relative-relocs)
  endif()
  # tg-borders shows what is inside of the compiler, so it is linked with the rooms.
  get_property(last_room GLOBAL PROPERTY TG_LAST_ROOM)
  add_executable(tg-borders "${PROJECT_SOURCE_DIR}/apps/borders/main.cpp")
  target_compile_options(tg-borders PRIVATE ${options})
  target_link_libraries(tg-borders PRIVATE ${last_room} CLI11::CLI11)
  target_link_options(tg-borders PRIVATE LINKER:--gc-sections)
  # The folder may be moved as a whole; data lies in share/tinygrad beside bin and lib.
  set_target_properties(tg tg-static PROPERTIES LINKER_LANGUAGE CXX BUILD_WITH_INSTALL_RPATH ON)
  set_target_properties(tg PROPERTIES INSTALL_RPATH "$ORIGIN/../lib:$ORIGIN/../${CMAKE_INSTALL_LIBDIR}:$ORIGIN")
  configure_file("${PROJECT_SOURCE_DIR}/data/digits.csv.gz" "${PROJECT_BINARY_DIR}/share/tinygrad/digits.csv.gz" COPYONLY)
endfunction()
