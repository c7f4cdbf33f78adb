# No object file of the library may register a destructor for the end of the process:
# cmake -DNM=PROGRAM -DLIBRARIES=LIST -P exit.cmake
foreach(library IN LISTS LIBRARIES)
  execute_process(COMMAND "${NM}" -A -u "${library}" OUTPUT_VARIABLE symbols ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]* __cxa_atexit" found "${symbols}")
  foreach(line IN LISTS found)
    message(SEND_ERROR "a static object with a destructor; make it `static auto& x = *new T(...)`: ${line}")
  endforeach()
endforeach()
