# Finds the headers of the OptiX SDK (7.7 or newer); there is nothing to link, the library comes with the driver.
# Looks at OptiX_ROOT (variable or environment), OptiX_INSTALL_DIR, OPTIX_PATH and the places the installer proposes,
# newest first. Defines OptiX::OptiX, OptiX_INCLUDE_DIR, OptiX_VERSION.
file(GLOB _OptiX_places LIST_DIRECTORIES true
  "$ENV{HOME}/NVIDIA-OptiX-SDK-*" "/opt/NVIDIA-OptiX-SDK-*" "/usr/local/NVIDIA-OptiX-SDK-*" "/opt/nvidia/optix*")
list(SORT _OptiX_places COMPARE NATURAL ORDER DESCENDING)
find_path(OptiX_INCLUDE_DIR NAMES optix_stubs.h
  HINTS ${OptiX_ROOT} ENV OptiX_ROOT ${OptiX_INSTALL_DIR} ENV OptiX_INSTALL_DIR ENV OPTIX_PATH
  PATHS ${_OptiX_places}
  PATH_SUFFIXES include)
unset(_OptiX_places)

if(OptiX_INCLUDE_DIR)
  file(STRINGS "${OptiX_INCLUDE_DIR}/optix.h" _OptiX_line REGEX "^#define OPTIX_VERSION +[0-9]+")
  if(_OptiX_line MATCHES "OPTIX_VERSION +([0-9]+)")
    math(EXPR _OptiX_major "${CMAKE_MATCH_1} / 10000")
    math(EXPR _OptiX_minor "${CMAKE_MATCH_1} % 10000 / 100")
    math(EXPR _OptiX_patch "${CMAKE_MATCH_1} % 100")
    set(OptiX_VERSION "${_OptiX_major}.${_OptiX_minor}.${_OptiX_patch}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OptiX REQUIRED_VARS OptiX_INCLUDE_DIR VERSION_VAR OptiX_VERSION)
if(OptiX_FOUND AND NOT TARGET OptiX::OptiX)
  add_library(OptiX::OptiX INTERFACE IMPORTED)
  set_target_properties(OptiX::OptiX PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${OptiX_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
endif()
mark_as_advanced(OptiX_INCLUDE_DIR)
