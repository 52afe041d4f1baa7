# Most of a file's compilation are its headers, and the templates that its neighbours instantiate, too. So all files of a
# target (a folder of src/ with its rooms), or as many as the second argument says, are compiled at once: CMake makes a
# source that includes them. Their anonymous namespaces become one, so a target has each name once. The `clang` preset
# compiles file by file, and finds a forgotten include. IDEM_BATCH_SIZE, unless it is 0, counts instead.
function(idem_in_batches target)
  set(files ${IDEM_BATCH_SIZE})
  if(ARGC GREATER 1 AND IDEM_BATCH_SIZE EQUAL 0)
    set(files ${ARGV1})
  endif()
  if(IDEM_BATCHES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
  endif()
endfunction()

# In a batch a file's own types look like a header's to GCC, and a local variable may have the name of a neighbour's
# function.
if(NOT IDEM_BATCHES)
  target_compile_options(idem_house INTERFACE -Wshadow)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(idem_house INTERFACE -Wno-subobject-linkage -Wshadow=local)
endif()

# GCC looks for garbage whenever its heap has grown by a part, which takes a sixth of a batch's time and frees little:
# where each processor has memory to spare, it does not look before its heap has half of that.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
  cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR heap_kib "${memory_mib} * 512 / ${processors}")
  if(heap_kib GREATER 2000000)
    set(heap_kib 2000000)
  endif()
  target_compile_options(idem_house INTERFACE --param=ggc-min-heapsize=${heap_kib})
endif()
