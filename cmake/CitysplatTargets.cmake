# How every target of the project is compiled: C++20, strict IEEE arithmetic, warnings, sanitizers.
#
#   citysplat_library(NAME SOURCES ... PUBLIC ... PRIVATE ...)   static library citysplat::NAME, includes rooted at src/
#   citysplat_flags(TARGET)                                      the flags alone, for executables
#   citysplat_thin(TARGET)                                       thin code over large headers, see there

function(citysplat_flags target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  # Results must not depend on the machine: no contraction to FMA, no fast-math anywhere.
  target_compile_options(${target} PRIVATE -ffp-contract=off -Wall -Wextra -Wconversion -Wshadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)  # GCC bug 105651: false alarm in std::string
  endif()
  if(CITYSPLAT_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(CITYSPLAT_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(CITYSPLAT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${CITYSPLAT_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # The instrumentation makes gcc suspect the standard library of reading what was never set.
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
    target_link_options(${target} PUBLIC -fsanitize=${CITYSPLAT_SANITIZE})
  endif()
endfunction()

function(citysplat_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target citysplat_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(citysplat::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  citysplat_flags(${target})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
endfunction()

# Tests are thin code over large headers: optimising them fully only makes the build slower, and the headers are parsed
# once, either HEADERS here or those of another target (REUSE_FROM TARGET). A source must still include what it uses; the
# build with AddressSanitizer precompiles nothing and notices.
function(citysplat_thin target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(NOT CITYSPLAT_SANITIZE MATCHES "address")
    target_precompile_headers(${target} ${ARGN})
  endif()
endfunction()
