# citysplat_embed_text(TARGET NAME files...)
# citysplat_embed_files(TARGET NAME files...)
#
# Compiles text files into TARGET as citysplat::embedded::NAME(), a span of {name, content} in the order given
# (of core/embedded.hpp; declared by the one file that uses it). The name is the stem of the file, or with embed_files
# the whole name. The program carries its sensors, class maps and web page; no data directory to find.
function(citysplat_embed target name part)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded_${name}.cpp)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DNAME=${name} -DPART=${part} "-DFILES=${ARGN}" -P
            ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()

function(citysplat_embed_text target name)
  citysplat_embed(${target} ${name} NAME_WE ${ARGN})
endfunction()

function(citysplat_embed_files target name)
  citysplat_embed(${target} ${name} NAME ${ARGN})
endfunction()
