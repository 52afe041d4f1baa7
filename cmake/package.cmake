# The Debian packages that ./package makes by CPack: `idem` from the component `runtime`, `libidem-dev` from
# `development`. What only a package has (service, settings, documents) is left out of `cmake --install`. A version ends
# with the release that the package was built on: 0.1.0~deb12.
set(packaging ${CMAKE_SOURCE_DIR}/packaging/debian)
install(FILES ${packaging}/idem.service DESTINATION lib/systemd/system COMPONENT runtime EXCLUDE_FROM_ALL)
install(FILES ${packaging}/idem.yaml DESTINATION /etc/idem PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ
  COMPONENT runtime EXCLUDE_FROM_ALL)
install(FILES ${packaging}/copyright DESTINATION share/doc/idem COMPONENT runtime EXCLUDE_FROM_ALL)
install(FILES LICENSE README.md DESTINATION share/doc/idem COMPONENT runtime EXCLUDE_FROM_ALL)
install(DIRECTORY docs DESTINATION share/doc/idem COMPONENT runtime EXCLUDE_FROM_ALL FILES_MATCHING
  PATTERN "*.md" PATTERN "*.yml" PATTERN "*.yaml" PATTERN "*.svg" PATTERN "*.png")
install(DIRECTORY deploy DESTINATION share/doc/idem COMPONENT runtime EXCLUDE_FROM_ALL USE_SOURCE_PERMISSIONS)
install(FILES ${packaging}/copyright DESTINATION share/doc/libidem-dev COMPONENT development EXCLUDE_FROM_ALL)
# A link to what the sources have and the package has not becomes its text.
install(CODE "
  file(GLOB_RECURSE idem_pages \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/doc/idem/*.md\")
  execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND sed -E -z -i
    [=[s@\\[([^]]*)\\]\\((\\.\\./)*(bench|examples|check/|AGENTS\\.md|ARCHITECTURE\\.md|CONTRIBUTING\\.md)[^)]*\\)@\\1@g]=] \${idem_pages})"
  COMPONENT runtime EXCLUDE_FROM_ALL)
install(FILES ${packaging}/copyright DESTINATION share/doc/idem-check COMPONENT check EXCLUDE_FROM_ALL)
install(FILES docs/check.md DESTINATION share/doc/idem-check COMPONENT check EXCLUDE_FROM_ALL)
# The page of idem-check alone: the others are in the package idem.
install(CODE "
  execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND sed -E -z -i [=[s@\\[([^]]*)\\]\\([^):]*\\)@\\1@g]=]
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/doc/idem-check/check.md\")" COMPONENT check EXCLUDE_FROM_ALL)
foreach(pair runtime=idem check=idem-check development=libidem-dev)
  string(REGEX REPLACE "=.*" "" component ${pair})
  string(REGEX REPLACE ".*=" "" package ${pair})
  install(CODE "
    file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/doc/${package}\")
    execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND gzip -9n INPUT_FILE \"${CMAKE_SOURCE_DIR}/CHANGELOG.md\"
      OUTPUT_FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/doc/${package}/changelog.gz\")"
    COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()

# Other releases have other libraries. The sign sorts a package of ours before one of Debian with the same version, and
# that of Debian 12 before that of Debian 13, so that an upgrade of the system takes the next one.
cmake_host_system_information(RESULT idem_distribution QUERY DISTRIB_INFO)
set(idem_release "${idem_distribution_ID}${idem_distribution_VERSION_ID}")
if(idem_distribution_ID STREQUAL "debian")
  set(idem_release "deb${idem_distribution_VERSION_ID}")
endif()
if(NOT idem_distribution_VERSION_ID)
  string(APPEND idem_release "${idem_distribution_VERSION_CODENAME}")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME idem)
set(CPACK_DEBIAN_PACKAGE_VERSION "${PROJECT_VERSION}~${idem_release}")
set(CPACK_PACKAGE_VENDOR "Idem maintainers")
set(CPACK_PACKAGE_CONTACT "Idem maintainers <maintainers@idem.example>")
set(CPACK_COMPONENTS_ALL runtime check development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
# One file of the package lies outside of /usr.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
# Line tables go into packages of their own, where gdb and perf look for them by build id.
if(IDEM_SYMBOLS OR CMAKE_CXX_FLAGS MATCHES "(^| )-g")
  set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
else()
  set(CPACK_STRIP_FILES ON)
endif()
set(CPACK_THREADS 0)  # xz on all processors.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME idem)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION net)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS adduser)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
  "${packaging}/conffiles;${packaging}/postinst;${packaging}/prerm;${packaging}/postrm")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "gateway that makes a retried API call have exactly one effect
A reverse proxy that reserves the Idempotency-Key of a request durably, runs
the request once, stores the answer, and gives every retry the same answer.
Stores: SQLite, PostgreSQL, MariaDB, Redis, DynamoDB.")

# For those who test an API and run no gateway; `idem` has the same command.
set(CPACK_DEBIAN_CHECK_PACKAGE_NAME idem-check)
set(CPACK_DEBIAN_CHECK_PACKAGE_SECTION net)
set(CPACK_DEBIAN_CHECK_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_CHECK_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_COMPONENT_CHECK_DESCRIPTION "tests from outside whether an API keeps the promise of its keys
Sends retries, races, cut requests and lost answers to an HTTP API that claims
to support Idempotency-Key, and reports what runs twice. Needs no server.")

# What the files for find_package and pkg-config ask for; each store names its own (idem_store() in CMakeLists.txt).
set(dev_depends libssl-dev libfmt-dev libcurl4-openssl-dev ${idem_store_debian})
list(REMOVE_DUPLICATES dev_depends)
list(SORT dev_depends)
# The archive was compiled with these, and they promise the same binary interface only within such a version.
string(REGEX MATCH "^[0-9]+" fmt_from "${fmt_VERSION}")
math(EXPR fmt_below "${fmt_from} + 1")
string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" rocksdb_from "${rocksdb_VERSION}")
math(EXPR rocksdb_below "${CMAKE_MATCH_2} + 1")
set(rocksdb_below "${CMAKE_MATCH_1}.${rocksdb_below}")
foreach(library fmt rocksdb)
  list(TRANSFORM dev_depends REPLACE "^lib${library}-dev$"
    "lib${library}-dev (>= ${${library}_from}), lib${library}-dev (<< ${${library}_below}~)")
endforeach()
list(JOIN dev_depends ", " dev_depends)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libidem-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${dev_depends}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "pkg-config")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libcpp-httplib-dev, libboost${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR}-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "library that gives services exactly one effect for each key
Headers, the static library, and files for CMake and pkg-config. A service in
C++ guards its handlers with it, on SQLite, PostgreSQL or MariaDB.")
include(CPack)
