# Headers are included by module: "base/error.h", whatever wing the module is in.
set(FLEET_INCLUDE_FOLDERS ${CMAKE_SOURCE_DIR}/lib/common ${CMAKE_SOURCE_DIR}/lib/control ${CMAKE_SOURCE_DIR}/lib/engine)

# fleet_module(NAME [REGISTERS] [SMALL] [PRECOMPILED set] [OPTIONS options...] [DEPENDS modules...] [LINK libraries...]
#              [EXCLUDE files...] [FOLDERS subfolders...] [FAST files...])
# One folder of lib/ becomes one library fleet_NAME of all .cc files in it and in FOLDERS (other subfolders are separate modules).
# REGISTERS: its files register ops, kernels, passes, commands, ... at start-up, so all of its objects must be linked; fleet_link() does
# that for every executable that names the module.
# SMALL: release builds optimize for size, for code that runs once at the start of a job.
# FAST: files of a SMALL module that loop over data.
# PRECOMPILED: of the sets of fleet_precompile_headers(), for a SMALL module (default: small).
# OPTIONS: compile options of all of its files.
function(fleet_module name)
  cmake_parse_arguments(R "REGISTERS;SMALL" "PRECOMPILED" "OPTIONS;DEPENDS;LINK;EXCLUDE;FOLDERS;FAST" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(folder ${R_FOLDERS})
    file(GLOB more CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
    list(APPEND sources ${more})
  endforeach()
  foreach(file ${R_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  if(NOT sources)
    add_library(fleet_${name} INTERFACE)
    set(visibility INTERFACE)
  else()
    add_library(fleet_${name} STATIC ${sources})
    set(visibility PUBLIC)
    fleet_group_sources(fleet_${name} ALL ${sources})
    if(R_SMALL)
      target_compile_options(fleet_${name} PRIVATE $<$<CONFIG:Release>:-Os>)
      fleet_file_options($<$<CONFIG:Release>:-O2> FILES ${R_FAST})
    endif()
    target_compile_options(fleet_${name} PRIVATE ${R_OPTIONS})
    if(FLEET_PRECOMPILE AND R_OPTIONS)
      target_precompile_headers(fleet_${name} PRIVATE ${FLEET_PRECOMPILED_HEADERS})
    elseif(FLEET_PRECOMPILE)
      target_compile_options(fleet_${name} PRIVATE -pthread)  # as gRPC's users have
      if(R_PRECOMPILED)
        target_precompile_headers(fleet_${name} REUSE_FROM fleet_precompiled_${R_PRECOMPILED})
      elseif(R_SMALL)
        target_precompile_headers(fleet_${name} REUSE_FROM fleet_precompiled_small)
      else()
        target_precompile_headers(fleet_${name} REUSE_FROM fleet_precompiled_fast)
      endif()
    endif()
  endif()
  target_include_directories(fleet_${name} ${visibility} ${FLEET_INCLUDE_FOLDERS})
  foreach(module ${R_DEPENDS})
    target_link_libraries(fleet_${name} ${visibility} fleet_${module})
    get_property(below GLOBAL PROPERTY FLEET_BELOW_${module})
    set_property(GLOBAL APPEND PROPERTY FLEET_BELOW_${name} ${module} ${below})
  endforeach()
  target_link_libraries(fleet_${name} ${visibility} ${R_LINK})
  if(R_REGISTERS AND sources)
    set_property(GLOBAL APPEND PROPERTY FLEET_REGISTERING fleet_${name})
  endif()
endfunction()

# fleet_file_options(OPTIONS... FILES files...): compile options of single files of a module.
function(fleet_file_options)
  cmake_parse_arguments(F "" "" "FILES" ${ARGN})
  if(F_FILES)
    set_property(SOURCE ${F_FILES} APPEND PROPERTY COMPILE_OPTIONS ${F_UNPARSED_ARGUMENTS})
    set_source_files_properties(${F_FILES} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)  # they have other flags
  endif()
endfunction()

# The headers that modules share: the standard ones take 0.6 s of each file, those of a .proto as much again. (Asio's and gRPC's
# would take longer to load where they are not needed than they save elsewhere.) GCC ignores precompiled headers where flags
# differ, hence sets: fast for modules that are not SMALL, small, control and strategy for SMALL ones, and one for each module with
# OPTIONS.
set(FLEET_PRECOMPILED_HEADERS <algorithm> <chrono> <deque> <filesystem> <functional> <map> <memory> <optional> <random> <set>
    <sstream> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector> <spdlog/spdlog.h>)
set(FLEET_PRECOMPILED_control <proto/control.pb.h>)
set(FLEET_PRECOMPILED_strategy <proto/strategy.pb.h>)
function(fleet_precompile_headers)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cc CONTENT "")
  foreach(set small fast control strategy)
    add_library(fleet_precompiled_${set} OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
    target_link_libraries(fleet_precompiled_${set} PRIVATE spdlog::spdlog)
    target_compile_options(fleet_precompiled_${set} PRIVATE -pthread)
    target_precompile_headers(fleet_precompiled_${set} PRIVATE ${FLEET_PRECOMPILED_HEADERS} ${FLEET_PRECOMPILED_${set}})
    if(NOT set STREQUAL "fast")
      target_compile_options(fleet_precompiled_${set} PRIVATE $<$<CONFIG:Release>:-Os>)
    endif()
  endforeach()
  target_link_libraries(fleet_precompiled_control PRIVATE fleet_proto_control)
  target_link_libraries(fleet_precompiled_strategy PRIVATE fleet_proto_strategy)
endfunction()

# fleet_link(TARGET modules...): links modules and their dependencies into an executable, and modules that register things as
# whole archives. Call it once per target.
function(fleet_link target)
  # Do not name modules that others bring along: a whole archive linked twice defines its symbols twice.
  set(brought "")
  foreach(module ${ARGN})
    get_property(below GLOBAL PROPERTY FLEET_BELOW_${module})
    list(APPEND brought ${below})
  endforeach()
  foreach(module ${ARGN})
    if(TARGET fleet_${module} AND NOT module IN_LIST brought)  # no target: not part of this build (CUDA without nvcc)
      target_link_libraries(${target} PRIVATE fleet_${module})
    endif()
  endforeach()
  get_property(registering GLOBAL PROPERTY FLEET_REGISTERING)
  foreach(library ${registering})
    set_property(TARGET ${target} PROPERTY LINK_LIBRARY_OVERRIDE_${library} WHOLE_ARCHIVE)
  endforeach()
endfunction()

# fleet_hosts_plugins(TARGET): lets the executable load backend plugins (libfleet_cuda.so, libfleet_nccl.so). It exports its
# symbols and contains all modules of lib/ that backends may refer to, even unused parts. Call it after fleet_link().
function(fleet_hosts_plugins target)
  set_property(TARGET ${target} PROPERTY ENABLE_EXPORTS ON)
  foreach(module base store tensor comm graph exec)
    if(NOT TARGET fleet_${module})
      continue()
    endif()
    get_target_property(type fleet_${module} TYPE)
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
      set_property(TARGET ${target} PROPERTY LINK_LIBRARY_OVERRIDE_fleet_${module} WHOLE_ARCHIVE)
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  foreach(plugin fleet_cuda fleet_nccl)
    if(TARGET ${plugin})
      add_dependencies(${target} ${plugin})
    endif()
  endforeach()
endfunction()
