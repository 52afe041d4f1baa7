# The console's files, compressed, in `target`: console/build.mjs makes them where scripts/need-console has installed
# its modules. Without Node or the modules the program says in their place that it was built without the console. ./run
# compiles while the modules are still missing. So the file with the console is in no batch, and no batch is compiled
# again when the modules arrive.
function(idem_embed_console target)
  set(folder ${CMAKE_SOURCE_DIR}/console)
  set(made ${CMAKE_BINARY_DIR}/generated/console)
  find_program(IDEM_NODE node)
  if(NOT IDEM_NODE OR NOT EXISTS ${folder}/node_modules/.idem-lock.json)
    message(STATUS "console: left out; scripts/need-console installs what builds it")
    configure_file(${CMAKE_SOURCE_DIR}/cmake/no_console.cpp.in ${made}/no_console.cpp COPYONLY)
    target_sources(${target} PRIVATE ${made}/no_console.cpp)
    set_source_files_properties(${made}/no_console.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/src/*)
  add_custom_command(OUTPUT ${made}/console_files.cpp
    COMMAND ${IDEM_NODE} ${folder}/build.mjs ${made}
    DEPENDS ${sources} ${folder}/build.mjs ${folder}/package-lock.json
    COMMENT "Building the console" VERBATIM)
  target_sources(${target} PRIVATE ${made}/console_files.cpp)
  set_source_files_properties(${made}/console_files.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
