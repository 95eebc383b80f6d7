# cmake --install: the program, the libraries, their headers and a CMake package (find_package(citysplat)).
include(CMakePackageConfigHelpers)
# The library behind the public headers, and what it is made of.
set(libraries citysplat_api citysplat_core citysplat_model citysplat_io citysplat_adjust citysplat_tiling citysplat_splat citysplat_trace
    citysplat_objects citysplat_sim)
install(TARGETS citysplat RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${libraries} EXPORT citysplat-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/citysplat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/citysplat)
install(EXPORT citysplat-targets NAMESPACE citysplat:: DESTINATION ${package_dir})
configure_package_config_file(cmake/citysplat-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/citysplat-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/citysplat-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/citysplat-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/citysplat-config-version.cmake
              cmake/FindxxHash.cmake DESTINATION ${package_dir})
