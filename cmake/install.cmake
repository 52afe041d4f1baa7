# What `cmake --install` puts where. Component `runtime`: the binary with its manual and completions. Component
# `development`: the public headers, the library, and the files by which other builds find it (find_package and
# pkg-config).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# ./run builds a part only, so what is missing is named with the command that makes it.
function(idem_installed target component)
  install(CODE "
    if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
      message(FATAL_ERROR \"${target} is not built yet: cmake --build ${CMAKE_BINARY_DIR} --target ${target}\")
    endif()" COMPONENT ${component})
endfunction()
idem_installed(idem runtime)
install(TARGETS idem RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
idem_installed(idem-check check)
install(TARGETS idem-check RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT check)
# The program prints its own manual and completions, so that they are those of the program beside them.
install(CODE "
  set(IDEM_PROGRAM \"$<TARGET_FILE:idem>\")
  set(IDEM_SHARE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
  include(\"${CMAKE_SOURCE_DIR}/cmake/install_pages.cmake\")" COMPONENT runtime)
idem_installed(idem_library development)
install(TARGETS idem_library ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
# Debug information is for those who build it, and most of the archive.
install(CODE "
  execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND \"${CMAKE_STRIP}\" --strip-debug
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libidem.a\")" COMPONENT development)
# Not what is ours alone: no public header includes it.
install(DIRECTORY include/idem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.hpp"
  PATTERN assert.hpp EXCLUDE PATTERN crash_point.hpp EXCLUDE)

list(JOIN idem_stores " " IDEM_STORES)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/idem)
configure_package_config_file(cmake/idem-config.cmake.in ${CMAKE_BINARY_DIR}/idem-config.cmake
  INSTALL_DESTINATION ${package_dir}
  INSTALL_PREFIX /usr  # Found by way of /lib, which is a link there, it still names /usr.
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
# Before 1.0 any minor version may change what programs rely on.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/idem-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/idem-config.cmake ${CMAKE_BINARY_DIR}/idem-config-version.cmake
  DESTINATION ${package_dir} COMPONENT development)

# Where the file lies decides, so that the tree can be moved.
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
function(idem_pkg_config pc_name pc_description pc_requires pc_libs)
  configure_file(cmake/idem.pc.in ${CMAKE_BINARY_DIR}/${pc_name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${pc_name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT development)
endfunction()
idem_pkg_config(idem-core "Makes a retried API call have exactly one effect" "libcrypto fmt"
  "-L\${libdir} -lidem -pthread")
idem_pkg_config(idem-webhook "Idem's webhooks" "idem-core libcurl" "")
foreach(store IN LISTS idem_stores)
  idem_pkg_config(idem-${store} "Idem's store in ${idem_title_of_${store}}"
    "idem-core ${idem_modules_of_${store}}" "-Wl,--undefined=idem_kind_${store}")
endforeach()
list(REMOVE_DUPLICATES idem_store_modules)
list(JOIN idem_store_modules " " all_modules)
list(JOIN idem_store_flags " " all_flags)
idem_pkg_config(idem "Idem with all of its stores" "idem-core libcurl ${all_modules}" "${all_flags}")
