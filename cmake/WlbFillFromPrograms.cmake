# wlb_fill_from_programs(TARGET TEMPLATE FILE): makes FILE in the build from TEMPLATE, in which a line such as
# "@wlb pack --help=man@" stands for what that command prints. Run as a script it does so for one file; PROGRAMS are the folders
# of the programs.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${TEMPLATE} text)
  string(REGEX MATCHALL "@wlb[^@\n]*@" commands "${text}")
  foreach(command IN LISTS commands)
    string(REGEX REPLACE "@" "" words ${command})
    separate_arguments(words UNIX_COMMAND ${words})
    list(POP_FRONT words name)
    find_program(program-${name} ${name} PATHS ${PROGRAMS} NO_DEFAULT_PATH REQUIRED)
    execute_process(COMMAND ${program-${name}} ${words} OUTPUT_VARIABLE printed OUTPUT_STRIP_TRAILING_WHITESPACE
                    COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "${command}" "${printed}" text "${text}")
  endforeach()
  file(WRITE ${FILE} "${text}")
  return()
endif()

set(WLB_FILL_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(wlb_fill_from_programs target template file)
  set(programs wlb-command wlb-pack wlb-shard wlb-plan wlb-sim wlb-calibrate wlb-check-links wlb-check-node wlb-ckpt wlb-data wlb-export wlb-open wlb-worker wlbd wlb-agent wlb-stacks)
  list(TRANSFORM programs REPLACE "(.+)" "$<TARGET_FILE_DIR:\\1>" OUTPUT_VARIABLE folders)
  list(REMOVE_DUPLICATES folders)
  add_custom_command(
    OUTPUT ${file}
    COMMAND ${CMAKE_COMMAND} -D TEMPLATE=${CMAKE_CURRENT_SOURCE_DIR}/${template}
            -D FILE=${CMAKE_CURRENT_BINARY_DIR}/${file} -D "PROGRAMS=${folders}"
            -P ${WLB_FILL_SCRIPT}
    DEPENDS ${template} ${WLB_FILL_SCRIPT} ${programs}
    VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${file})
endfunction()
