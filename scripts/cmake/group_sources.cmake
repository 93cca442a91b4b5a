# FLEET_GROUP_SOURCES=ALL compiles the files of a target in groups, each as one source, as large as names allow: a group parses
# its headers and instantiates templates once, which saves time in a build that is made once (the first one, CI's, those with
# sanitizers). Where sources are edited and built again, single files are faster. Files that changed since origin/main are compiled
# alone, so the compiler finds an include that they lack and their group has: of many, the two dozen with the most new lines.
set(FLEET_GROUP_SOURCES OFF CACHE STRING "Compile several sources as one: OFF, ALL")
set(FLEET_CHANGED_FILES "")
if(FLEET_GROUP_SOURCES)
  set(FLEET_PRECOMPILE OFF)  # would save less than it costs: a group parses the shared headers once
  # Where origin/main is HEAD, as in CI's clone: the files of the last commit.
  execute_process(COMMAND sh -c "since=$(git merge-base origin/main HEAD | grep -vx \"$(git rev-parse HEAD)\" || echo HEAD~1)
                                 {
                                   git ls-files --others --exclude-standard -- '*.cc' '*.cu'
                                   git diff --numstat --no-renames $since -- '*.cc' '*.cu' | sort -rn | cut -f3
                                 } | head -n 24"
                  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE FLEET_CHANGED_FILES ERROR_QUIET)
  string(STRIP "${FLEET_CHANGED_FILES}" FLEET_CHANGED_FILES)
  string(REGEX REPLACE "([^\n]+)\n?" "${CMAKE_SOURCE_DIR}/\\1;" FLEET_CHANGED_FILES "${FLEET_CHANGED_FILES}")
endif()

# fleet_source_groups(OUT files...): sets OUT to the groups, "FILE FILE..." each.
function(fleet_source_groups out)
  set(${out} "" PARENT_SCOPE)
  set(files ${ARGN})
  if(NOT files)
    return()
  endif()
  if(NOT FLEET_GROUP_SOURCES)
    set(${out} "${files}" PARENT_SCOPE)
    return()
  endif()
  list(TRANSFORM files PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  execute_process(COMMAND awk -v size=40 -f ${CMAKE_SOURCE_DIR}/scripts/source_groups.awk ${files}
                  OUTPUT_VARIABLE groups OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" groups "${groups}")
  # Changed files leave their group, which does not change the others.
  set(kept "")
  foreach(group ${groups})
    string(REPLACE " " ";" members "${group}")
    list(REMOVE_ITEM members "" ${FLEET_CHANGED_FILES})
    list(JOIN members " " group)
    list(APPEND kept ${group})
  endforeach()
  set(changed ${files})
  string(REPLACE " " ";" grouped "${kept}")
  list(REMOVE_ITEM changed "" ${grouped})
  set(${out} "${kept};${changed}" PARENT_SCOPE)
endfunction()

# fleet_group_sources(TARGET files...): compiles the files of a target in these groups.
function(fleet_group_sources target)
  fleet_source_groups(groups ${ARGN})
  foreach(group ${groups})
    string(REPLACE " " ";" files "${group}")
    list(LENGTH files length)
    if(length GREATER 1)
      # Named after a member, so that a file that comes or goes renames no other group.
      list(GET files 0 first)
      get_filename_component(first ${first} NAME_WE)
      set_source_files_properties(${files} PROPERTIES UNITY_GROUP ${first})
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
      target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)  # a group is not a header
    else()
      set_source_files_properties(${files} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# fleet_include_groups(OUT EXTENSION files...): for languages that CMake does not group: sets OUT to generated sources with this
# extension, which include the files of a group each.
function(fleet_include_groups out extension)
  fleet_source_groups(groups ${ARGN})
  set(sources "")
  foreach(group ${groups})
    string(REGEX MATCH "[^ ]+" first ${group})
    get_filename_component(name ${first} NAME_WE)
    string(REGEX REPLACE "([^ ]+) ?" "#include \"\\1\"\n" includes ${group})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}${extension})
    file(CONFIGURE OUTPUT ${source} CONTENT "${includes}" @ONLY)
    list(APPEND sources ${source})
  endforeach()
  set(${out} "${sources}" PARENT_SCOPE)
endfunction()
