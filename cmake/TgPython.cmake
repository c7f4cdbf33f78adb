# The Python module: python/src/*.cpp is tinygrad_cpp._core with our library inside; python/tinygrad_cpp holds what is Python.
# `pip install .` sets TG_BUILD_PYTHON; in a build folder the package comes together in python/, for PYTHONPATH.
include_guard(GLOBAL)

function(tg_python)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_VARIABLE config OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${Python_EXECUTABLE} has no nanobind: pip install nanobind, or configure with -DTG_BUILD_PYTHON=OFF")
  endif()
  set(nanobind_DIR "${config}" CACHE PATH "Folder of nanobind's CMake files" FORCE)
  find_package(nanobind CONFIG REQUIRED)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/src/*.cpp")
  nanobind_add_module(tinygrad_python NB_STATIC NB_DOMAIN tinygrad_cpp ${sources})
  get_property(room GLOBAL PROPERTY TG_LAST_ROOM)
  target_link_libraries(tinygrad_python PRIVATE ${room})
  set_source_files_properties("${PROJECT_SOURCE_DIR}/python/src/module.cpp" PROPERTIES COMPILE_DEFINITIONS "TG_VERSION=\"${PROJECT_VERSION}\"")
  target_include_directories(tinygrad_python SYSTEM PRIVATE "${nanobind_DIR}/../include" ${Python_INCLUDE_DIRS})  # their warnings are not ours
  target_compile_options(tinygrad_python PRIVATE "$<$<CONFIG:Release>:-O1>"  # what takes time is in the library
                         "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")  # optionals in variants
  set(package "${PROJECT_BINARY_DIR}/python/tinygrad_cpp")
  set_target_properties(tinygrad_python PROPERTIES OUTPUT_NAME _core LIBRARY_OUTPUT_DIRECTORY "${package}")
  add_custom_command(TARGET tinygrad_python POST_BUILD COMMENT "Types of the Python module" COMMAND "${Python_EXECUTABLE}"
                     "${PROJECT_SOURCE_DIR}/python/make_stub.py" "${package}" "${package}/_core.pyi")
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/python/tinygrad_cpp" "${PROJECT_SOURCE_DIR}/python/tinygrad_cpp/*.py"
       "${PROJECT_SOURCE_DIR}/python/tinygrad_cpp/py.typed")
  foreach(file IN LISTS files)
    configure_file("${PROJECT_SOURCE_DIR}/python/tinygrad_cpp/${file}" "${package}/${file}" COPYONLY)
  endforeach()
  set(Python_EXECUTABLE "${Python_EXECUTABLE}" PARENT_SCOPE)
  add_custom_command(TARGET tinygrad_python POST_BUILD COMMAND "${CMAKE_COMMAND}" -E copy_if_different $<TARGET_FILE:tg-worker> "${package}")
  add_dependencies(tinygrad_python tg-worker)
  # A wheel is this component alone, whose folder is none of a prefix.
  install(TARGETS tinygrad_python LIBRARY DESTINATION tinygrad_cpp COMPONENT python EXCLUDE_FROM_ALL)
  install(TARGETS tg-worker RUNTIME DESTINATION tinygrad_cpp COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES "${package}/_core.pyi" DESTINATION tinygrad_cpp COMPONENT python EXCLUDE_FROM_ALL)
endfunction()
