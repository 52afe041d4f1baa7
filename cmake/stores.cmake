# The stores that need a library of others. One call of idem_store() is all that the build knows of a store:
#   idem_store(NAME            src/store/NAME; embeds what schema/NAME holds, if there is such a folder
#     TITLE TEXT               its name for people
#     [FOLDER NAME]            src/store/FOLDER instead
#     [LOOP]                   it runs on src/loop
#     [FOLDERS TARGET...]      further folders of src/ that it includes; the archive then holds them too
#     [PACKAGES "NAME..."...]  the arguments of find_package for its libraries, one text for each package
#     LINKS TARGET...          its libraries; PkgConfig::NAME needs no package, pkg-config finds it as NAME
#     [HEADERS TARGET...]      libraries that consist of headers, which the users of the archive do not need
#     MODULES NAME...          the same libraries as modules of pkg-config
#     DEBIAN NAME...)          Debian's packages with their headers, which libidem-dev depends on
# The calls collect: idem_stores (the names), idem_store_targets, idem_store_objects, idem_store_options (for the
# linker), idem_store_libraries; idem_store_modules and idem_store_flags (for idem.pc); idem_store_debian; IDEM_STORE_COMMENT,
# IDEM_STORE_DEPENDENCIES and IDEM_STORE_COMPONENTS (lines of cmake/idem-config.cmake.in).
include(cmake/embed_sql.cmake)
find_package(PkgConfig REQUIRED)

# What schema/STORE holds: numbered files (or a folder `tables` of them), a folder `functions`, or Lua.
function(idem_embed_schema target store)
  foreach(folder ${store} ${store}/tables)
    file(GLOB numbered CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/schema/${folder}/[0-9][0-9][0-9][0-9]_*.sql)
    if(numbered)
      idem_embed_sql(${target} ${store} ${folder})
    endif()
  endforeach()
  file(GLOB functions CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/schema/${store}/functions/*.sql)
  if(functions)
    idem_embed_functions(${target} ${store})
  endif()
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/schema/${store}/*.lua)
  if(scripts)
    idem_embed_lua(${target} ${store})
  endif()
endfunction()

# The lines by which a program of others finds the libraries of a store.
function(idem_store_for_others name)
  cmake_parse_arguments(ARG "" "" "PACKAGES;LINKS" ${ARGN})
  set(lines "if(\"${name}\" IN_LIST idem_wanted)\n")
  foreach(package IN LISTS ARG_PACKAGES)
    string(APPEND lines "  find_dependency(${package})\n")
  endforeach()
  foreach(link IN LISTS ARG_LINKS)
    if(link MATCHES "^PkgConfig::(.+)$")
      string(APPEND lines "  find_dependency(PkgConfig)\n  if(NOT TARGET ${link})\n"
        "    pkg_check_modules(${CMAKE_MATCH_1} REQUIRED IMPORTED_TARGET ${CMAKE_MATCH_1})\n  endif()\n")
    endif()
  endforeach()
  string(APPEND IDEM_STORE_DEPENDENCIES "${lines}endif()\n")
  list(JOIN ARG_LINKS " " links)
  string(APPEND IDEM_STORE_COMPONENTS "idem_component(${name} LINKER:--undefined=idem_kind_${name} ${links})\n")
  set(IDEM_STORE_DEPENDENCIES "${IDEM_STORE_DEPENDENCIES}" PARENT_SCOPE)
  set(IDEM_STORE_COMPONENTS "${IDEM_STORE_COMPONENTS}" PARENT_SCOPE)
endfunction()

# A macro, because the packages that it finds and the lists that it fills belong to its caller.
macro(idem_store name)
  cmake_parse_arguments(STORE "LOOP" "TITLE;FOLDER" "ROOMS;FOLDERS;PACKAGES;LINKS;HEADERS;MODULES;DEBIAN" ${ARGN})
  foreach(package IN LISTS STORE_PACKAGES)
    separate_arguments(package)
    find_package(${package} REQUIRED)
  endforeach()
  foreach(link IN LISTS STORE_LINKS)
    if(link MATCHES "^PkgConfig::(.+)$" AND NOT TARGET ${link})
      pkg_check_modules(${CMAKE_MATCH_1} REQUIRED IMPORTED_TARGET GLOBAL ${CMAKE_MATCH_1})
    endif()
  endforeach()
  if(STORE_LOOP)
    set(store_form PRECOMPILED idem_asio_headers LINKS idem_loop)
  else()
    set(store_form LINKS)
  endif()
  if(NOT STORE_FOLDER)
    set(STORE_FOLDER ${name})
  endif()
  idem_folder(idem_store_${name} DIR src/store/${STORE_FOLDER} ROOMS ${STORE_ROOMS}
    ${store_form} idem_store idem_core ${STORE_FOLDERS} ${STORE_LINKS} ${STORE_HEADERS} fmt::fmt)
  idem_embed_schema(idem_store_${name} ${name})
  # The program knows the kinds of stores by symbols that it can do without (src/store/known_kinds.cpp). What links a
  # kind also names its symbol; otherwise the linker leaves the kind in the archive.
  target_link_options(idem_store_${name} INTERFACE LINKER:--undefined=idem_kind_${name})
  list(APPEND idem_stores ${name})
  list(APPEND idem_store_targets idem_store_${name})
  foreach(target idem_store_${name} ${STORE_FOLDERS})
    list(APPEND idem_store_objects $<TARGET_OBJECTS:${target}>)
  endforeach()
  list(APPEND idem_store_options LINKER:--undefined=idem_kind_${name})
  list(APPEND idem_store_libraries ${STORE_LINKS})
  list(APPEND idem_store_modules ${STORE_MODULES})
  list(APPEND idem_store_debian ${STORE_DEBIAN})
  list(APPEND idem_store_flags -Wl,--undefined=idem_kind_${name})
  list(JOIN STORE_MODULES " " idem_modules_of_${name})
  set(idem_title_of_${name} "${STORE_TITLE}")
  string(LENGTH "${name}" store_length)
  math(EXPR store_blanks "10 - ${store_length}")
  string(REPEAT " " ${store_blanks} store_blanks)
  string(APPEND IDEM_STORE_COMMENT "#   idem::${name}${store_blanks}the store in ${STORE_TITLE}\n")
  idem_store_for_others(${name} PACKAGES ${STORE_PACKAGES} LINKS ${STORE_LINKS})
endmacro()
