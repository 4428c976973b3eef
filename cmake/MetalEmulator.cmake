# Building with clang next to whatever compiler the project uses: the Metal emulator's libraries,
# and Objective-C++ sources that run on it.

set(AKUNU_EMULATOR_ROOT ${CMAKE_CURRENT_LIST_DIR}/../tests/metal_emulator)
get_filename_component(AKUNU_EMULATOR_ROOT ${AKUNU_EMULATOR_ROOT} ABSOLUTE)

# Sets <result> to a clang++ >= 16, or to an empty string.  AKUNU_CLANG (environment) comes first.
function(akunu_find_emulator_clang result)
  set(names $ENV{AKUNU_CLANG})
  foreach(version RANGE 23 16 -1)
    list(APPEND names clang++-${version})
  endforeach()
  list(APPEND names clang++)
  foreach(name IN LISTS names)
    find_program(found ${name} NO_CACHE)
    if(found)
      execute_process(COMMAND ${found} --version OUTPUT_VARIABLE text ERROR_QUIET)
      if(text MATCHES "clang version ([0-9]+)" AND CMAKE_MATCH_1 GREATER_EQUAL 16)
        set(${result} ${found} PARENT_SCOPE)
        return()
      endif()
    endif()
    unset(found)
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

# Flags for Objective-C++ against the emulator: Apple's ABI (the runtime in objc/ implements it),
# Apple's frameworks from sdk/.  ARC or not is the caller's.
set(AKUNU_EMULATOR_OBJCXX_FLAGS -x objective-c++ -fobjc-runtime=macosx-13.0 -fblocks -fexceptions
    -isystem ${AKUNU_EMULATOR_ROOT}/sdk -Wno-objc-root-class)

# Compiles <source> with the emulator's clang; sets <result> to the object file.
function(akunu_emulator_object result target source)
  cmake_parse_arguments(arg "" "" "FLAGS" ${ARGN})
  get_filename_component(name ${source} NAME)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}.dir/${name}.o)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${target}.dir)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${AKUNU_EMULATOR_CLANG} ${arg_FLAGS} -MD -MF ${object}.d -c ${source} -o ${object}
    DEPENDS ${source}
    DEPFILE ${object}.d
    COMMENT "clang ${target}/${name}"
    VERBATIM COMMAND_EXPAND_LISTS)
  set(${result} ${object} PARENT_SCOPE)
endfunction()

# A shared library lib<target>.so of <sources>, built with the emulator's clang.
# FLAGS: compile and link; OBJCXX_FLAGS: only for .mm; LINK: only at the link; DEPENDS: targets.
function(akunu_emulator_library target sources)
  cmake_parse_arguments(arg "EXECUTABLE" "" "FLAGS;OBJCXX_FLAGS;LINK;DEPENDS" ${ARGN})
  set(objects)
  foreach(source IN LISTS sources)
    set(flags ${arg_FLAGS})
    if(source MATCHES "\\.mm$")
      list(APPEND flags ${AKUNU_EMULATOR_OBJCXX_FLAGS} ${arg_OBJCXX_FLAGS})
    endif()
    akunu_emulator_object(object ${target} ${source} FLAGS ${flags})
    list(APPEND objects ${object})
  endforeach()
  if(arg_EXECUTABLE)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/${target})
    set(kind)
    set(name ${target}_program)  # a target cannot be called as the file it makes
  else()
    set(output ${CMAKE_CURRENT_BINARY_DIR}/lib${target}.so)
    set(kind -shared)
    set(name ${target})
  endif()
  set(link_flags ${arg_FLAGS})
  list(FILTER link_flags EXCLUDE REGEX "^-W[a-z]")
  # Put in place whole: other processes load it while tests build what is out of date.
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${AKUNU_EMULATOR_CLANG} ${link_flags} ${kind} ${objects} ${arg_LINK}
            -L${CMAKE_CURRENT_BINARY_DIR} -Wl,-rpath,${CMAKE_CURRENT_BINARY_DIR} -ldl -o ${output}.part
    COMMAND mv ${output}.part ${output}
    DEPENDS ${objects} ${arg_DEPENDS}
    COMMENT "clang ${target}"
    VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${name} ALL DEPENDS ${output})
  set_target_properties(${name} PROPERTIES AKUNU_LIBRARY ${output})
endfunction()

# Adds Objective-C++ sources (ARC) to <target>, an ordinary target of any compiler, and links it to
# the emulator.  INCLUDE: include folders; DEFINE: definitions; STANDARD: C++ standard (20).
# Call add_subdirectory(tests/metal_emulator) first.
function(akunu_metal_on_emulator target)
  cmake_parse_arguments(arg "" "STANDARD" "SOURCES;INCLUDE;DEFINE" ${ARGN})
  if(NOT arg_STANDARD)
    set(arg_STANDARD 20)
  endif()
  akunu_find_emulator_clang(AKUNU_EMULATOR_CLANG)
  set(flags -std=c++${arg_STANDARD} -O2 -g1 -fPIC -pthread -Wall -Wextra -Wpedantic -Werror -Wno-gnu -Wno-nullability-extension)
  foreach(folder IN LISTS arg_INCLUDE)
    list(APPEND flags -I${folder})
  endforeach()
  foreach(definition IN LISTS arg_DEFINE)
    list(APPEND flags -D${definition})
  endforeach()
  foreach(source IN LISTS arg_SOURCES)
    akunu_emulator_object(object ${target} ${source} FLAGS ${flags} ${AKUNU_EMULATOR_OBJCXX_FLAGS} -fobjc-arc)
    target_sources(${target} PRIVATE ${object})
  endforeach()
  akunu_emulator_object(object ${target} ${AKUNU_EMULATOR_ROOT}/objc/module.cpp FLAGS ${flags})
  target_sources(${target} PRIVATE ${object})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_link_libraries(${target} INTERFACE ${object})  # every program and module needs its own; nothing refers to it
  endif()
  get_target_property(library fake_metal AKUNU_LIBRARY)
  get_filename_component(folder ${library} DIRECTORY)
  target_link_libraries(${target} PRIVATE ${library})
  set_property(TARGET ${target} APPEND PROPERTY BUILD_RPATH ${folder})
  add_dependencies(${target} fake_metal)
endfunction()
