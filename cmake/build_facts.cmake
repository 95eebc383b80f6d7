# cmake -DOUT=header -DSOURCE=repository -P build_facts.cmake
#
# Writes which commit the sources are, if git can say it. The header changes only when the answer does.
execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude *
                WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR NOT revision)
  set(revision "unknown")
endif()
set(text "#define CITYSPLAT_REVISION \"${revision}\"\n")
if(EXISTS ${OUT})
  file(READ ${OUT} known)
endif()
if(NOT "${known}" STREQUAL "${text}")
  file(WRITE ${OUT} "${text}")
endif()
