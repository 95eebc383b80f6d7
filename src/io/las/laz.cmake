# LAZ: laz-perf (npm, WebAssembly) translated to C by wasm2c. tools/fetch-laz-perf brings the module.
set(CITYSPLAT_LAZ_PERF_WASM ${PROJECT_SOURCE_DIR}/build/third_party/laz-perf.wasm CACHE FILEPATH
    "laz-perf 0.0.7 as WebAssembly; without it LAZ files cannot be read")
set(laz_perf_sha256 9c1802bc31b567dd4aa1ce9ab010e7e51e095dc42af8379b474ae6f221a9327f)
find_program(WASM2C wasm2c)
find_path(WASM_RT_INCLUDE_DIR wasm-rt.h PATHS /usr/include NO_DEFAULT_PATH)
mark_as_advanced(WASM2C WASM_RT_INCLUDE_DIR)

target_sources(citysplat_io PRIVATE las/chunk_table.cpp las/chunked_file.cpp las/integer_decoder.cpp las/laz_file.cpp)

if(LASlib_FOUND)
  message(STATUS "LAZ: LASlib in ${LASlib_DIR}")
  target_sources(citysplat_io PRIVATE las/laslib.cpp)
  target_link_libraries(citysplat_io PRIVATE LASlib)
else()
  target_sources(citysplat_io PRIVATE las/laslib_none.cpp)
endif()

set(missing "")
if(NOT EXISTS ${CITYSPLAT_LAZ_PERF_WASM})
  set(missing "run tools/fetch-laz-perf")
elseif(NOT WASM2C OR NOT WASM_RT_INCLUDE_DIR)
  set(missing "install Debian's wabt (wasm2c)")
else()
  file(SHA256 ${CITYSPLAT_LAZ_PERF_WASM} found_sha256)
  if(NOT found_sha256 STREQUAL laz_perf_sha256)
    message(FATAL_ERROR "${CITYSPLAT_LAZ_PERF_WASM} is not laz-perf 0.0.7; remove it and run tools/fetch-laz-perf")
  endif()
endif()
if(missing)
  message(STATUS "LAZ: off; to read LAZ files, ${missing} and configure again")
  target_sources(citysplat_io PRIVATE las/chunk_decoder_none.cpp)
  return()
endif()

message(STATUS "LAZ: laz-perf through ${WASM2C}")
enable_language(C)
set(generated ${CMAKE_CURRENT_BINARY_DIR}/laz_perf_wasm)
add_custom_command(
  OUTPUT ${generated}.c ${generated}.h
  COMMAND ${WASM2C} ${CITYSPLAT_LAZ_PERF_WASM} -n lazperf -o ${generated}.c
  DEPENDS ${CITYSPLAT_LAZ_PERF_WASM}
  COMMENT "Translating laz-perf to C"
  VERBATIM)
# Bounds are checked in the code (no signal handlers); traps are C++ exceptions passing through it.
set(wasm_rt_options WASM_RT_MEMCHECK_SIGNAL_HANDLER=0 WASM_RT_USE_STACK_DEPTH_COUNT=0)
add_library(citysplat_laz_perf OBJECT ${generated}.c)
set_target_properties(citysplat_laz_perf PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_compile_options(citysplat_laz_perf PRIVATE -w -O2 -fexceptions)
target_compile_definitions(citysplat_laz_perf PRIVATE ${wasm_rt_options})
if(CITYSPLAT_FUZZ)
  # Edges, not comparisons: every access to memory compares with its bounds.
  target_compile_options(citysplat_laz_perf PRIVATE -fsanitize-coverage=inline-8bit-counters,pc-table)
endif()
target_sources(citysplat_io PRIVATE las/chunk_decoder_wasm.cpp $<TARGET_OBJECTS:citysplat_laz_perf>)
set_source_files_properties(las/chunk_decoder_wasm.cpp PROPERTIES
  INCLUDE_DIRECTORIES ${CMAKE_CURRENT_BINARY_DIR}
  OBJECT_DEPENDS ${generated}.h
  COMPILE_DEFINITIONS "${wasm_rt_options}")
