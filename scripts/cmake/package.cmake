# Installation and packages (docs/how-to/packaging.md). Everything is relocatable: programs find their libraries in
# ../lib/fleetrun. glibc, the GPU driver and the CUDA libraries come from the machine.
#
#   runtime    the programs, the backends' plugins, third-party libraries, job files, man pages, completion
#   checks     files for scripts/gpu_check.sh and gpu_bench.sh: tests labelled gpu, their helpers, golden values.
#              Only in the portable tarball (scripts/portable.sh)
#
# Include it last, because it inspects the existing targets.
set(FLEET_LIBRARY_FOLDER lib/fleetrun)

# Collects all targets of one kind in the folder and below.
function(fleet_collect_targets folder kind result)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  set(found ${${result}})
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL kind)
      list(APPEND found ${target})
    endif()
  endforeach()
  foreach(below ${folders})
    fleet_collect_targets(${below} ${kind} found)
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

set(FLEET_PROGRAMS)
foreach(program fleetrun fleet-worker)
  if(TARGET ${program})
    list(APPEND FLEET_PROGRAMS ${program})
  endif()
endforeach()
fleet_collect_targets(${CMAKE_SOURCE_DIR}/lib MODULE_LIBRARY FLEET_PLUGINS)

# Tests labelled gpu, and helpers that they need: set_property(TARGET helper PROPERTY FLEET_GPU_CHECK ON).
set(FLEET_CHECKS)
set(gpu_tests)
if(FLEET_BUILD_TESTS)
  fleet_collect_targets(${CMAKE_SOURCE_DIR}/tests EXECUTABLE executables)
  foreach(target ${executables})
    get_target_property(label ${target} FLEET_TEST_LABEL)
    get_target_property(helper ${target} FLEET_GPU_CHECK)
    if(label STREQUAL gpu)
      list(APPEND gpu_tests ${target})
    endif()
    if(label STREQUAL gpu OR helper)
      list(APPEND FLEET_CHECKS ${target})
    endif()
  endforeach()
  # gpu_check.sh runs the tests in this list, in a build tree and in the tarball.
  list(JOIN gpu_tests "\n" lines)
  file(CONFIGURE OUTPUT ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/gpu_tests.txt CONTENT "${lines}\n" @ONLY)
endif()
add_custom_target(portable_files DEPENDS pages ${FLEET_PROGRAMS} ${FLEET_PLUGINS} ${FLEET_CHECKS})

# DT_RPATH, not DT_RUNPATH: only DT_RPATH also applies to libraries of libraries (libgloo's libhiredis).
foreach(program ${FLEET_PROGRAMS} ${FLEET_CHECKS})
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../${FLEET_LIBRARY_FOLDER}")
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
endforeach()
# DT_RUNPATH: LD_LIBRARY_PATH comes first, as a user with several versions of CUDA expects.
foreach(plugin ${FLEET_PLUGINS})
  set_target_properties(${plugin} PROPERTIES INSTALL_RPATH "$ORIGIN:/usr/local/cuda/lib64")
  target_link_options(${plugin} PRIVATE -Wl,--enable-new-dtags)
endforeach()

install(TARGETS ${FLEET_PROGRAMS} RUNTIME_DEPENDENCY_SET fleet_libraries RUNTIME DESTINATION bin COMPONENT runtime)
# A link to fleetrun.
install(PROGRAMS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/fleetd DESTINATION bin COMPONENT runtime)
if(FLEET_PLUGINS)
  # Their dependencies are not collected: apart from CUDA's, they need the same libraries as the programs.
  install(TARGETS ${FLEET_PLUGINS} LIBRARY DESTINATION ${FLEET_LIBRARY_FOLDER} COMPONENT runtime)
endif()
if(FLEET_CHECKS)
  install(TARGETS ${FLEET_CHECKS} RUNTIME_DEPENDENCY_SET fleet_check_libraries
          RUNTIME DESTINATION bin COMPONENT checks EXCLUDE_FROM_ALL)
  install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/gpu_tests.txt DESTINATION bin COMPONENT checks EXCLUDE_FROM_ALL)
endif()
# Libraries of glibc and CUDA.
set(machine_libraries "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|util|mvec|nss_.*)\\.so" "^libcuda" "^libcu[a-z]+(Lt)?\\.so"
    "^libnv" "^libnccl" "^libcudnn")
install(RUNTIME_DEPENDENCY_SET fleet_libraries PRE_EXCLUDE_REGEXES ${machine_libraries}
        LIBRARY DESTINATION ${FLEET_LIBRARY_FOLDER} COMPONENT runtime)
if(FLEET_CHECKS)
  install(RUNTIME_DEPENDENCY_SET fleet_check_libraries PRE_EXCLUDE_REGEXES ${machine_libraries}
          LIBRARY DESTINATION ${FLEET_LIBRARY_FOLDER} COMPONENT checks EXCLUDE_FROM_ALL)
endif()
# The tarball has the same layout as the repository, so that the same commands work in both.
foreach(folder config scripts/gpu tests/golden tests/bench/jobs tests/bench/peers)
  install(DIRECTORY ${folder}/ DESTINATION ${folder} COMPONENT checks EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE)
endforeach()
foreach(script common cuda_libraries gpu_bench gpu_check install)
  install(PROGRAMS scripts/${script}.sh DESTINATION scripts COMPONENT checks EXCLUDE_FROM_ALL)
endforeach()
install(FILES VERSION README.md LICENSE DESTINATION . COMPONENT checks EXCLUDE_FROM_ALL)
install(DIRECTORY config/ DESTINATION share/fleetrun/config COMPONENT runtime)
install(FILES ${CMAKE_BINARY_DIR}/share/fleetrun.1 ${CMAKE_BINARY_DIR}/share/fleetd.1
              ${CMAKE_BINARY_DIR}/share/fleet-worker.1 DESTINATION share/man/man1
        COMPONENT runtime)
install(FILES ${CMAKE_BINARY_DIR}/share/fleetrun.bash DESTINATION share/bash-completion/completions RENAME fleetrun
        COMPONENT runtime)
install(FILES ${CMAKE_BINARY_DIR}/share/fleetrun.fish DESTINATION share/fish/vendor_completions.d COMPONENT runtime)
install(FILES ${CMAKE_BINARY_DIR}/share/_fleetrun DESTINATION share/zsh/site-functions COMPONENT runtime)
install(FILES README.md LICENSE DESTINATION share/doc/fleetrun COMPONENT runtime)
# Keeps the folder, so that links between README.md and the pages work.
install(DIRECTORY docs DESTINATION share/doc/fleetrun COMPONENT runtime
        FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN examples EXCLUDE)

set(CPACK_PACKAGE_NAME fleetrun)
set(CPACK_PACKAGE_VERSION ${FLEET_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Starts and runs distributed training on one machine or a cluster")
set(CPACK_PACKAGE_FILE_NAME fleetrun-${FLEET_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_CONTACT "the fleetrun authors")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36)")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "the fleetrun authors <fleetrun@localhost>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR OFF)
include(CPack)
