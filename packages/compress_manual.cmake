# cpack runs this on what it has installed for the packages. Debian's policy asks for compressed pages; rpm compresses them itself.
file(GLOB_RECURSE pages ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/*)
list(FILTER pages EXCLUDE REGEX "[.]gz$")
if(CPACK_GENERATOR STREQUAL "DEB" AND pages)
  execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
endif()
