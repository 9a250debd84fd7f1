# wlb_embed(OUTPUT NAME FILE...): makes the C source OUTPUT in the build, which defines the bytes of the files, one after the
# other, as `const char NAME[]`, and their number as `const size_t NAME_bytes`. Run as a script it does so.
if(CMAKE_SCRIPT_MODE_FILE)
  separate_arguments(files UNIX_COMMAND "${FILES}")
  foreach(file ${files})
    file(READ ${file} bytes HEX)
    string(APPEND hex ${bytes})
  endforeach()
  string(REGEX REPLACE "(..)" "0x\\1," hex "${hex}")
  file(WRITE ${OUTPUT} "#include <stddef.h>\n\nextern const char ${NAME}[];\nextern const size_t ${NAME}_bytes;\n"
       "const char ${NAME}[] = {${hex}};\nconst size_t ${NAME}_bytes = sizeof(${NAME});\n")
  return()
endif()

set(WLB_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(wlb_embed output name)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  list(JOIN files " " joined)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${CMAKE_CURRENT_BINARY_DIR}/${output} -D NAME=${name} -D "FILES=${joined}" -P ${WLB_EMBED_SCRIPT}
    DEPENDS ${files} ${WLB_EMBED_SCRIPT}
    VERBATIM)
endfunction()
