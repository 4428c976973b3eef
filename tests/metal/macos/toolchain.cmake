# Builds for macOS on arm64 without a Mac: zig has a compiler, a linker and the C library's declarations; the frameworks'
# are those of tests/metal_emulator/sdk, and what they export is listed in stubs/.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_OSX_SYSROOT "" CACHE STRING "")
set(CMAKE_OSX_DEPLOYMENT_TARGET "" CACHE STRING "")  # in the compilers' target

# AKUNU_ZIG is the folder of zig-c++ and its kin, which the test writes.
set(zig $ENV{AKUNU_ZIG})
set(CMAKE_CXX_COMPILER ${zig}/zig-c++)
set(CMAKE_OBJCXX_COMPILER ${zig}/zig-c++)
set(CMAKE_AR ${zig}/zig-ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${zig}/zig-ranlib CACHE FILEPATH "")
set(CMAKE_STRIP "" CACHE FILEPATH "")
set(CMAKE_INSTALL_NAME_TOOL true CACHE FILEPATH "")

set(stubs ${CMAKE_CURRENT_LIST_DIR}/stubs)
set(CMAKE_OBJCXX_FLAGS_INIT "-isystem ${CMAKE_CURRENT_LIST_DIR}/../../metal_emulator/sdk -fblocks")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-F ${stubs}/Frameworks -L ${stubs} -lobjc -undefined dynamic_lookup")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "${CMAKE_SHARED_LINKER_FLAGS_INIT}")
