# cmake --install: the program, the libraries, their headers and a CMake package (find_package(citysplat)).
include(CMakePackageConfigHelpers)
get_property(libraries GLOBAL PROPERTY CITYSPLAT_LIBRARIES)
install(TARGETS citysplat RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${libraries} EXPORT citysplat-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/citysplat FILES_MATCHING PATTERN "*.hpp")
install(DIRECTORY datasets DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/citysplat FILES_MATCHING PATTERN "*.hpp"
        PATTERN classes EXCLUDE)
install(DIRECTORY datasets DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/citysplat FILES_MATCHING PATTERN "*.hpp")
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/citysplat)
install(EXPORT citysplat-targets NAMESPACE citysplat:: DESTINATION ${package_dir})
configure_package_config_file(cmake/citysplat-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/citysplat-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/citysplat-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/citysplat-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/citysplat-config-version.cmake
              cmake/FindxxHash.cmake DESTINATION ${package_dir})
