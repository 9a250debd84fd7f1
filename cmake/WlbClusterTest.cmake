# Tests against a private Slurm cluster: each test_*.py of the calling folder is one test of ctest.
#
# They may run side by side, each on a cluster of its own; scripts/test runs some at a time. The deadline is the test's
# own, so that it can still clear up; ctest's TIMEOUT, by SIGKILL, comes later. With sanitizers they are left out: Slurm cannot
# load a sanitized plugin.
function(wlb_add_cluster_tests label)
  if(WLB_SANITIZE)
    return()
  endif()
  file(GLOB files CONFIGURE_DEPENDS test_*.py)
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    string(REGEX REPLACE "^test" "${label}" name ${name})
    wlb_add_cluster_test(${name} ${label} ${file})
  endforeach()
endfunction()

# wlb_add_cluster_test(NAME LABEL FILE ARGUMENT...)
function(wlb_add_cluster_test name label file)
  find_program(WLB_PYTHON python3 REQUIRED)
  add_test(NAME ${name} COMMAND ${WLB_PYTHON} ${file} ${ARGN})
  set_tests_properties(${name} PROPERTIES
    LABELS "${label}" TIMEOUT 1260
    ENVIRONMENT "WLB_BUILD_DIR=${CMAKE_BINARY_DIR};WLB_SLURM_PREFIX=${WLB_SLURM_PREFIX};WLB_TEST_DEADLINE_S=1200;PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/cluster")
endfunction()

# The test runs with the wlbd of the build with sanitizers that belongs to this one, as scripts/build names it, and is
# skipped where that was not built.
function(wlb_use_sanitized_wlbd name)
  cmake_path(GET CMAKE_BINARY_DIR PARENT_PATH parent)
  cmake_path(GET CMAKE_BINARY_DIR FILENAME folder)
  string(REGEX REPLACE "^build" "build-asan" folder ${folder})
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "WLB_TEST_WLBD=${parent}/${folder}/bin/wlbd")
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
