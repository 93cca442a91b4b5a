# fleet_group_sources(TARGET TESTS|ALL files...): compiles the files of a target in groups, each as one source, if
# FLEET_GROUP_SOURCES is that value or ALL. A group parses its headers once: less than half of the time, for a build that is made
# once (CI's tests, builds with sanitizers). A build that is changed and made again is faster without. With TESTS, the files that
# the last commit changed are compiled alone: an include that only the rest of the group has is missed.
set(FLEET_GROUP_SOURCES OFF CACHE STRING "Compile several sources as one: OFF, TESTS, ALL")
set(FLEET_CHANGED_FILES "")
if(FLEET_GROUP_SOURCES STREQUAL "TESTS")
  foreach(changed "diff;--name-only;HEAD~1" "ls-files;--others;--exclude-standard")  # and those not yet committed
    execute_process(COMMAND git ${changed} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE files ERROR_QUIET)
    string(APPEND FLEET_CHANGED_FILES "${files}")
  endforeach()
  string(STRIP "${FLEET_CHANGED_FILES}" FLEET_CHANGED_FILES)
  string(REGEX REPLACE "([^\n]+)\n?" "${CMAKE_SOURCE_DIR}/\\1;" FLEET_CHANGED_FILES "${FLEET_CHANGED_FILES}")
endif()

# fleet_source_groups(OUT KIND files...): sets OUT to the groups, "FILE FILE..." each.
function(fleet_source_groups out kind)
  set(${out} "" PARENT_SCOPE)
  set(files ${ARGN})
  if(NOT files)
    return()
  endif()
  if(NOT FLEET_GROUP_SOURCES STREQUAL kind AND NOT FLEET_GROUP_SOURCES STREQUAL "ALL")
    set(${out} "${files}" PARENT_SCOPE)
    return()
  endif()
  list(TRANSFORM files PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  set(changed ${files})
  list(REMOVE_ITEM files "" ${FLEET_CHANGED_FILES})
  list(REMOVE_ITEM changed "" ${files})
  set(groups "")
  if(files)
    execute_process(COMMAND awk -v size=8 -f ${CMAKE_SOURCE_DIR}/scripts/source_groups.awk ${files}
                    OUTPUT_VARIABLE groups OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "\n" ";" groups "${groups}")
  endif()
  set(${out} "${groups};${changed}" PARENT_SCOPE)
endfunction()

function(fleet_group_sources target kind)
  fleet_source_groups(groups ${kind} ${ARGN})
  foreach(group ${groups})
    string(REPLACE " " ";" files "${group}")
    list(LENGTH files length)
    if(length GREATER 1)
      # Named after a member, so that a file that comes or goes renames no other group.
      list(GET files 0 first)
      get_filename_component(first ${first} NAME_WE)
      set_source_files_properties(${files} PROPERTIES UNITY_GROUP ${first})
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
      if(NOT FLEET_PRECOMPILE)  # a group is not a header; precompiled headers want equal flags
        target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
      endif()
    else()
      set_source_files_properties(${files} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()
