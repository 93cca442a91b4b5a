# Build options, compiler flags and the tools that speed up the build.
option(FLEET_BUILD_TESTS "Build tests and benchmarks" ON)
option(FLEET_ASSERTIONS "Keep assert() in optimised builds" OFF)
set(FLEET_CUDA AUTO CACHE STRING "Build the CUDA backend: AUTO (if nvcc is found), ON, OFF")
set(FLEET_CUDA_ARCHITECTURES "90" CACHE STRING "CUDA architectures, such as 75;80;86;89;90;100")
option(FLEET_CUDA_UNOPTIMIZED "Compile CUDA kernels with little optimization, for a machine without a GPU (CUDA 13)" OFF)
set(FLEET_STATIC_CONTROL AUTO CACHE STRING "Link the programs of the control plane statically, except glibc: AUTO, ON, OFF")
option(FLEET_PRECOMPILE "Precompile the standard headers" ON)
set(FLEET_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=")
option(FLEET_REPRODUCIBLE "Leave the folders of the sources and of the build out of the programs" OFF)
option(FLEET_COVERAGE "Count executed lines, for gcov" OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1 -DNDEBUG")
if(FLEET_ASSERTIONS)
  add_compile_options(-UNDEBUG)
endif()
if(FLEET_REPRODUCIBLE)  # __FILE__; not always on, because ccache then shares nothing between folders of other names
  set(maps -ffile-prefix-map=${CMAKE_BINARY_DIR}/= -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
  list(JOIN maps "," host_maps)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${maps}>" "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${host_maps}>")
endif()
# Designated initializers omit members with defaults on purpose.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
                    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
# The same behaviour as on x86-64: char is signed, and multiply-adds are not fused outside of the functions that ask for it.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsigned-char> $<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off>
                      $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fsigned-char,-ffp-contract=off>)
endif()
if(FLEET_SANITIZE)
  add_compile_options(-fsanitize=${FLEET_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FLEET_SANITIZE})
  if(FLEET_SANITIZE MATCHES "thread")  # Asio's fences, which the sanitizer does not know, stand beside its locks
    add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
endif()
if(FLEET_COVERAGE)  # atomic: several threads and processes count in one file
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:--coverage> $<$<COMPILE_LANGUAGE:C,CXX>:-fprofile-update=atomic>)
  add_link_options(--coverage)
endif()

find_program(CCACHE ccache)
set(launcher "")
if(DEFINED ENV{FLEET_COMPILE_LOG})  # scripts/build_time.sh, .ci/run
  list(APPEND launcher ${CMAKE_SOURCE_DIR}/scripts/log_compile.sh $ENV{FLEET_COMPILE_LOG})
endif()
if(CCACHE)
  if(FLEET_PRECOMPILE)
    list(APPEND launcher ${CMAKE_SOURCE_DIR}/scripts/cmake/ccache.sh)
    add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>)
  endif()
  list(APPEND launcher ${CCACHE})
endif()
if(launcher)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()
find_program(MOLD mold)  # for scripts/cmake/static_program.cmake only
