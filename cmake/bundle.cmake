# Makes an archive of the program with the libraries it needs, for machines that have a C library as new as this
# one's and nothing else: cmake -DBUILD_DIR=… -DOUT=… -DNAME=… -P bundle.cmake
# Needs patchelf (Debian: patchelf).
cmake_minimum_required(VERSION 3.25)
find_program(PATCHELF patchelf)
if(NOT PATCHELF)
  message(FATAL_ERROR "patchelf is missing: apt-get install patchelf")
endif()
find_file(PROJ_DATABASE proj.db PATHS /usr/share/proj /usr/local/share/proj)
if(NOT PROJ_DATABASE)
  message(FATAL_ERROR "proj.db is missing: apt-get install proj-data")
endif()

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()

set(root ${OUT}/${NAME})
file(REMOVE_RECURSE ${root})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${root} --component program --strip)
set(program ${root}/bin/citysplat)
set(libraries ${root}/lib/citysplat)

# What belongs to the C library stays out: it must fit the kernel and the loader of the machine.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${program} RESOLVED_DEPENDENCIES_VAR needed
     PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|util)\\.so")
run(${PATCHELF} --set-rpath "$ORIGIN/../lib/citysplat" ${program})
foreach(library ${needed})
  file(COPY ${library} DESTINATION ${libraries} FOLLOW_SYMLINK_CHAIN)
  get_filename_component(name ${library} NAME)
  file(REAL_PATH ${libraries}/${name} copy)
  run(${PATCHELF} --set-rpath "$ORIGIN" ${copy})
endforeach()
# PROJ looks for its database beside its library.
file(COPY ${PROJ_DATABASE} DESTINATION ${root}/lib/share/proj)
# Whose libraries these are: the licences of the Debian packages they come from.
foreach(library ${needed})
  file(REAL_PATH ${library} real)
  execute_process(COMMAND dpkg-query --search ${real} OUTPUT_VARIABLE owner ERROR_QUIET)
  string(REGEX REPLACE "[:,].*" "" package "${owner}")
  if(EXISTS /usr/share/doc/${package}/copyright)
    configure_file(/usr/share/doc/${package}/copyright ${root}/share/doc/citysplat/licences/${package} COPYONLY)
  endif()
endforeach()

execute_process(COMMAND ${CMAKE_COMMAND} -E tar czf ${NAME}.tar.gz --format=gnutar ${NAME}
                WORKING_DIRECTORY ${OUT} COMMAND_ERROR_IS_FATAL ANY)
message(STATUS "${OUT}/${NAME}.tar.gz")
