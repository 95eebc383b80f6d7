# cmake --install: the program, the libraries, their headers and a CMake package (find_package(citysplat)).
include(CMakePackageConfigHelpers)
# The library behind the public headers, and what it is made of.
set(libraries citysplat_api citysplat_core citysplat_model citysplat_io citysplat_adjust citysplat_tiling citysplat_splat citysplat_mesh citysplat_trace
    citysplat_objects citysplat_sim)
install(TARGETS citysplat RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
set(manual ${PROJECT_BINARY_DIR}/tools/citysplat/manual)
install(DIRECTORY ${manual}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program FILES_MATCHING PATTERN *.1.gz)
install(FILES ${manual}/citysplat.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME citysplat COMPONENT program)
install(FILES ${manual}/_citysplat DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT program)
install(FILES ${manual}/citysplat.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
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

# What Debian wants to lie beside every package: whose it is, and what changed.
string(TIMESTAMP today "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT debian/copyright CONTENT [[Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: citysplat

Files: *
Copyright: 2026, the authors of citysplat
License: Apache-2.0
 On Debian systems the whole text is in /usr/share/common-licenses/Apache-2.0.
]])
file(CONFIGURE OUTPUT debian/changelog CONTENT [[citysplat (@PROJECT_VERSION@) unstable; urgency=medium

  * What changed is in CHANGELOG.md.

 -- the citysplat maintainers <maintainers@citysplat.example>  @today@
]] @ONLY)
execute_process(COMMAND gzip -9nkf ${PROJECT_BINARY_DIR}/debian/changelog COMMAND_ERROR_IS_FATAL ANY)
function(debian_papers package component)
  install(FILES ${PROJECT_BINARY_DIR}/debian/copyright ${PROJECT_BINARY_DIR}/debian/changelog.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
endfunction()
debian_papers(citysplat program)
debian_papers(libcitysplat-dev development)
debian_papers(python3-citysplat python)

# cpack -G DEB: citysplat (the program), libcitysplat-dev (libraries, headers, CMake package) and python3-citysplat; cpack -G TGZ: the same
# as archives. The packages that they depend on are found in what was linked.
set(CPACK_PACKAGE_NAME citysplat)
set(CPACK_PACKAGE_VENDOR citysplat)
set(CPACK_PACKAGE_CONTACT "the citysplat maintainers <maintainers@citysplat.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "splat models of cities from LiDAR, and simulated LiDARs in them")
set(about "Clouds of mobile-mapping drives, larger than memory, become small\noriented discs or meshes, tile by tile, in a directory indexed by\nSQLite; simulated LiDARs drive through them.")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "${about}\n.\nThis is the program, with its manual pages and completions.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "${about}\n.\nThese are the libraries, their headers and the CMake package.")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "${about}\n.\nThis is the Python module.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program development)
if(TARGET citysplat_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME citysplat)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libcitysplat-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
# Static libraries: who links them needs the libraries behind them.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libembree-dev, libtbb-dev, libhwy-dev, libeigen3-dev, libnanoflann-dev, libsqlite3-dev, libzstd-dev, libxxhash-dev, \
libproj-dev, libpng-dev, libexpat1-dev, libmicrohttpd-dev, nlohmann-json3-dev, libtomlplusplus-dev")
# Coordinate systems are looked up in the database of PROJ when the program runs.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "proj-data")
# The module is for one version of the interpreter.
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-citysplat)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "${CITYSPLAT_PYTHON_DEPENDS}")
include(CPack)

# An archive of the program with its libraries, for machines without them.
add_custom_target(bundle
  COMMAND ${CMAKE_COMMAND} -DBUILD_DIR=${PROJECT_BINARY_DIR} -DOUT=${PROJECT_BINARY_DIR}/bundle
          -DNAME=citysplat-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}
          -P ${PROJECT_SOURCE_DIR}/cmake/bundle.cmake
  DEPENDS citysplat VERBATIM)
