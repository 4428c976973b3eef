# The CUDA backend: its host code in cuda/host, and the kernels' text, which is compiled at run time. Nothing of CUDA is
# needed to build.
#
# AKUNU_CUDA  AUTO  on where the target is Linux
#             ON
#             OFF

set(AKUNU_CUDA AUTO CACHE STRING "CUDA backend: AUTO, ON or OFF")
set_property(CACHE AKUNU_CUDA PROPERTY STRINGS AUTO ON OFF)

# Adds the backend to <target>.
function(akunu_add_cuda target)
  if(NOT AKUNU_CUDA OR (AKUNU_CUDA STREQUAL "AUTO" AND NOT CMAKE_SYSTEM_NAME STREQUAL "Linux"))
    return()
  endif()
  find_package(Python COMPONENTS Interpreter REQUIRED)
  set(tools ${PROJECT_SOURCE_DIR}/tools)
  set(text ${CMAKE_CURRENT_BINARY_DIR}/cuda_kernel_source.cpp)
  add_custom_command(
    OUTPUT ${text}
    COMMAND ${Python_EXECUTABLE} -m tools.kernel_text --output ${text} --depfile ${text}.d
    DEPENDS ${tools}/kernel_text.py ${tools}/texts.py ${PROJECT_SOURCE_DIR}/cuda/kernels/interpreter.cu
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    DEPFILE ${text}.d
    COMMENT "CUDA kernels as text"
    VERBATIM)
  akunu_add_text(${target} akunu_cuda_text ${text})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cuda/host/*.cpp)
  target_sources(${target} PRIVATE ${sources})
  # The one file that asks: the other objects are then the same with CUDA and without.
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/cpp/engine/registry.cpp APPEND PROPERTY COMPILE_DEFINITIONS AKUNU_CUDA=1)
  target_link_libraries(${target} PUBLIC ${CMAKE_DL_LIBS})
endfunction()
