# Installs the files for writing your own trainer (component development; not in the packages): libfleetrun.so, the engine's
# headers below include/fleetrun, find_package(fleetrun) and the examples. Include it after the target fleetrun_library.
include(CMakePackageConfigHelpers)
set(FLEET_SDK_CMAKE lib/cmake/fleetrun)

set_target_properties(fleetrun_library PROPERTIES INSTALL_RPATH "$ORIGIN/fleetrun")
target_link_options(fleetrun_library PRIVATE -Wl,--disable-new-dtags)
# Headers include each other by module ("graph/program.h"); programs include <fleetrun/api/fleet.h>.
target_include_directories(fleetrun_library INTERFACE $<INSTALL_INTERFACE:include> $<INSTALL_INTERFACE:include/fleetrun>)
install(TARGETS fleetrun_library EXPORT fleetrunTargets LIBRARY DESTINATION lib COMPONENT development)
install(EXPORT fleetrunTargets NAMESPACE fleetrun:: DESTINATION ${FLEET_SDK_CMAKE} COMPONENT development)
foreach(module common/base common/observe common/store engine/tensor engine/comm engine/graph engine/ops engine/optim
               engine/models engine/passes engine/strategy engine/exec engine/data engine/train engine/api)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/lib/${module} DESTINATION include/fleetrun COMPONENT development FILES_MATCHING
          PATTERN "*.h" PATTERN meta EXCLUDE PATTERN nccl EXCLUDE)
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/proto/gen/proto/strategy.pb.h DESTINATION include/fleetrun/proto COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fleetrunConfig.cmake.in ${CMAKE_BINARY_DIR}/fleetrunConfig.cmake
                              INSTALL_DESTINATION ${FLEET_SDK_CMAKE})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/fleetrunConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/fleetrunConfig.cmake ${CMAKE_BINARY_DIR}/fleetrunConfigVersion.cmake
        DESTINATION ${FLEET_SDK_CMAKE} COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/examples DESTINATION share/fleetrun COMPONENT development)
