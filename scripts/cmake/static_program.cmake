# fleet_static_program(TARGET): links a program of the control plane statically, except for glibc. Loading gRPC's hundred shared
# libraries would cost five of the few milliseconds of a start, and the program must run on nodes without packages. Call it
# before fleet_link(): archives that come first on the command line take precedence over the shared libraries. Needs mold,
# because GNU ld requires another order.
#
# FLEET_STATIC_CONTROL: AUTO (release builds if mold and the archives exist), ON (an error if they do not), OFF.
function(fleet_static_program target)
  if(FLEET_STATIC_CONTROL STREQUAL "OFF" OR FLEET_SANITIZE)
    return()
  endif()
  if(FLEET_STATIC_CONTROL STREQUAL "AUTO" AND NOT (CMAKE_BUILD_TYPE STREQUAL "Release" AND MOLD))
    return()
  endif()
  find_program(PKG_CONFIG_EXECUTABLE pkg-config)
  if(PKG_CONFIG_EXECUTABLE AND NOT FLEET_GRPC_ARCHIVES)
    # One call: gRPC's hundred packages take a second each time, and pkg_check_modules() calls pkg-config 15 times.
    execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --static --libs-only-l grpc++ OUTPUT_VARIABLE names ERROR_QUIET)
    string(REGEX MATCHALL "-l[^ \n]+" names "${names}")
    list(TRANSFORM names REPLACE "^-l" "")
    set(FLEET_GRPC_ARCHIVES ${names} CACHE INTERNAL "")
  endif()
  set(archives)
  foreach(library protobuf ${FLEET_GRPC_ARCHIVES})
    find_library(FLEET_ARCHIVE_${library} NAMES lib${library}.a)
    mark_as_advanced(FLEET_ARCHIVE_${library})
    if(FLEET_ARCHIVE_${library} AND NOT library MATCHES "^(dl|m|rt|pthread|c|stdc\\+\\+)$")
      list(APPEND archives ${FLEET_ARCHIVE_${library}})
    endif()
  endforeach()
  if(NOT archives OR NOT MOLD)
    if(FLEET_STATIC_CONTROL STREQUAL "ON")
      message(FATAL_ERROR "FLEET_STATIC_CONTROL=ON needs mold and the archives of gRPC (scripts/setup.sh)")
    endif()
    return()
  endif()
  list(REMOVE_DUPLICATES archives)
  if(NOT TARGET fleet_static_log)
    add_library(fleet_static_log OBJECT ${CMAKE_SOURCE_DIR}/lib/common/base/static_log.cc
                ${CMAKE_SOURCE_DIR}/lib/common/base/static_arc4random.cc ${CMAKE_SOURCE_DIR}/lib/common/base/static_fmt.cc)
    target_link_libraries(fleet_static_log PRIVATE spdlog::spdlog)
    target_compile_options(fleet_static_log PRIVATE $<$<CONFIG:Release>:-Os>)  # a fifth less to compile
  endif()
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:fleet_static_log>)
  if(gRPC_VERSION MATCHES "^1\\.51\\.")
    target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/lib/control/rendezvous/static_grpc.cc)
  endif()
  target_link_options(${target} PRIVATE -no-pie -Wl,--gc-sections -static-libstdc++ -static-libgcc)
  target_link_libraries(${target} PRIVATE -Wl,--as-needed ${archives})
endfunction()
