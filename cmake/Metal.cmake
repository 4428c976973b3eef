# The Metal backend: its host code in metal/host, what needs no Metal in metal/choose, and the kernels' texts.
#
# AKUNU_METAL  AUTO      on where the target is macOS
#              ON        required: the target must be macOS
#              EMULATED  on Linux, run by tests/metal_emulator; needs clang >= 16
#              OFF

set(AKUNU_METAL AUTO CACHE STRING "Metal backend: AUTO, ON, EMULATED or OFF")
set_property(CACHE AKUNU_METAL PROPERTY STRINGS AUTO ON EMULATED OFF)

set(AKUNU_METAL_ROOT ${CMAKE_CURRENT_LIST_DIR}/../metal)
get_filename_component(AKUNU_METAL_ROOT ${AKUNU_METAL_ROOT} ABSOLUTE)

string(TOUPPER "${AKUNU_METAL}" AKUNU_METAL_MODE)
if(AKUNU_METAL_MODE STREQUAL "AUTO")
  set(AKUNU_METAL_MODE OFF)
  if(APPLE)
    set(AKUNU_METAL_MODE ON)
  endif()
endif()
if(AKUNU_METAL_MODE AND NOT AKUNU_METAL_MODE STREQUAL "EMULATED")
  enable_language(OBJCXX)  # in a function it would have no effect outside
endif()

# One C++ file with every kernel file's text.
function(akunu_kernel_sources result)
  find_package(Python COMPONENTS Interpreter REQUIRED)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/kernel_sources.cpp)
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${AKUNU_METAL_ROOT}/kernels/*.metal)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${Python_EXECUTABLE} -m tools.flatten --compiler=${CMAKE_CXX_COMPILER}
            --output ${output} --depfile ${output}.d -I ${AKUNU_METAL_ROOT}/include -I ${PROJECT_SOURCE_DIR}/cpp
            -I ${PROJECT_SOURCE_DIR} -- ${kernels}
    DEPENDS ${PROJECT_SOURCE_DIR}/tools/flatten.py ${PROJECT_SOURCE_DIR}/tools/texts.py ${kernels}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    DEPFILE ${output}.d
    COMMENT "Metal kernels as text"
    VERBATIM)
  set(${result} ${output} PARENT_SCOPE)
endfunction()

# akunu.metallib, where Apple's Metal compiler is; else the kernels are compiled when first used.
function(akunu_compile_kernels)
  # Run, not only found: Xcode 26 has a stub of it until the Metal toolchain is downloaded.
  execute_process(COMMAND xcrun -sdk macosx metal --version RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  if(missing)
    return()
  endif()
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${AKUNU_METAL_ROOT}/kernels/*.metal)
  set(objects)
  foreach(kernel IN LISTS kernels)
    file(RELATIVE_PATH name ${AKUNU_METAL_ROOT}/kernels ${kernel})
    string(REPLACE "/" "-" name ${name})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/kernels/${name}.air)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/kernels
      COMMAND xcrun -sdk macosx metal -std=metal3.0 -mmacosx-version-min=13.0 -O2 -Wall -I ${AKUNU_METAL_ROOT}/include
              -I ${PROJECT_SOURCE_DIR}/cpp -I ${PROJECT_SOURCE_DIR} -MD -MF ${object}.d -c ${kernel} -o ${object}
      DEPENDS ${kernel}
      DEPFILE ${object}.d
      COMMENT "metal ${name}"
      VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(library ${CMAKE_CURRENT_BINARY_DIR}/akunu.metallib)
  add_custom_command(OUTPUT ${library} COMMAND xcrun -sdk macosx metallib ${objects} -o ${library} DEPENDS ${objects}
                     COMMENT "akunu.metallib" VERBATIM)
  add_custom_target(akunu_metallib ALL DEPENDS ${library})
  install(FILES ${library} DESTINATION akunu)
endfunction()

# Adds the backend to <target>.
function(akunu_add_metal target)
  # Plans need no Metal: see metal/choose/plan_device.h.
  file(GLOB sources CONFIGURE_DEPENDS ${AKUNU_METAL_ROOT}/choose/*.cpp)
  target_sources(${target} PRIVATE ${sources})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  set(mode ${AKUNU_METAL_MODE})
  if(NOT mode)
    return()
  endif()
  akunu_kernel_sources(kernel_sources)
  file(GLOB objective CONFIGURE_DEPENDS ${AKUNU_METAL_ROOT}/host/*.mm)
  akunu_add_text(${target} akunu_metal_text ${kernel_sources})
  # The one file that asks: the other objects are then the same with Metal and without.
  set(registry ${PROJECT_SOURCE_DIR}/cpp/engine/registry.cpp)
  set_property(SOURCE ${registry} APPEND PROPERTY COMPILE_DEFINITIONS AKUNU_METAL=1)
  if(mode STREQUAL "EMULATED")
    set_property(SOURCE ${registry} APPEND PROPERTY COMPILE_DEFINITIONS AKUNU_METAL_EMULATED=1)
    # Where the tests expect it: process and tests must share one emulator.
    set(folder ${PROJECT_SOURCE_DIR}/build/metal-emulator)
    if(DEFINED ENV{AKUNU_METAL_EMULATOR_DIR})
      set(folder $ENV{AKUNU_METAL_EMULATOR_DIR})
    endif()
    find_package(Python COMPONENTS Interpreter REQUIRED)
    add_custom_target(fake_metal
      COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${PROJECT_SOURCE_DIR}/tests ${Python_EXECUTABLE} -m metal_emulator.build
      BYPRODUCTS ${folder}/libfake_metal.so
      COMMENT "Metal emulator" VERBATIM)
    set_target_properties(fake_metal PROPERTIES AKUNU_LIBRARY ${folder}/libfake_metal.so)
    include(${PROJECT_SOURCE_DIR}/cmake/MetalEmulator.cmake)
    akunu_find_emulator_clang(clang)
    if(NOT clang)
      message(FATAL_ERROR "AKUNU_METAL=EMULATED needs clang++ >= 16: install clang-19, or set AKUNU_CLANG to one")
    endif()
    akunu_metal_on_emulator(${target} SOURCES ${objective} INCLUDE ${PROJECT_SOURCE_DIR}/cpp ${PROJECT_SOURCE_DIR}
                            DEFINE AKUNU_METAL=1)
    set(CMAKE_INSTALL_RPATH ${folder} PARENT_SCOPE)  # an installed module finds the emulator where it is
  else()
    akunu_compile_kernels()
    target_sources(${target} PRIVATE ${objective})
    set_source_files_properties(${objective} PROPERTIES COMPILE_OPTIONS -fobjc-arc)
    set_target_properties(${target} PROPERTIES OBJCXX_STANDARD 20 OBJCXX_STANDARD_REQUIRED ON)
    # Nothing of CoreGraphics is called, but without it MTLCreateSystemDefaultDevice() finds no device.
    target_link_libraries(${target} PUBLIC "-framework Metal" "-framework Foundation" "-framework IOKit"
                          "-framework CoreFoundation" "-Wl,-needed_framework,CoreGraphics")
  endif()
  message(STATUS "Metal backend: ${mode}")
endfunction()
