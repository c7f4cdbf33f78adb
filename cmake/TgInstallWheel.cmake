# Leaves in PREFIX, and nothing else, what a wheel has: the component that pyproject.toml names and the package's Python files.
file(STRINGS "${SOURCE}/pyproject.toml" line REGEX "^install.components = ")
if(NOT line MATCHES "\\[\"([a-z]+)\"\\]")
  message(FATAL_ERROR "pyproject.toml names no component: ${line}")
endif()
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" --component "${CMAKE_MATCH_1}" --strip COMMAND_ERROR_IS_FATAL ANY)
file(COPY "${SOURCE}/python/tinygrad_cpp" DESTINATION "${PREFIX}")
