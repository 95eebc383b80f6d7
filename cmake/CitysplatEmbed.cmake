# citysplat_embed_text(TARGET NAME files...)
#
# Compiles text files into TARGET as citysplat::embedded::NAME(), a span of {stem, content} in the order given
# (of core/embedded.hpp; declared by the one file that uses it). The program carries its sensors and class maps; no data directory to find.
function(citysplat_embed_text target name)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded_${name}.cpp)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DNAME=${name} "-DFILES=${ARGN}" -P
            ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
