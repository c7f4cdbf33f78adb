# cmake --install: libraries, public headers, tg with its data, and what find_package(tinygrad) reads.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

function(tg_install)
  set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tinygrad")
  install(TARGETS tinygrad EXPORT tinygrad_shared)
  install(TARGETS tinygrad-static EXPORT tinygrad_static)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT tinygrad_shared NAMESPACE tinygrad:: FILE tinygradShared.cmake DESTINATION "${config_dir}")
  install(EXPORT tinygrad_static NAMESPACE tinygrad:: FILE tinygradStatic.cmake DESTINATION "${config_dir}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/tinygradConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_SOURCE_DIR}/cmake/tinygradConfig.cmake" "${PROJECT_BINARY_DIR}/tinygradConfigVersion.cmake"
          DESTINATION "${config_dir}")
  if(TG_BUILD_APPS)
    install(TARGETS tg)
    install(FILES "${PROJECT_SOURCE_DIR}/data/digits.csv.gz" DESTINATION "${CMAKE_INSTALL_DATADIR}/tinygrad")
  endif()
endfunction()
