# fleet_build_info(TARGET): generates build_info() of apps/fleetrun/build_info.h for the target: commit, compiler, CUDA. The
# commit is read at each build, and the file is written only if it changes. Two builds of one commit are the same.
#
# Also run as a script: cmake -DSOURCE=... -DOUTPUT=... -DTOOLS=... -P build_info.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(commit "unknown commit")
  find_program(GIT git)
  if(GIT)
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --exclude=* --abbrev=12
                    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      set(commit "commit ${described}")
    endif()
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
       "#include \"apps/fleetrun/build_info.h\"\n\nnamespace fleet {\nconst char* build_info() { return \"@commit@, @TOOLS@\"; }\n}  // namespace fleet\n")
  return()
endif()

function(fleet_build_info target)
  set(tools "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  if(FLEET_HAVE_CUDA)
    string(APPEND tools ", CUDA ${CUDAToolkit_VERSION}")
  else()
    string(APPEND tools ", without CUDA")
  endif()
  set(output ${CMAKE_BINARY_DIR}/build_info.cc)
  if(NOT TARGET build_info)
    add_custom_target(build_info BYPRODUCTS ${output} VERBATIM
      COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${output} -DTOOLS=${tools}
              -P ${CMAKE_SOURCE_DIR}/scripts/cmake/build_info.cmake)
  endif()
  target_sources(${target} PRIVATE ${output})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  add_dependencies(${target} build_info)
endfunction()
