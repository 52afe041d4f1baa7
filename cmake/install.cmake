# What `cmake --install` puts where: the binary, the public headers, the library, and the two files
# by which other builds find it (find_package and pkg-config).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS idem RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS idem_library ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/idem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/idem)
configure_package_config_file(cmake/idem-config.cmake.in ${CMAKE_BINARY_DIR}/idem-config.cmake
  INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
# Before 1.0 any minor version may change what programs rely on.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/idem-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/idem-config.cmake ${CMAKE_BINARY_DIR}/idem-config-version.cmake
  DESTINATION ${package_dir})

# Where the file lies decides, so that the tree can be moved.
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/idem.pc.in ${CMAKE_BINARY_DIR}/idem.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/idem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
