# Standard headers, and gmock for tests, are compiled once for each set of compiler flags instead of once per source file: a
# third of a cold build. Sources still include what they use; the presets asan and tsan build without precompiled headers.
option(FLEET_PRECOMPILE "Precompile common headers" ON)

set(FLEET_COMMON_HEADERS <algorithm> <chrono> <cstdint> <functional> <map> <memory> <optional> <set> <span> <string>
                         <string_view> <utility> <variant> <vector> <spdlog/spdlog.h>)
if(NOT EXISTS ${CMAKE_BINARY_DIR}/precompiled.cc)
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cc "int main() {}\n")
endif()

# fleet_precompile(TARGET NAME [EXECUTABLE] [HEADERS headers...] [LIBRARIES libraries...] [OPTIONS options...]): uses the precompiled
# headers NAME, which the first call creates. GCC accepts them only for the flags that they were compiled with, so targets of
# one NAME are all libraries or all executables, and agree in what changes predefined macros: OpenMP, -Os.
function(fleet_precompile target name)
  if(NOT FLEET_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(P "EXECUTABLE" "" "HEADERS;LIBRARIES;OPTIONS" ${ARGN})
  if(NOT TARGET fleet_precompiled_${name})
    if(P_EXECUTABLE)
      add_executable(fleet_precompiled_${name} ${CMAKE_BINARY_DIR}/precompiled.cc)
      set_property(TARGET fleet_precompiled_${name} PROPERTY RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
    else()
      add_library(fleet_precompiled_${name} STATIC ${CMAKE_BINARY_DIR}/precompiled.cc)
    endif()
    target_compile_options(fleet_precompiled_${name} PRIVATE ${P_OPTIONS})
    target_link_libraries(fleet_precompiled_${name} PRIVATE spdlog::spdlog ${P_LIBRARIES})
    target_precompile_headers(fleet_precompiled_${name} PRIVATE ${FLEET_COMMON_HEADERS} ${P_HEADERS})
  endif()
  target_precompile_headers(${target} REUSE_FROM fleet_precompiled_${name})
endfunction()
