# Tests: tests/ROOM/**/*.cpp is the executable test_ROOM; a folder of a kind below (tests/ROOM/fuzz, ...) is one of its own.
# tests/apps links the apps, tests/public what a user has: libtinygrad.so and the public headers; tests/package holds whole projects;
# tests/docs checks pages of docs/.
include_guard(GLOBAL)

set(TG_TESTS "" CACHE STRING
    "Tests to make: executables without their test_, single files of them, and labels (base;tensor_backend/disk_test;fuzz), empty for all")

set(TG_TEST_SHARDS 0 CACHE STRING
    "Processes that the tests of an executable, but deep ones, are dealt out to; 0: one for each test. Under a sanitizer one takes long to begin")
set(TG_TEST_SHARE 1 CACHE STRING "Of how many cases of a sampled test these processes look at one")

# Graphs of a million nodes are about recursion and time, and take minutes under a sanitizer with verifiers.
set(TG_NOT_IN_SHARDS *Million*)

# Folder name = CTest label; everything else is "unit".
set(TG_TEST_KINDS fuzz error backend app oracle corpus long)

set(TG_TEST_COMPILE_OPTIONS -O0)  # what is tested is in the libraries, except:
set(TG_OPTIMIZED_TESTS dtype runtime schedule)  # these compute what to expect millions of times

# A driver without its hardware, tests/support/fake_NAME/, as the library TG_FAKE_NAME. Further arguments are libraries that it needs.
function(tg_fake_driver target name)
  if(NOT TARGET fake_${name})
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/fake_${name}/*.cpp")
    add_library(fake_${name} SHARED ${sources})
    target_link_libraries(fake_${name} PRIVATE tg_options ${ARGN})
    target_include_directories(fake_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  endif()
  string(TOUPPER ${name} upper)
  target_compile_definitions(${target} PRIVATE TG_FAKE_${upper}="$<TARGET_FILE:fake_${name}>")
  add_dependencies(${target} fake_${name})
endfunction()

# Sets `out` to those of an executable's sources that TG_TESTS has.
function(tg_chosen_sources out name label)
  set(chosen "")
  foreach(source IN LISTS ARGN)
    get_filename_component(file "${source}" NAME_WE)
    if(NOT TG_TESTS OR name IN_LIST TG_TESTS OR label IN_LIST TG_TESTS OR "${name}/${file}" IN_LIST TG_TESTS)
      list(APPEND chosen "${source}")
      set_property(GLOBAL APPEND PROPERTY TG_TESTS_MADE "${name}/${file}")
    endif()
  endforeach()
  set(${out} "${chosen}" PARENT_SCOPE)
endfunction()

# Sets `out` to the lines of tests/deep.txt for an executable, each without its name.
function(tg_deep_lines out target)
  set(file "${PROJECT_SOURCE_DIR}/tests/deep.txt")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(STRINGS "${file}" lines REGEX "^${target} ")
  list(TRANSFORM lines REPLACE "^${target} +" "")
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

# Tests of an executable that tests/deep.txt names: they have the label "deep", and are run as the words behind their filters say.
# `others` gets the filter of all other tests.
function(tg_deep_tests target label others)
  tg_deep_lines(lines ${target})
  foreach(list all sampled together shares)
    set(${list} "")
  endforeach()
  foreach(line IN LISTS lines)
    string(REPLACE " " ";" words "${line}")
    list(POP_FRONT words filter)
    list(APPEND all "${filter}")
    if("sampled" IN_LIST words)
      list(APPEND sampled "${filter}")
    endif()
    if("together" IN_LIST words)
      list(APPEND together "${filter}")
    elseif(words MATCHES "1/([0-9]+)")
      list(APPEND shares ${CMAKE_MATCH_1})
      list(APPEND share_${CMAKE_MATCH_1} "${filter}")
    else()
      list(APPEND shares 1)
      list(APPEND share_1 "${filter}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES shares)
  set(how TEST_PREFIX "${target}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
  foreach(share IN LISTS shares)
    list(JOIN share_${share} ":" filter)
    gtest_discover_tests(${target} TEST_FILTER "${filter}" TEST_LIST ${target}_DEEP_${share} ${how}
                         PROPERTIES LABELS deep ENVIRONMENT TG_TEST_SAMPLE=${share})
  endforeach()
  if(together)
    list(JOIN together ":" filter)
    add_test(NAME ${target}.together COMMAND ${target} "--gtest_filter=${filter}")
    set_tests_properties(${target}.together PROPERTIES LABELS deep)
  endif()
  if(sampled)
    list(JOIN sampled ":" filter)
    gtest_discover_tests(${target} TEST_FILTER "${filter}" TEST_LIST ${target}_SAMPLED TEST_SUFFIX .sampled ${how}
                         PROPERTIES LABELS "${label}" ENVIRONMENT TG_TEST_SAMPLE=8)
  endif()
  list(JOIN all ":" filter)
  set(${others} "*-${filter}" PARENT_SCOPE)
endfunction()

function(tg_add_test target label room)
  string(REGEX REPLACE "^test_" "" name ${target})
  tg_chosen_sources(sources ${name} ${label} ${ARGN})
  if(NOT sources)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY TG_TESTS_MADE ${name} ${label})
  add_executable(${target} ${sources})
  if(room IN_LIST TG_OPTIMIZED_TESTS)
    target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-O1>")
  else()
    target_compile_options(${target} PRIVATE ${TG_TEST_COMPILE_OPTIONS})
    if(NOT room MATCHES "^(apps|public)$")  # other definitions, and what a user has
      target_precompile_headers(${target} REUSE_FROM tests_precompiled)
    endif()
  endif()
  if(room STREQUAL "apps")
    set(libs tg_apps tinygrad)
  elseif(room STREQUAL "public")
    set(libs tinygrad)
  elseif(room STREQUAL "tensor")  # what tensors do is tried in jitted functions, too
    set(libs tg_jit)
  elseif(room STREQUAL "codegen")  # what kernels compute is the same with all opts
    set(libs tg_program)
  elseif(TARGET tg_${room})
    set(libs tg_${room})
  else()
    get_property(libs GLOBAL PROPERTY TG_LAST_ROOM)
  endif()
  if(room STREQUAL "corpus")  # the models of the apps, on the library's insides
    list(PREPEND libs tg_apps)
  endif()
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:tests_record>)
  target_link_libraries(${target} PRIVATE tg_options ${libs} GTest::gtest_main)
  list(GET libs -1 library)
  tg_link_optimized_first(${target} ${library})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${target} PRIVATE TINYGRAD_DATA_DIR="${PROJECT_SOURCE_DIR}/data")
  tg_find_test_libraries(${target})
  if(room STREQUAL "corpus")
    target_compile_definitions(${target} PRIVATE TG_RECORD_FOLDER="${PROJECT_SOURCE_DIR}/tests/corpus/record")
  endif()
  if(room STREQUAL "apps")
    target_compile_definitions(${target} PRIVATE TG_PROGRAM="$<TARGET_FILE:tg>")
    add_dependencies(${target} tg)
  endif()
  if(room STREQUAL "runtime" AND label STREQUAL "backend")
    set(machine "${PROJECT_SOURCE_DIR}/tests/support/fake_cuda")
    target_sources(${target} PRIVATE "${machine}/ptx_machine.cpp" "${machine}/ptx_tensor_cores.cpp")
  endif()
  if(room STREQUAL "tensor" AND label STREQUAL "backend")
    tg_fake_driver(${target} cuda tg_target)
    tg_fake_driver(${target} half_cuda)
  endif()
  if(room STREQUAL "runtime" AND label STREQUAL "unit")
    tg_fake_driver(${target} hip)
    tg_fake_driver(${target} opencl)
  endif()
  if(room STREQUAL "compiler")
    tg_fake_driver(${target} old_nvrtc)
  endif()
  if(room STREQUAL "search")
    add_dependencies(${target} tg-worker)
  endif()
  if(TG_TEST_SHARDS)
    tg_deep_lines(deep ${target})
    list(TRANSFORM deep REPLACE " .*" "")
    list(JOIN deep ":" deep)
    math(EXPR last "${TG_TEST_SHARDS} - 1")
    foreach(shard RANGE ${last})
      add_test(NAME ${target}.${shard} COMMAND ${target} --gtest_brief=1)
      set_tests_properties(${target}.${shard} PROPERTIES LABELS "${label}"
                           ENVIRONMENT "GTEST_FILTER=*-${TG_NOT_IN_SHARDS}:${deep};GTEST_TOTAL_SHARDS=${TG_TEST_SHARDS};GTEST_SHARD_INDEX=${shard};TG_TEST_SAMPLE=${TG_TEST_SHARE}")
    endforeach()
  else()
    tg_deep_tests(${target} "${label}" others)
    gtest_discover_tests(${target} TEST_PREFIX "${target}." TEST_FILTER "${others}" DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS "${label}")
  endif()
  add_dependencies(tests ${target})
  tg_add_rank_tests(${target})
endfunction()

# Tests whose processes are ranks, each in a group of its own, since a group that has failed stays so: a name, how many ranks, and a filter.
# "isolated" is for one machine: else mpirun wants an ssh.
set(TG_RANK_TESTS_test_tensor
    "sharding 4 Sharding.*-Sharding.ShowsWhoHasWhat:Sharding.CanBeCancelled:Sharding.RefusesWhatCannotBe"
    "one_of_them 4 Ranks.ReadAndWriteWhatIsOnOneOfThem"
    "different_programs 4 Ranks.RefuseDifferentPrograms"
    "memory 2 Ranks.SendAndReceiveInMemoryThatIsUsedAgain"
    "reports 2 Ranks.CompileAndRenderWhatRunsOnOthers"
    "gradients 4 Ranks.HaveGradientsOfWhatIsOnOneOfThem"
    "random 4 Ranks.DrawTheSameNumbersWithoutASeed"
    "different_numbers 2 Ranks.NoteDifferentNumbers"
    "late 4 Ranks.NameOneThatIsLate")
set(TG_RANK_TESTS_test_frontend "checkpoint 3 Checkpoint.IsSavedByRanksTogether")
set(TG_RANK_TESTS_test_nn "parallel 4 Parallel.*-Parallel.RefusesWhatCannotBe:Parallel.GathersAgainInsteadOfKeeping:Parallel.TensorsWithTwoNamesAreOne:Parallel.What*"
    "lost 3 Parallel.WhatFollowsALostRankIsAnError")
set(TG_RANK_TESTS_test_apps_app "mnist 4 ShardedTraining.OfMnist" "resnet 2 ShardedTraining.OfResNet18")

function(tg_add_rank_tests target)
  find_program(TG_MPIRUN mpirun)
  if(NOT TG_MPIRUN OR TG_SANITIZE)  # OpenMPI's library has leaks and races of its own
    return()
  endif()
  set(run "${CMAKE_COMMAND}" -E env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated "${TG_MPIRUN}" --oversubscribe)
  foreach(test IN LISTS TG_RANK_TESTS_${target})
    string(REPLACE " " ";" test "${test}")
    list(GET test 0 name)
    list(GET test 1 count)
    list(GET test 2 filter)
    set(options "")
    if(name STREQUAL lost)  # mpirun does not end the others
      set(options --enable-recovery --mca orte_abort_on_non_zero_status 0)
    endif()
    add_test(NAME ranks.${name} COMMAND ${run} ${options} -n ${count} "$<TARGET_FILE:${target}>" "--gtest_filter=${filter}" --gtest_brief=1)
    set_tests_properties(ranks.${name} PROPERTIES LABELS backend)
    if(name MATCHES "late|different_numbers|lost")  # mpirun reports that ranks have left
      set_tests_properties(ranks.${name} PROPERTIES PASS_REGULAR_EXPRESSION "PASSED" FAIL_REGULAR_EXPRESSION "FAILED|Failure|Signal:")
    endif()
  endforeach()
endfunction()

# Puts the archives of a room, and of those below, before the objects of a test: of functions that both have inlined or instantiated, the
# linker then takes the library's, which are optimized. (With the tests' own, kernels were evaluated 2.4 times slower.)
function(tg_link_optimized_first target library)
  get_target_property(archives ${library} TG_ARCHIVES)
  if(archives)
    target_link_options(${target} PRIVATE LINKER:--whole-archive ${archives} LINKER:--no-whole-archive)
  endif()
endfunction()

# What runs in the build folder finds there what tools/venv --webgpu installed.
function(tg_find_test_libraries)
  set_property(TARGET ${ARGN} APPEND PROPERTY BUILD_RPATH "${PROJECT_SOURCE_DIR}/build/venv/lib")
endfunction()

# A target for the precompiled headers of the tests: taken from one of them, they would make the others wait for it.
function(tg_precompile_for_tests)
  set(source "${PROJECT_BINARY_DIR}/tests_precompiled.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// Here for its precompiled headers.\n")
  add_library(tests_precompiled OBJECT "${source}")
  target_link_libraries(tests_precompiled PRIVATE tg_options fmt::fmt GTest::gtest)
  set_target_properties(tests_precompiled PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(tests_precompiled PRIVATE ${TG_TEST_COMPILE_OPTIONS} -fPIE)  # as executables are compiled
  target_precompile_headers(tests_precompiled PRIVATE ${TG_PRECOMPILED} <gtest/gtest.h>)
endfunction()

# In every test: what it was and which devices it used, for tools/backends; what sanitizers are told.
function(tg_record_tests)
  add_library(tests_record OBJECT "${PROJECT_SOURCE_DIR}/tests/support/record.cpp" "${PROJECT_SOURCE_DIR}/tests/support/sanitizers.cpp")
  target_link_libraries(tests_record PRIVATE tg_options GTest::gtest nlohmann_json::nlohmann_json)
  target_compile_options(tests_record PRIVATE ${TG_TEST_COMPILE_OPTIONS})
endfunction()

# Every public header compiles alone.
function(tg_check_public_headers)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/include/*.h")
  foreach(header IN LISTS headers)
    string(REPLACE "/" "_" name "${header}")
    set(source "${PROJECT_BINARY_DIR}/public_headers/${name}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include <${header}>\n#include <${header}>\n")
    list(APPEND sources "${source}")
  endforeach()
  add_library(public_headers OBJECT ${sources})
  target_link_libraries(public_headers PRIVATE tg_options)
  add_dependencies(tests public_headers)
endfunction()

# What users write must compile, or be refused in a line; and nothing of the library is destroyed at exit, when objects of users still compute.
function(tg_test_programs)
  set(folder "${PROJECT_SOURCE_DIR}/tests/package")
  add_test(NAME package.refused COMMAND "${CMAKE_COMMAND}" "-DCXX=${CMAKE_CXX_COMPILER}" "-DINCLUDE=${PROJECT_SOURCE_DIR}/include"
           "-DSOURCE=${folder}/refused/refused.cpp" -P "${folder}/refused/refused.cmake")
  tg_read_rooms(rooms)
  set(libraries "")
  foreach(room IN LISTS rooms)
    get_target_property(type tg_${room} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND libraries "$<TARGET_FILE:tg_${room}>")
    endif()
  endforeach()
  add_test(NAME package.exit COMMAND "${CMAKE_COMMAND}" "-DNM=${CMAKE_NM}" "-DLIBRARIES=${libraries}" -P "${folder}/exit.cmake")
  set_tests_properties(package.refused package.exit PROPERTIES LABELS package)
endfunction()

# What users do with the library: each folder of tests/package/ is a project of theirs, built and run from outside, three of them
# against what cmake --install leaves.
function(tg_test_packaging)
  set(dir "${PROJECT_BINARY_DIR}/package")
  set(options -DCMAKE_PREFIX_PATH=${dir}/prefix "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}")
  add_test(NAME package.install COMMAND "${CMAKE_COMMAND}" --install "${PROJECT_BINARY_DIR}" --prefix "${dir}/prefix" --strip)
  add_test(NAME package.install_places COMMAND "${CMAKE_COMMAND}" "-DPREFIX=${dir}/prefix" -P "${PROJECT_SOURCE_DIR}/tests/package/places.cmake")
  set_tests_properties(package.install_places PROPERTIES FIXTURES_REQUIRED tg_installed LABELS package)
  add_test(NAME package.installed_program COMMAND "${dir}/prefix/bin/tg" train digits --epochs 1 --png "")
  add_test(NAME package.installed_worker COMMAND "${dir}/prefix/bin/tg" bench matmul --size 200 --budget 0.1)
  set_tests_properties(package.installed_worker PROPERTIES FIXTURES_REQUIRED tg_installed PASS_REGULAR_EXPRESSION "BEAM r_200_200_200"
                       ENVIRONMENT "BEAM=1;IGNORE_BEAM_CACHE=1;DEBUG=1")
  set_tests_properties(package.install PROPERTIES FIXTURES_SETUP tg_installed)
  set_tests_properties(package.installed_program PROPERTIES FIXTURES_REQUIRED tg_installed)
  foreach(how find_package static add_subdirectory fetch_content toy_device)
    set(program hello)
    if(how STREQUAL "toy_device")
      set(program toy_device)
    endif()
    set(type -DCMAKE_BUILD_TYPE=Release)
    if(how MATCHES "add_subdirectory|fetch_content")  # these compile the library once more: as fast as can be, and for one of them a part
      set(type -DCMAKE_BUILD_TYPE=)
    endif()
    set(then --test-command ${program})
    if(how STREQUAL "add_subdirectory")
      set(then --build-target tg_base)
    endif()
    add_test(NAME package.${how} COMMAND "${CMAKE_CTEST_COMMAND}" --build-and-test "${PROJECT_SOURCE_DIR}/tests/package/${how}" "${dir}/${how}"
             --build-generator "${CMAKE_GENERATOR}" --build-options ${options} ${type} ${then})
    set_tests_properties(package.${how} PROPERTIES FIXTURES_REQUIRED tg_installed RUN_SERIAL ON TIMEOUT 1500)
  endforeach()
  add_test(NAME package.size COMMAND "${CMAKE_COMMAND}" -DSTRIP=${CMAKE_STRIP} -DPROGRAM=$<TARGET_FILE:tg-static> -DMAX_BYTES=7900000
           -P "${PROJECT_SOURCE_DIR}/cmake/TgCheckSize.cmake")
  set_property(TEST package.install package.installed_program package.installed_worker package.find_package package.static package.toy_device
               package.size PROPERTY LABELS package)
  set_property(TEST package.add_subdirectory package.fetch_content PROPERTY LABELS deep)
endfunction()

# Snippets of the users' guide do what it says, a test for each page; links of all pages lead somewhere.
function(tg_test_docs)
  if(NOT TG_BUILD_PYTHON)
    find_package(Python 3.10 COMPONENTS Interpreter)
    if(NOT Python_Interpreter_FOUND)
      message(STATUS "No Python 3.10: the users' guide is not tested")
      return()
    endif()
  endif()
  set(folder "${PROJECT_SOURCE_DIR}/docs")
  set(checker "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/docs/check_page.py")
  set(how --max-words 90 --build "${PROJECT_BINARY_DIR}" --cxx "${CMAKE_CXX_COMPILER}")
  if(TG_BUILD_PYTHON)
    list(APPEND how --python "${Python_EXECUTABLE}")
  endif()
  file(GLOB pages CONFIGURE_DEPENDS RELATIVE "${folder}/guide" "${folder}/guide/*.md")
  foreach(page IN LISTS pages)
    string(REGEX REPLACE "\\.md$" "" name "${page}")
    add_test(NAME guide.${name} COMMAND ${checker} "${folder}/guide/${page}" ${how})
    set_property(TEST guide.${name} PROPERTY LABELS guide)
  endforeach()
  file(GLOB pages CONFIGURE_DEPENDS "${folder}/*.md" "${folder}/backends/*.md" "${folder}/benchmarks/*.md")
  set(front "${PROJECT_SOURCE_DIR}/CONTRIBUTING.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md")
  add_test(NAME docs.links COMMAND ${checker} "${PROJECT_SOURCE_DIR}/README.md" ${front} ${pages})
  # The map of the code and the pages behind it; snippets of most of them are of tests and golden files, and are not run.
  set(stages one-kernel architecture ir rewriting symbolic schedule opts codegen jit tensors model-files numerics numbers devices new-backend
      benchmarking glossary)
  list(TRANSFORM stages PREPEND "${folder}/")
  list(TRANSFORM stages APPEND ".md")
  file(GLOB backends CONFIGURE_DEPENDS "${folder}/backends/*.md")
  add_test(NAME docs.paragraphs COMMAND ${checker} "${PROJECT_SOURCE_DIR}/README.md" ${front} ${stages} ${backends} --max-words 90)
  if(TARGET tg-borders)
    add_test(NAME docs.one_kernel COMMAND ${checker} "${folder}/one-kernel.md" "${folder}/architecture.md" ${how})
    add_test(NAME docs.front COMMAND ${checker} ${front} ${how})
    add_test(NAME docs.model_files COMMAND ${checker} "${folder}/model-files.md" ${how})
    set_property(TEST docs.one_kernel docs.front docs.model_files PROPERTY LABELS guide)
  endif()
  add_test(NAME docs.pictures COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/draw")
  add_test(NAME docs.checker COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/docs/test_check_page.py")
  set_tests_properties(docs.links docs.paragraphs docs.pictures docs.checker PROPERTIES LABELS guide ENVIRONMENT "TG_BUILD_DIR=${PROJECT_BINARY_DIR}")
endfunction()

# A test on a driver that checks every access of a kernel and finds races. Where it is not installed the test is skipped, and fails with
# TG_ALL_BACKENDS.
function(tg_add_oclgrind_test name label program filter passed)
  if(NOT TARGET ${program})
    return()
  endif()
  find_file(TG_OCLGRIND liboclgrind-rt-icd.so PATHS /usr/lib/oclgrind /usr/local/lib/oclgrind)
  if(NOT TG_OCLGRIND)
    add_test(NAME ${name} COMMAND sh -c "echo 'oclgrind is not installed'; if [ \"$TG_ALL_BACKENDS\" ]; then exit 1; fi; exit 77")
    set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77)
    return()
  endif()
  file(WRITE "${PROJECT_BINARY_DIR}/oclgrind/oclgrind.icd" "${TG_OCLGRIND}\n")
  add_test(NAME ${name} COMMAND ${program} "--gtest_filter=${filter}")
  set_tests_properties(${name} PROPERTIES
    LABELS ${label}
    ENVIRONMENT "OCL_ICD_VENDORS=${PROJECT_BINARY_DIR}/oclgrind;OCLGRIND_DATA_RACES=1;OCLGRIND_NUM_THREADS=1;CACHELEVEL=0;TG_TEST_RECORD="
    PASS_REGULAR_EXPRESSION "PASSED  . ${passed} test"
    FAIL_REGULAR_EXPRESSION "data race;Invalid read;Invalid write;OCLGRIND FATAL;FAILED  ")
endfunction()

# Of the backend tests and of models.
function(tg_test_oclgrind)
  tg_add_oclgrind_test(runtime.oclgrind backend test_runtime_backend "Devices/Kernels.*/CL-*Heuristics*" 6)
  tg_add_oclgrind_test(corpus.oclgrind deep test_corpus_corpus "Oclgrind.*" 1)
endfunction()

function(tg_tests)
  include(GoogleTest)
  add_custom_target(tests)
  tg_precompile_for_tests()
  tg_record_tests()
  tg_find_test_libraries(tinygrad)
  if(NOT TG_TESTS)
    tg_check_public_headers()
    if(NOT TG_SANITIZE)
      tg_test_programs()
      tg_test_packaging()
      tg_test_docs()
    endif()
  endif()
  if(TG_BUILD_PYTHON)
    tg_test_python()
    tg_test_wheel()
  endif()
  file(GLOB entries CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/tests/*")
  foreach(room IN LISTS entries)
    set(dir "${PROJECT_SOURCE_DIR}/tests/${room}")
    if(NOT IS_DIRECTORY "${dir}" OR room MATCHES "^(support|package|docs|fuzzers)$")
      continue()
    endif()
    file(GLOB_RECURSE unit CONFIGURE_DEPENDS "${dir}/*.cpp")
    foreach(kind IN LISTS TG_TEST_KINDS)
      file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${dir}/${kind}/*.cpp")
      if(sources)
        list(REMOVE_ITEM unit ${sources})
        tg_add_test(test_${room}_${kind} ${kind} ${room} ${sources})
      endif()
    endforeach()
    tg_add_test(test_${room} unit ${room} ${unit})
  endforeach()
  tg_test_oclgrind()
  get_property(made GLOBAL PROPERTY TG_TESTS_MADE)
  foreach(name IN LISTS TG_TESTS)
    if(NOT name IN_LIST made)
      message(SEND_ERROR "TG_TESTS names \"${name}\", which is no test executable (without test_), no file of one and no label")
    endif()
  endforeach()
endfunction()

# pytest's files, and mypy on the package.
function(tg_test_python)
  set(environment "PYTHONPATH=${PROJECT_BINARY_DIR}/python")
  file(GLOB files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/python/tests" "${PROJECT_SOURCE_DIR}/python/tests/test_*.py")
  foreach(file IN LISTS files)
    string(REGEX REPLACE "^test_(.*)\\.py$" "python.\\1" name "${file}")
    add_test(NAME ${name} COMMAND "${Python_EXECUTABLE}" -m pytest -q -rs -p no:cacheprovider "${PROJECT_SOURCE_DIR}/python/tests/${file}"
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(${name} PROPERTIES LABELS python ENVIRONMENT "${environment}" TIMEOUT 900
                         SKIP_RETURN_CODE 5)  # nothing could run: what the tests need is not installed
  endforeach()
  add_test(NAME python.mypy COMMAND "${Python_EXECUTABLE}" -m mypy --config-file "${PROJECT_SOURCE_DIR}/pyproject.toml"
           --cache-dir "${PROJECT_BINARY_DIR}/mypy" tinygrad_cpp WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/python")
  set_tests_properties(python.mypy PROPERTIES LABELS python)
endfunction()

# The wheel's tg-worker is found beside its module.
function(tg_test_wheel)
  set(prefix "${PROJECT_BINARY_DIR}/package/wheel")
  add_test(NAME package.wheel COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DBUILD=${PROJECT_BINARY_DIR}" "-DPREFIX=${prefix}"
           -P "${PROJECT_SOURCE_DIR}/cmake/TgInstallWheel.cmake")
  add_test(NAME package.wheel_worker COMMAND "${Python_EXECUTABLE}" -m pytest -q -p no:cacheprovider "${PROJECT_SOURCE_DIR}/python/tests/test_beam.py")
  set_tests_properties(package.wheel PROPERTIES LABELS package FIXTURES_SETUP tg_wheel)
  set_tests_properties(package.wheel_worker PROPERTIES LABELS package FIXTURES_REQUIRED tg_wheel ENVIRONMENT "PYTHONPATH=${prefix}")
endfunction()
