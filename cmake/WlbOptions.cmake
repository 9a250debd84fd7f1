# Compiler flags, sanitizers, and the function every folder uses to add a test.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON) # pmix_common.h needs gnu, not strict, C
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD 17) # tests/cuda_host alone is C++
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

option(WLB_TESTS "Build the tests, which are the greater part of a build" ON)
option(WLB_SANITIZE "Build with address and undefined-behaviour sanitizers" OFF)
option(WLB_COVERAGE "Count which lines are executed, for gcov: scripts/coverage; gcc only" OFF)
option(WLB_FUZZ "Build the fuzz targets in a build with sanitizers, where clang with libFuzzer is found" ON)
set(WLB_PACKAGE_CONTACT "WLB <wlb@example.org>" CACHE STRING "Whom the packages of cpack name as their maintainer")
set(WLB_SLURM_PREFIX "" CACHE PATH "Slurm installed elsewhere than the system's (its include/ and lib/)")

add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Wall> $<$<COMPILE_LANGUAGE:C,CXX>:-Wextra>
                    $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
add_compile_definitions(_GNU_SOURCE WLB_VERSION="${PROJECT_VERSION}")
include_directories(${CMAKE_SOURCE_DIR})
if(WLB_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C>:-fsanitize=address,undefined>
                      $<$<COMPILE_LANGUAGE:C>:-fno-omit-frame-pointer>
                      $<$<COMPILE_LANGUAGE:C>:-fno-sanitize-recover=undefined>)
  add_link_options(-fsanitize=address,undefined)
endif()
if(WLB_COVERAGE)
  add_compile_options($<$<COMPILE_LANGUAGE:C>:--coverage>)
  add_link_options(--coverage)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# wlb_add_test(NAME SOURCES... [LIBS lib...] [LABELS label...]): a cmocka program run by ctest.
function(wlb_add_test name)
  cmake_parse_arguments(ARG "" "" "LIBS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} CMocka::cmocka)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600)
endfunction()
