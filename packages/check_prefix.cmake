# cpack reads this first. Packages install below /usr, and the plugin has the path of wlb-agent in it.
if(NOT CPACK_INSTALL_PREFIX STREQUAL "/usr")
  message(FATAL_ERROR "this build is for ${CPACK_INSTALL_PREFIX} and packages are for /usr: "
                      "configure it with cmake --preset package, and build again")
endif()
