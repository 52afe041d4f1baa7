# All sources read the same headers of the standard library, so each kind of folder has them parsed once.
# That changes no rule: a file names what it uses, and the clang preset, which clang-tidy reads,
# builds without these.
function(idem_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINKS" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/${name}.cpp)  # CMake wants a source to hang them on.
  if(NOT EXISTS ${source})
    file(WRITE ${source} "")
  endif()
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PRIVATE idem_house ${ARG_LINKS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

set(IDEM_STANDARD_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable>
  <deque> <expected> <filesystem> <functional> <map> <memory> <mutex> <optional> <set> <span>
  <sstream> <string> <string_view> <thread> <utility> <variant> <vector>)

idem_precompiled(idem_standard_headers HEADERS ${IDEM_STANDARD_HEADERS})
idem_precompiled(idem_asio_headers LINKS Boost::headers fmt::fmt
  HEADERS ${IDEM_STANDARD_HEADERS} <fmt/format.h> ${CMAKE_SOURCE_DIR}/src/loop/asio.hpp)
