# A compiler spends most of its time for a file on the headers, and on templates that the neighbours instantiate as
# well. So CMake makes sources that include all files of a target, or as many as the second argument says, and the
# compiler reads the headers once for each source. If IDEM_BATCH_SIZE is not 0, it replaces both numbers. The files of
# a batch share one anonymous namespace, so each name may be there once. The `clang` preset compiles file by file, and
# so finds a forgotten include.
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

# GCC collects garbage whenever its heap has grown by a part. This takes a sixth of a batch's time and frees little. So
# GCC does not collect before its heap has half of the memory that each processor can have, or 2 GB if that is less.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
  cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR heap_kib "${memory_mib} * 512 / ${processors}")
  if(heap_kib GREATER 2000000)
    set(heap_kib 2000000)
  endif()
  target_compile_options(idem_house INTERFACE --param=ggc-min-heapsize=${heap_kib})

  # GCC inlines less in a file of more instructions than this, and every batch is one: with the usual 10,000 a first
  # request takes 7 % more instructions, and one without a key 11 % (bench/cost).
  target_compile_options(idem_house INTERFACE --param=large-unit-insns=1000000)
endif()
